// A chat with tools of the page, at the real gateway.
import { act, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { ToolCall } from "@toolyard/client";
import { handledTools, type PageTools } from "../src/index.js";
import { backend, chat, fresh, hears, say, user } from "./page.js";

const parameters = { type: "object" as const, properties: { n: { type: "number" as const } } };

test("c2 a chat asks the gateway and shows its answer", async () => {
  const page = chat(fresh("ada"), { id: fresh("chat") });
  await say(page, "say hello there");
  await hears(page, "hello there");
  expect(page.now.messages.map((message) => message.role)).toEqual(["user", "assistant"]);
  expect(page.now.messages[1]?.metadata?.runId).toMatch(/^run_/);
});

test("c6 the model is switched at run time", async () => {
  const page = chat(fresh("ada"), { id: fresh("chat"), model: "demo" });
  await say(page, "say one");
  await hears(page, "one");
  act(() => page.now.setModel("no-such-model"));
  expect(page.now.settings.model).toBe("no-such-model");
  await say(page, "say two");
  await waitFor(() => expect(page.now.status).toBe("error"));
  expect(page.now.error?.message).toMatch(/no-such-model/);
  act(() => page.now.setModel("demo"));
  await say(page, "say three");
  await hears(page, "three");
});

test("a call that a replay tells again is looked at once", async () => {
  const asked = vi.spyOn(globalThis, "fetch");
  const count = (part: string) => asked.mock.calls.filter(([url]) => String(url).includes(part)).length;
  const tools: PageTools = { note: { description: "Notes", parameters, execute: () => "noted" } };
  const page = chat(fresh("ada"), { id: fresh("chat") }, { tools });
  await say(page, "slow 3\ncall note {}");
  await hears(page, "noted");
  // The page came back once at least, and the replay told of the call.
  expect(count("/stream?metadata=on")).toBeGreaterThan(1);
  await say(page, "say after");
  await hears(page, "after");
  expect([count("/api/pending-calls"), count("/claim"), count("/tool-results")]).toEqual([1, 1, 1]);
  asked.mockRestore();
});

test("c7 a tool of the page runs in the page and its result goes back to the model", async () => {
  const double = vi.fn(({ n }: { n: number }) => ({ twice: n * 2 }));
  const page = chat(fresh("ada"), { id: fresh("chat") }, { tools: { double: { description: "Doubles", parameters, execute: double } } });
  await say(page, 'call double {"n": 21}');
  await hears(page, '{"twice":42}');
  expect(double).toHaveBeenCalledTimes(1);
  expect(double.mock.calls[0]?.[0]).toEqual({ n: 21 });
  const part = page.now.messages[1]?.parts.find((each) => each.type === "tool-double");
  expect(part).toMatchObject({ state: "output-available", output: { twice: 42 } });
  expect(page.now.messages).toHaveLength(2);
});

test("h8 class-based handlers run what the agent has, beside tools that the page brings", async () => {
  const agent = "platform-react";
  await backend().putAgent({
    agent: { name: agent, system: "Be brief." },
    model: { provider: "demo", name: "demo" },
    tools: [{ name: "showTokenChart", description: "Shows a chart", inputSchema: { type: "object", properties: { token: { type: "string" } } } }],
  } as never);
  class Charts {
    readonly tools = ["showTokenChart"];
    handle(call: ToolCall, page: { shown: string[] }) {
      page.shown.push(String(call.args["token"]));
      return { charts: page.shown.length };
    }
  }
  const shown: string[] = [];
  const tools = { ...handledTools([new Charts()], () => ({ shown })), confetti: { description: "Throws", parameters, execute: () => "thrown" } };
  const page = chat(fresh("ada"), { id: fresh("chat"), agent }, { tools });
  expect(page.now.clientTools.map(({ name }) => name)).toEqual(["confetti"]);
  await say(page, 'call showTokenChart {"token":"ABC"}\ncall confetti {}');
  await hears(page, '{"charts":1}');
  await hears(page, "thrown");
  expect(shown).toEqual(["ABC"]);
  expect(() => handledTools([new Charts(), new Charts()], () => ({ shown }))).toThrow("Tool showTokenChart has a handler already");
});

test("strict mode runs a tool once", async () => {
  const runs: string[] = [];
  const tools: PageTools = {
    once: { description: "Counts", parameters, execute: (_input, { toolCallId }) => ({ at: runs.push(toolCallId) }) },
  };
  const page = chat(fresh("ada"), { id: fresh("chat") }, { strict: true, tools });
  await say(page, "call once {}\ncall once {}");
  await hears(page, '{"at":2}');
  expect(new Set(runs).size).toBe(2);
  expect(runs).toHaveLength(2);
});

test("c13 what a tool throws reaches the model and the run goes on", async () => {
  const tools: PageTools = {
    broken: {
      description: "Breaks",
      parameters,
      execute: () => {
        throw new Error("no paper");
      },
    },
  };
  const page = chat(fresh("ada"), { id: fresh("chat") }, { tools });
  await say(page, "call broken {}");
  await hears(page, "no paper");
  expect(page.now.messages[1]?.parts.find((part) => part.type === "tool-broken")).toMatchObject({ state: "output-error", errorText: "no paper" });
});

test("a tool that is too slow has failed", async () => {
  const tools: PageTools = { slow: { description: "Sleeps", parameters, timeoutMs: 50, execute: () => new Promise(() => undefined) } };
  const page = chat(fresh("ada"), { id: fresh("chat") }, { tools });
  await say(page, "call slow {}");
  await hears(page, "timed out after 50 ms");
});

test("two components show one conversation", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const first = chat(name, { id });
  await say(first, "say shared");
  await hears(first, "shared");
  // Another page of the same user continues it.
  const second = chat(name, { id });
  await say(second, "say more");
  await hears(second, "more");
  expect(await user(name).spaces.list()).toHaveLength(1);
});

test("stop ends the answer on the gateway", async () => {
  const name = fresh("ada");
  const page = chat(name, { id: fresh("chat") });
  await say(page, "slow 500");
  await waitFor(() => expect(page.now.status).toBe("streaming"));
  await act(() => page.now.stop());
  await waitFor(() => expect(page.now.status).toBe("ready"));
  const run = page.now.messages.at(-1)?.metadata?.runId ?? "";
  await waitFor(async () => expect((await user(name).runs.get(run)).status).toBe("canceled"));
});

test("regenerate and edit continue from the right place", async () => {
  const page = chat(fresh("ada"), { id: fresh("chat") });
  await say(page, "say first");
  await hears(page, "first");
  const before = page.now.messages[1]?.id;
  await act(() => page.now.regenerate());
  await hears(page, "first");
  expect(page.now.messages).toHaveLength(2);
  expect(page.now.messages[1]?.id).not.toBe(before);
  const asked = page.now.messages[0]?.id ?? "";
  await act(() => page.now.sendMessage({ text: "say second", messageId: asked }));
  await hears(page, "second");
  expect(page.now.messages).toHaveLength(2);
});

test("the older form of the hook works", async () => {
  const page = chat(fresh("ada"), { id: fresh("chat") });
  act(() => page.now.setInput("say typed"));
  act(() => page.now.handleSubmit({ preventDefault: () => undefined }));
  expect(page.now.input).toBe("");
  await hears(page, "typed");
});
