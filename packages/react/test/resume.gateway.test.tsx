// Pages that go away and come back, several pages, and a gateway that dies.
import { act, waitFor } from "@testing-library/react";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Gateway, token } from "../../client/test/gateway.js";
import { useToolResult, useToolyardChat, type PageTools } from "../src/index.js";
import { backend, chat, fresh, hears, say, show, textOf, user } from "./page.js";

const parameters = { type: "object" as const, properties: {} };

/** A tool that answers when the test lets it. */
function held(): { tools: PageTools; runs: () => number; release: (value: unknown) => void } {
  let release: (value: unknown) => void = () => undefined;
  const execute = vi.fn(() => new Promise<unknown>((resolve) => (release = resolve)));
  return {
    tools: { wait_here: { description: "Waits", parameters, execute } },
    runs: () => execute.mock.calls.length,
    release: (value) => release(value),
  };
}

test("an answer that streams goes on after the whole page was mounted anew", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const first = chat(name, { id });
  await say(first, "slow 60");
  await waitFor(() => expect(textOf(first.now.messages[1])).not.toBe(""));
  first.unmount();
  const second = chat(name, { id }, { strict: true });
  await waitFor(() => expect(second.now.status).toBe("streaming"));
  await waitFor(() => expect(second.now.status).toBe("ready"));
  expect(textOf(second.now.messages.at(-1)).trim().split(/\s+/)).toHaveLength(60);
});

test("a tool that runs while its page is mounted anew runs once", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const { tools, runs, release } = held();
  const first = chat(name, { id }, { tools });
  await say(first, "call wait_here {}");
  await waitFor(() => expect(runs()).toBe(1));
  first.unmount();
  const second = chat(name, { id }, { tools, strict: true });
  await waitFor(() => expect(second.now.messages.at(-1)?.parts.some((part) => part.type === "tool-wait_here")).toBe(true));
  release({ done: true });
  await hears(second, '{"done":true}');
  expect(runs()).toBe(1);
});

test("a call that was announced to a page that is gone runs in the next one", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const clientTools = [{ name: "wait_here", description: "Waits", parameters }];
  const gone = user(name).chatStream({ id, messages: [{ role: "user", content: "call wait_here {}" }], maxToolRounds: 1, onToolCall: () => undefined, body: { clientTools } });
  await gone.response;
  const execute = vi.fn(() => "at last");
  const page = chat(name, { id }, { tools: { wait_here: { description: "Waits", parameters, execute } }, strict: true });
  await hears(page, "at last");
  expect(execute).toHaveBeenCalledTimes(1);
});

test("a page that was closed while its tool ran says that it is uncertain", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const { tools, runs } = held();
  const space = user(name);
  void space.chatStream({ id, messages: [{ role: "user", content: "call wait_here {}" }], body: { clientTools: [{ name: "wait_here", description: "Waits", parameters }] }, onToolCall: () => new Promise(() => undefined) }).response.catch(() => undefined);
  const [call] = await waitFor(async () => {
    const found = await space.waits.pendingCalls();
    expect(found).toHaveLength(1);
    return found;
  });
  localStorage.setItem(`toolyard_outcome:${call!.toolCallId}`, JSON.stringify({ state: "started" }));
  const page = chat(name, { id }, { tools });
  await hears(page, /uncertain whether wait_here took effect/);
  expect(runs()).toBe(0);
});

test("g42 a handler that gives nothing is answered by hand later", async () => {
  const asked: { toolCallId: string; runId: string }[] = [];
  const ask = (_input: unknown, context: { toolCallId: string; runId: string }) => void asked.push(context);
  const page = show(fresh("ada"), () => ({ chat: useToolyardChat({ id: "by-hand" }), result: useToolResult() }), {
    tools: { ask_person: { description: "Asks", parameters, execute: ask } },
  });
  await act(async () => void page.now.chat.sendMessage("call ask_person {}"));
  await waitFor(() => expect(asked).toHaveLength(1));
  const { toolCallId, runId } = asked[0]!;
  // A replay tells of the call again; the person is not asked twice.
  await act(() => page.now.chat.sync());
  expect(asked).toHaveLength(1);
  await act(() => page.now.result.submit({ runId, toolCallId, result: { said: "yes" } }));
  await hears({ get now() { return page.now.chat; }, unmount: page.unmount }, '{"said":"yes"}');
  expect(page.now.result.isSubmitting).toBe(false);
  await expect(page.now.result.submitToRun(runId, { callId: toolCallId, result: { said: "no" } })).rejects.toMatchObject({ status: 409 });
  expect(asked).toHaveLength(1);
});

test("two pages of one user show the same, and one of them runs the tool", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  let runs = 0;
  const tools: PageTools = { count: { description: "Counts", parameters, execute: () => ({ runs: (runs += 1) }) } };
  const first = chat(name, { id }, { tools });
  await say(first, "say hello");
  await hears(first, "hello");
  const [space] = await user(name).spaces.list();
  const second = chat(name, { id: space!.id }, { tools });
  await hears(second, "hello");
  await say(first, "call count {}");
  await hears(first, '{"runs":1}');
  await hears(second, '{"runs":1}');
  expect(runs).toBe(1);
  expect(second.now.messages.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
});

test("a space shows what was said in it before", async () => {
  const name = fresh("ada");
  const ada = user(name);
  await ada.chatStream({ id: "old", messages: [{ role: "user", content: "say of old" }] }).response;
  const [space] = await ada.spaces.list();
  const page = chat(name, { id: space!.id }, { defaultSpaceId: space!.id });
  expect(page.now.isLoadingHistory).toBe(true);
  await hears(page, "of old");
  await say(page, "say of new");
  await hears(page, "of new");
  expect(page.now.messages).toHaveLength(4);
  expect(await backend().spaces.messages(space!.id)).toHaveLength(4);
});

test("a conversation of any name shows its old messages after a reload, to its own user", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const first = chat(name, { id });
  await say(first, "say one");
  await hears(first, "one");
  await say(first, "say two");
  await hears(first, "two");
  await waitFor(() => expect(first.now.spaceId).toMatch(/^spc_/));
  first.unmount();
  const second = chat(name, { id }, { strict: true });
  await hears(second, "two");
  expect(second.now.messages.map(textOf)).toEqual(["say one", "one", "say two", "two"]);
  second.unmount();
  const failed = vi.fn();
  const other = chat(fresh("mallory"), { id, onError: failed });
  await waitFor(() => expect(other.now.isLoadingHistory).toBe(false));
  await say(other, "say mine");
  await hears(other, "mine");
  expect(other.now.messages.map(textOf)).toEqual(["say mine", "mine"]);
  expect(failed).not.toHaveBeenCalled();
});

let dying: Gateway;
beforeAll(async () => {
  dying = await Gateway.start();
});
afterAll(() => dying.stop());

test("a chat goes on when its gateway was killed in the middle", async () => {
  const name = fresh("ada");
  const page = chat(name, { id: fresh("chat") }, { gatewayUrl: dying.url, jwt: () => token(name) });
  await say(page, "slow 80");
  await waitFor(() => expect(textOf(page.now.messages[1])).not.toBe(""));
  await dying.kill();
  await waitFor(() => expect(page.now.isReconnecting).toBe(true));
  await dying.up();
  await waitFor(() => expect(page.now.status === "ready" && !page.now.isReconnecting).toBe(true));
  expect(textOf(page.now.messages[1]).trim().split(/\s+/)).toHaveLength(80);
  expect(page.now.messages).toHaveLength(2);
});
