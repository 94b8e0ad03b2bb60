// Calls of the page, under the classes that the hooks use.
import { memoryOutcomes, type OutcomeStore } from "@toolyard/client";
import { waitFor } from "@testing-library/react";
import { afterEach, expect, inject, test, vi } from "vitest";
import { robotSpace } from "../../client/test/gateway.js";
import { placeName } from "../src/calls/place.js";
import { PageCalls } from "../src/calls/page-calls.js";
import { backend, fresh } from "./page.js";

afterEach(() => vi.unstubAllGlobals());

async function announced() {
  const client = backend();
  const { space, person } = await robotSpace(client as never, fresh("calls"), [{ name: "move", description: "Moves" }]);
  const runId = (await client.spaces.post(space, { entityId: person, content: "call move {}" })).runs[0]!.runId!;
  const { toolCallId } = await waitFor(async () => {
    const [found] = await client.waits.pendingCalls({ runId });
    expect(found).toBeDefined();
    return found!;
  });
  return { client, call: { toolCallId, toolName: "move", input: {}, runId } };
}

/** The calls of a page; another address for the same gateway is another tab. */
function tab(clientId: string, outcomes: OutcomeStore = memoryOutcomes(), gatewayUrl = `${inject("gatewayUrl")}#${clientId}`) {
  return new PageCalls({ client: backend(), gatewayUrl, outcomes, clientId });
}

test("a call that another device has claimed is not run here", async () => {
  const { client, call } = await announced();
  let release: (value: string) => void = () => undefined;
  const first = vi.fn(() => new Promise<string>((resolve) => (release = resolve)));
  const second = vi.fn(() => "second");
  const here = tab("here").run(call, { execute: first });
  await waitFor(() => expect(first).toHaveBeenCalledTimes(1));
  const there = tab("there").run(call, { execute: second });
  await waitFor(async () => expect((await client.waits.pendingCalls({ runId: call.runId }))[0]?.claimedBy).toBe("here"));
  release("first");
  await expect(here).resolves.toEqual({ state: "done", result: "first" });
  await expect(there).resolves.toEqual({ state: "elsewhere" });
  expect(second).not.toHaveBeenCalled();
});

test("a call that runs in this tab is joined", async () => {
  const { call } = await announced();
  let release: (value: unknown) => void = () => undefined;
  const execute = vi.fn(() => new Promise((resolve) => (release = resolve)));
  const page = tab("one");
  const first = page.run(call, { execute });
  await waitFor(() => expect(execute).toHaveBeenCalledTimes(1));
  const second = page.run(call, { execute });
  expect(page.isRunning(call.toolCallId)).toBe(true);
  release({ moved: true });
  expect(await Promise.all([first, second])).toEqual([{ state: "done", result: { moved: true } }, { state: "done", result: { moved: true } }]);
  await expect(page.run(call, { execute })).resolves.toEqual({ state: "elsewhere" });
  expect(execute).toHaveBeenCalledTimes(1);
});

test("a result that was written down is told without running again", async () => {
  const { client, call } = await announced();
  const outcomes = memoryOutcomes();
  await outcomes.set(call.toolCallId, { state: "done", result: "of before" });
  const execute = vi.fn(() => "again");
  await expect(tab("page", outcomes).run(call, { execute })).resolves.toEqual({ state: "done", result: "of before" });
  expect(execute).not.toHaveBeenCalled();
  expect((await client.runs.finished(call.runId)).status).toBe("completed");
  expect(await outcomes.get(call.toolCallId)).toBeUndefined();
});

test("a tool that may be repeated runs again after its page was closed", async () => {
  const { call } = await announced();
  const outcomes = memoryOutcomes();
  await outcomes.set(call.toolCallId, { state: "started" });
  const execute = vi.fn(() => "again");
  await expect(tab("page", outcomes).run(call, { execute, idempotent: true })).resolves.toEqual({ state: "done", result: "again" });
});

test("a tool tells how far it is", async () => {
  const { client, call } = await announced();
  await tab("page").run(call, {
    execute: async (_input, { progress }) => {
      progress({ fraction: 0.5, message: "half" });
      await waitFor(async () => {
        const told = (await client.runs.events(call.runId)).filter((frame) => frame.type === "tool.progress");
        expect(told).toMatchObject([{ fraction: 0.5, message: "half" }]);
      });
      return "all";
    },
  });
});

test("a result that JSON cannot hold is the tool's failure", async () => {
  const { call } = await announced();
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  await expect(tab("page").run(call, { execute: () => circle })).resolves.toMatchObject({ state: "done", error: expect.stringMatching(/circular/i) as string });
});

test("tabs with locks take turns under one name of the browser", async () => {
  const names: string[] = [];
  const request = (name: string, work: () => unknown) => {
    names.push(name);
    return Promise.resolve(work());
  };
  expect(placeName()).not.toBe(placeName());
  vi.stubGlobal("navigator", { locks: { request } });
  expect(placeName()).toBe(placeName());
  const { call } = await announced();
  await expect(tab("browser").run(call, { execute: () => 1 })).resolves.toEqual({ state: "done", result: 1 });
  expect(names).toEqual([`toolyard:call:${call.toolCallId}`]);
});
