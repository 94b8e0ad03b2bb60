// A run's log, as a timeline.
import type { Frame } from "@toolyard/client";
import { expect, test } from "vitest";
import { emptyTimeline, timelineWith } from "../src/timeline.js";

const at = (seconds: number) => `2026-01-01T00:00:${String(seconds).padStart(2, "0")}.000Z`;
const usage = { inputTokens: 1, outputTokens: 2, reasoningTokens: 0, cachedTokens: 0, cacheWriteTokens: 0 };
let seq = 0;
const frame = (type: string, fields: object = {}) => {
  seq += 1;
  return { type, runId: "run_1", seq, ts: at(seq), ...fields } as unknown as Frame;
};
const call = { toolCallId: "call_1", toolName: "pay" };

test("a call that asks, runs, and tells how far it is", () => {
  seq = 0;
  const frames = [
    frame("run.created", { agentName: "support" }),
    frame("run.started"),
    frame("message.assistant", { step: 1, usage, cost: 7, model: "demo", parts: [], toolCalls: [] }),
    frame("tool-approval-request", { ...call, waitId: "wait_1", risk: "high", payload: { args: {} } }),
    frame("run.waiting_tool", { reason: "approval", pendingToolCalls: [] }),
    frame("wait.answered", { ...call, waitId: "wait_1", decision: "allow" }),
    frame("tool-input-available", { ...call, executionTarget: "server", input: { n: 1 }, risk: "high" }),
    frame("tool.progress", { ...call, fraction: 0.5 }),
  ];
  const going = frames.reduce(timelineWith, emptyTimeline);
  expect(going).toMatchObject({ runId: "run_1", agentName: "support", status: "waiting_tool" });
  expect(going.entries.map(({ kind, state, progress }) => [kind, state, progress])).toEqual([
    ["step", "done", undefined],
    ["wait", "done", undefined],
    ["call", "running", 0.5],
  ]);
  const over = [frame("tool-output-available", { ...call, output: 1, outcome: "ok" }), frame("run.completed", { status: "completed", usage, cost: 9 })].reduce(timelineWith, going);
  expect(over).toMatchObject({ status: "completed", cost: 9, usage, endedAt: at(10) });
  expect(over.entries[2]).toMatchObject({ state: "done", output: 1, startedAt: at(7), endedAt: at(9), place: "server" });
});

test("denials, failures and children show as what they are", () => {
  seq = 0;
  const frames = [
    frame("tool-approval-request", { ...call, waitId: "wait_1", risk: "low" }),
    frame("wait.answered", { ...call, waitId: "wait_1", decision: "deny" }),
    frame("tool-error", { ...call, outcome: "denied", error: "no" }),
    frame("child.started", { toolCallId: "call_2", toolName: "ask_expert", childRunId: "run_2" }),
    frame("child.asked", { toolCallId: "call_2", childRunId: "run_2", waitId: "w" }),
    frame("run.failed", { status: "failed", usage, error: { code: "model_stream_cut" } }),
  ];
  const { entries, status } = frames.reduce(timelineWith, emptyTimeline);
  expect(status).toBe("failed");
  expect(entries.map(({ kind, state, error }) => [kind, state, error])).toEqual([
    ["wait", "failed", undefined],
    ["call", "failed", "no"],
    ["child", "waiting", undefined],
    ["end", "failed", "model_stream_cut"],
  ]);
});

test("pieces that are not in the log change nothing", () => {
  expect(timelineWith(emptyTimeline, frame("text-delta", { delta: "a" }))).toBe(emptyTimeline);
});

test("steps that were taken over from another run are marked, and those after them are not", () => {
  seq = 0;
  const reply = (step: number) => frame("message.assistant", { step, usage, parts: [], toolCalls: [] });
  const frames = [
    frame("run.created", { agentName: "support", replayedRunId: "run_0", replayedStep: 2 }),
    reply(1),
    frame("tool-input-available", { ...call, executionTarget: "server", input: {} }),
    frame("tool-output-available", { ...call, output: 1, outcome: "ok" }),
    reply(2),
    frame("tool-input-available", { toolCallId: "call_2", toolName: "pay", executionTarget: "server", input: {} }),
  ];
  const { entries, replayOf } = frames.reduce(timelineWith, emptyTimeline);
  expect(replayOf).toEqual({ runId: "run_0", step: 2 });
  expect(entries.map(({ id, isCopy }) => [id, isCopy])).toEqual([
    ["step-1", true],
    ["call_1", true],
    ["step-2", undefined],
    ["call_2", undefined],
  ]);
});
