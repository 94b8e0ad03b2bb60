// Tools that serve the calls of a space.
import { act, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { robotSpace } from "../../client/test/gateway.js";
import { useAutoToolHandler, useToolResult, type PageTools } from "../src/index.js";
import { backend, fresh, show, user } from "./page.js";

const move = { name: "move", description: "Moves", inputSchema: { type: "object", properties: { to: { type: "string" } } } };
const look = { name: "look", description: "Looks" };

/** A space in which somebody may say something to a robot. */
async function open(tools: object[]) {
  const word = fresh("robot");
  const client = backend();
  const { space, person } = await robotSpace(client as never, word, tools);
  const ask = async (content: string) => (await client.spaces.post(space, { entityId: person, content })).runs[0]!.runId!;
  const ended = async (run: string) => {
    const end = await client.runs.finished(run);
    const events = await client.runs.events(run);
    const ends = events.flatMap((frame) => (frame.type === "tool-output-available" || frame.type === "tool-error" ? [frame] : []));
    return { status: end.status, ends: Object.fromEntries(ends.map((frame) => [frame.toolName, frame.output ?? { error: frame.error }])) };
  };
  return { space, name: `ada-${word}`, ask, ended };
}

test("g43 known tools run and are submitted, unknown ones are left, errors are told", async () => {
  const { space, name, ask, ended } = await open([move, look, { name: "of_another" }]);
  const tools: PageTools = {
    move: ({ to }: { to: string }) => ({ at: to }),
    look: () => {
      throw new Error("no camera");
    },
  };
  const page = show(name, () => useAutoToolHandler({ smartSpaceId: space, tools }), { strict: true });
  await waitFor(() => expect(page.now.isConnected).toBe(true));
  const run = await ask('call move {"to":"door"}\ncall look {}\ncall of_another {}');
  const ada = user(name);
  const left = await waitFor(async () => {
    const open = await ada.waits.pendingCalls({ runId: run });
    expect(open.map((wait) => wait.toolName)).toEqual(["of_another"]);
    return open;
  });
  await ada.tools.submitRunResult(run, { callId: left[0]!.toolCallId, result: "mine" });
  expect(await ended(run)).toEqual({ status: "completed", ends: { move: { at: "door" }, look: { error: "no camera" }, of_another: "mine" } });
  await waitFor(() => expect(page.now.running).toEqual([]));
});

test("g43 strict mode runs a call of a space once, also one that waits already", async () => {
  const { space, name, ask, ended } = await open([move]);
  const run = await ask('call move {"to":"hall"}');
  await waitFor(async () => expect(await user(name).waits.pendingCalls({ runId: run })).toHaveLength(1));
  const execute = vi.fn(() => ({ moved: true }));
  show(name, () => useAutoToolHandler({ tools: { move: execute } }), { strict: true, defaultSpaceId: space });
  expect((await ended(run)).ends).toEqual({ move: { moved: true } });
  expect(execute).toHaveBeenCalledTimes(1);
});

test("g43 nothing runs after the component is gone", async () => {
  const { space, name, ask } = await open([move]);
  const execute = vi.fn(() => "moved");
  const page = show(name, () => useAutoToolHandler({ smartSpaceId: space, tools: { move: execute } }));
  await waitFor(() => expect(page.now.isConnected).toBe(true));
  page.unmount();
  const run = await ask("call move {}");
  const ada = user(name);
  await waitFor(async () => expect(await ada.waits.pendingCalls({ runId: run })).toHaveLength(1));
  // Another page that serves the space gets the call: the first one has not taken it.
  const next = vi.fn(() => "moved by the next");
  show(name, () => useAutoToolHandler({ smartSpaceId: space, tools: { move: next } }));
  expect((await ada.runs.finished(run)).status).toBe("completed");
  expect([execute.mock.calls.length, next.mock.calls.length]).toEqual([0, 1]);
});

test("g43 a handler that gives nothing submits later", async () => {
  const { space, name, ask, ended } = await open([move]);
  const asked: { toolCallId: string; runId: string }[] = [];
  const tools: PageTools = { move: (_input, { toolCallId, runId }) => void asked.push({ toolCallId, runId }) };
  const page = show(name, () => ({ handler: useAutoToolHandler({ smartSpaceId: space, tools }), result: useToolResult() }));
  const run = await ask("call move {}");
  await waitFor(() => expect(asked).toHaveLength(1));
  await waitFor(() => expect(page.now.handler.running).toEqual([]));
  await act(() => page.now.result.submit(space, { ...asked[0]!, result: { by: "hand" } }));
  expect((await ended(run)).ends).toEqual({ move: { by: "hand" } });
});

test("g43 of two tabs one runs the call", async () => {
  const { space, name, ask, ended } = await open([move]);
  let runs = 0;
  const tools: PageTools = { move: () => ({ runs: (runs += 1) }) };
  const here = show(name, () => useAutoToolHandler({ smartSpaceId: space, tools }));
  // Another copy of the modules knows nothing of this one: another tab.
  vi.resetModules();
  const other = (await import("../src/index.js")) as typeof import("../src/index.js");
  expect(other.useAutoToolHandler).not.toBe(useAutoToolHandler);
  const { inject } = await import("vitest");
  const { render } = await import("@testing-library/react");
  const { token } = await import("../../client/test/gateway.js");
  let connected = false;
  function Tab(): null {
    connected = other.useAutoToolHandler({ smartSpaceId: space, tools }).isConnected;
    return null;
  }
  render(
    <other.ToolyardChatProvider gatewayUrl={inject("gatewayUrl")} publicKey="pk_test_of_the_packages_0001" jwt={() => token(name)}>
      <Tab />
    </other.ToolyardChatProvider>,
  );
  await waitFor(() => expect([here.now.isConnected, connected]).toEqual([true, true]));
  const run = await ask("call move {}");
  expect((await ended(run)).ends).toEqual({ move: { runs: 1 } });
  await waitFor(() => expect(here.now.running).toEqual([]));
  expect(runs).toBe(1);
});
