// Stored messages, as a chat shows them.
import type { MessageView } from "@toolyard/client";
import { expect, test } from "vitest";
import { historyOf, withNames } from "../src/chat/history.js";
import { atOnce } from "../src/chat/transport.js";
import { hasOpenCalls, withDecision, type ToolyardMessage } from "../src/chat/message.js";

let seq = 0;
const stored = (role: "user" | "assistant", parts: MessageView["parts"], branchId = "main"): MessageView => {
  seq += 1;
  return { id: `msg_${seq}`, smartSpaceId: "spc_1", seq, role, branchId, content: "", parts, createdAt: "2026-01-01T00:00:00Z", ...(role === "assistant" ? { runId: `run_${seq}` } : {}) };
};
const text = (words: string) => [{ type: "text" as const, text: words }];

test("calls carry their outcomes, and sources and files are shown", () => {
  const [message] = historyOf([
    stored("assistant", [
      { type: "reasoning", text: "hm" },
      { type: "tool-call", toolCallId: "c1", toolName: "move", input: { to: "door" } },
      { type: "tool-call", toolCallId: "c2", toolName: "pay", input: {} },
      { type: "tool-call", toolCallId: "c3", toolName: "look" },
      { type: "tool-call", toolCallId: "c4", toolName: "wait" },
      { type: "tool-result", toolCallId: "c1", toolName: "move", output: { at: "door" }, outcome: "ok" },
      { type: "tool-result", toolCallId: "c2", toolName: "pay", outcome: "denied", error: "no" },
      { type: "tool-result", toolCallId: "c3", toolName: "look", outcome: "failed", error: "blind" },
      { type: "source", id: "s1", url: "https://example.com" },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA", name: "a.png" },
    ]),
  ]);
  expect(message?.parts).toEqual([
    { type: "reasoning", text: "hm", state: "done" },
    { type: "tool-move", toolCallId: "c1", state: "output-available", input: { to: "door" }, output: { at: "door" } },
    { type: "tool-pay", toolCallId: "c2", state: "output-denied", input: {}, approval: { id: "c2", approved: false, reason: "no" } },
    { type: "tool-look", toolCallId: "c3", state: "output-error", input: {}, errorText: "blind" },
    { type: "tool-wait", toolCallId: "c4", state: "input-available", input: {} },
    { type: "source-url", sourceId: "s1", url: "https://example.com" },
    { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA", filename: "a.png" },
  ]);
  expect(message?.metadata?.runId).toMatch(/^run_/);
  expect(hasOpenCalls(message)).toBe(true);
});

test("messages that the page shows keep their names", () => {
  const history = historyOf([stored("user", text("hello")), stored("assistant", text("hi"))]);
  const shown: ToolyardMessage[] = [{ id: "local", role: "user", parts: [{ type: "text", text: "hello" }] }];
  expect(withNames(history, shown).map(({ id }) => id)).toEqual(["local", history[1]?.id]);
  const others: ToolyardMessage[] = [{ id: "local", role: "user", parts: [{ type: "text", text: "other" }] }];
  expect(withNames(history, others)[0]?.id).toBe(history[0]?.id);
});

test("a decision shows on the part that asked", () => {
  const part = (id: string) => ({ type: "tool-pay", toolCallId: `call-${id}`, state: "approval-requested", input: {}, approval: { id } });
  const messages = [{ id: "m", role: "assistant", parts: [part("one"), part("two")] }] as ToolyardMessage[];
  const [message] = withDecision(messages, "two", { decision: "deny", message: "no" });
  expect(message?.parts).toEqual([part("one"), { ...part("two"), state: "approval-responded", approval: { id: "two", approved: false, reason: "no" } }]);
});

test("what a replay says first is given in one go, the rest as it comes", async () => {
  let source: ReadableStreamDefaultController<number> | undefined;
  const reader = atOnce(new ReadableStream<number>({ start: (controller) => void (source = controller) })).getReader();
  source?.enqueue(1);
  source?.enqueue(2);
  expect(await reader.read()).toEqual({ done: false, value: 1 });
  expect(await reader.read()).toEqual({ done: false, value: 2 });
  source?.enqueue(3);
  expect(await reader.read()).toEqual({ done: false, value: 3 });
  source?.close();
  expect(await reader.read()).toEqual({ done: true, value: undefined });
});

test("a replay that breaks gives what it said, then its error", async () => {
  let source: ReadableStreamDefaultController<number> | undefined;
  const reader = atOnce(new ReadableStream<number>({ start: (controller) => void (source = controller) })).getReader();
  source?.enqueue(1);
  expect(await reader.read()).toEqual({ done: false, value: 1 });
  source?.error(new TypeError("terminated"));
  await expect(reader.read()).rejects.toThrow("terminated");
});
