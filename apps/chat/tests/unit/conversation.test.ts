import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frame } from "../../src/api/types.ts";
import { begin, fold, liveRun, type Conversation } from "../../src/chat/conversation.ts";

const run = "run_1";
const at = "2026-01-01T00:00:00Z";
const frame = (type: string, more: object): Frame => ({ type, runId: run, seq: 1, ts: at, ...more }) as unknown as Frame;
const started = [
  frame("smartSpace.message", { smartSpaceId: "spc", message: { id: "u1", smartSpaceId: "spc", seq: 1, role: "user", branchId: "main", content: "hi", parts: [{ type: "text", text: "hi" }], createdAt: at } }),
  frame("run.created", { agentName: "a", branchId: "main", depth: 0 }),
];
const folded = (frames: Frame[], from: Conversation = begin([], [], [])) => frames.reduce((state, each) => fold(state, each, 5), from);
const texts = (state: Conversation) => state.order.map((id) => state.messages[id]?.blocks.map((block) => ("text" in block ? block.text : block.type)).join("|"));

test("pieces grow into one text, and the whole step takes their place under its own name", () => {
  const pieces = [frame("text-start", { step: 1, id: "p" }), frame("text-delta", { step: 1, id: "p", delta: "Hel" }), frame("text-delta", { step: 1, id: "p", delta: "lo" })];
  const half = folded([...started, ...pieces]);
  assert.deepEqual(texts(half), ["hi", "Hello"]);
  const whole = folded([frame("message.assistant", { step: 1, messageId: "m1", parts: [{ type: "text", text: "Hello." }], toolCalls: [] })], half);
  assert.deepEqual(whole.order, ["u1", "m1"]);
  assert.deepEqual(texts(whole), ["hi", "Hello."]);
  assert.equal(liveRun(folded([frame("run.completed", { status: "completed" })], whole)), undefined);
});

test("a call is asked for, allowed with other arguments, runs and ends", () => {
  const call = { toolCallId: "c", toolName: "t" };
  const asked = folded([
    ...started,
    frame("message.assistant", { step: 1, messageId: "m1", parts: [], toolCalls: [{ ...call, input: { a: 1 } }] }),
    frame("tool-approval-request", { ...call, waitId: "w", kind: "approval", executionTarget: "client", risk: "high", mayAnswer: true }),
    frame("run.waiting_tool", { reason: "approval", pendingToolCalls: [] }),
  ]);
  assert.equal(asked.calls["c"]?.state, "asking");
  assert.deepEqual(Object.keys(asked.waits), ["w"]);
  const ended = folded(
    [
      frame("wait.answered", { waitId: "w", kind: "approval", toolCallId: "c", decision: "allow", edited: { a: 2 } }),
      frame("tool-input-available", { ...call, input: { a: 2 }, executionTarget: "client" }),
      frame("tool-output-available", { ...call, output: "done" }),
    ],
    asked,
  );
  assert.deepEqual(ended.waits, {});
  assert.deepEqual([ended.calls["c"]?.state, ended.calls["c"]?.input, ended.calls["c"]?.output], ["done", { a: 2 }, "done"]);
});

test("a message that a run takes while it works is answered by a message of its own", () => {
  const first = [...started, frame("message.assistant", { step: 1, messageId: "m_1", parts: [{ type: "text", text: "one" }], toolCalls: [] })];
  const second = [frame("message.user", { messageIds: ["u2"] }), frame("text-start", { step: 2, id: "q" }), frame("text-delta", { step: 2, id: "q", delta: "tw" })];
  const state = folded([...first, ...second, frame("message.assistant", { step: 2, messageId: "m_2", parts: [{ type: "text", text: "two" }], toolCalls: [] })]);
  assert.deepEqual(state.order, ["u1", "m_1", "m_2"]);
  assert.deepEqual(texts(state), ["hi", "one", "two"]);
});

test("a run on another line makes what is shown stale, a run of a called agent changes nothing", () => {
  const state = folded(started);
  assert.equal(folded([frame("run.created", { runId: "run_2", agentName: "a", branchId: "other", depth: 0 })], state).stale, true);
  const child = folded([frame("run.created", { runId: "run_3", agentName: "b", branchId: "x", depth: 1 }), frame("text-delta", { runId: "run_3", step: 1, id: "z", delta: "no" })], state);
  assert.deepEqual(texts(child), ["hi"]);
  assert.equal(child.stale, false);
});
