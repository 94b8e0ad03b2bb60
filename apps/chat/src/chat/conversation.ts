/**
 * A conversation as the page shows it: a fold over what the gateway's stream
 * says. Every tab folds the same frames, so all of them show the same.
 */
import type { Frame, MessageView, RunView, WaitView } from "../api/types.ts";

export type CallState = "writing" | "asking" | "running" | "done" | "failed" | "denied" | "expired" | "canceled" | "uncertain";

export interface Call {
  id: string;
  name: string;
  input?: unknown;
  state: CallState;
  target?: string;
  risk?: string;
  output?: unknown;
  error?: string;
  progress?: { fraction?: number; message?: string };
  startedAt?: number;
  endedAt?: number;
}

export interface Source {
  id: string;
  url: string;
  title?: string;
}

/** A piece of a message, in the order of reading. */
export type Block =
  | { type: "text"; text: string; id?: string; step?: number }
  | { type: "reasoning"; text: string; id?: string; step?: number }
  | { type: "call"; callId: string; step?: number }
  | { type: "file"; mediaType: string; name?: string; url?: string; fileId?: string }
  | { type: "source"; source: Source };

export interface Message {
  id: string;
  role: string;
  runId?: string;
  /** Which turn of its run it answers, if the run has read more messages since its start. */
  turn?: string;
  createdAt: string;
  blocks: Block[];
}

export interface RunState {
  id: string;
  status: string;
  reason?: string;
  agent: string;
  error?: string;
  turn?: string;
  /** The line of messages that it writes to. */
  branch?: string;
}

export interface Conversation {
  /** Ids of what is shown, in order. */
  order: string[];
  messages: Record<string, Message>;
  calls: Record<string, Call>;
  waits: Record<string, WaitView>;
  runs: Record<string, RunState>;
  /** The line of messages that the space goes on with; unknown before the first run. */
  branch?: string;
  /** What is shown must be read again: an edit or another answer began a new line. */
  stale: boolean;
  ready: boolean;
  /** There is more before the first message. */
  hasOlder: boolean;
  /** The place of the first message. */
  oldest?: number;
}

export const NOTHING: Conversation = { order: [], messages: {}, calls: {}, waits: {}, runs: {}, stale: false, ready: false, hasOlder: false };

const LIVE = ["queued", "running", "waiting_tool"];

export function liveRun(conversation: Conversation): RunState | undefined {
  return Object.values(conversation.runs).find((run) => LIVE.includes(run.status));
}

/** The message that an answer of a run goes to while its id is not known. */
function draftId(runId: string, turn = "first"): string {
  return `draft:${runId}:${turn}`;
}

/** A stored message: its parts, and the calls among them. */
export function readMessage(view: MessageView, calls: Record<string, Call>): Message {
  const blocks: Block[] = [];
  for (const part of view.parts) {
    if (part.type === "text" || part.type === "reasoning") blocks.push({ type: part.type, text: part.text });
    else if (part.type === "source") blocks.push({ type: "source", source: sourceOf(part) });
    else if (part.type === "file") blocks.push({ ...part });
    else if (part.type === "tool-call") {
      const known = calls[part.toolCallId];
      calls[part.toolCallId] = { id: part.toolCallId, name: part.toolName, state: "running", ...known, ...(part.input === undefined ? {} : { input: part.input }) };
      blocks.push({ type: "call", callId: part.toolCallId });
    } else if (part.type === "tool-result") {
      const known = calls[part.toolCallId] ?? { id: part.toolCallId, name: part.toolName, state: "running" };
      calls[part.toolCallId] = { ...known, ...ended(part.outcome, part.output, part.error) };
    }
  }
  const message: Message = { id: view.id, role: view.role, createdAt: view.createdAt, blocks };
  if (view.runId) message.runId = view.runId;
  return message;
}

function sourceOf(part: { id: string; url: string; title?: string }): Source {
  return part.title === undefined ? { id: part.id, url: part.url } : { id: part.id, url: part.url, title: part.title };
}

function ended(outcome: string | undefined, output: unknown, error: string | undefined): Partial<Call> {
  const state = outcome === undefined || outcome === "ok" ? (error === undefined ? "done" : "failed") : (outcome as CallState);
  return { state, ...(output === undefined ? {} : { output }), ...(error === undefined ? {} : { error }) };
}

function runOf(view: RunView): RunState {
  const run: RunState = { id: view.id, status: view.status, agent: view.agentName };
  if (view.reason) run.reason = view.reason;
  if (view.errorCode) run.error = view.errorCode;
  return run;
}

/** What the space holds at one moment. */
export function begin(views: readonly MessageView[], runs: readonly RunView[], waits: readonly WaitView[], hasOlder = false): Conversation {
  const calls: Record<string, Call> = {};
  const messages: Record<string, Message> = {};
  const order: string[] = [];
  for (const view of views) {
    messages[view.id] = readMessage(view, calls);
    order.push(view.id);
  }
  const open: Record<string, WaitView> = {};
  for (const wait of waits) {
    open[wait.id] = wait;
    const call = calls[wait.toolCallId];
    if (call && wait.kind === "approval") calls[wait.toolCallId] = { ...call, state: "asking" };
  }
  const branch = views.at(-1)?.branchId;
  const oldest = views[0]?.seq;
  return {
    order,
    messages,
    calls,
    waits: open,
    runs: Object.fromEntries(runs.map((run) => [run.id, runOf(run)])),
    ...(branch === undefined ? {} : { branch }),
    ...(oldest === undefined ? {} : { oldest }),
    stale: false,
    ready: true,
    hasOlder,
  };
}

/** The conversation with what was said before its first message. */
export function withOlder(before: Conversation, views: readonly MessageView[], hasOlder: boolean): Conversation {
  const read = begin(views, [], []);
  const order = [...read.order.filter((id) => !before.order.includes(id)), ...before.order];
  const oldest = read.oldest ?? before.oldest;
  return {
    ...before,
    order,
    messages: { ...read.messages, ...before.messages },
    calls: { ...read.calls, ...before.calls },
    hasOlder,
    ...(oldest === undefined ? {} : { oldest }),
  };
}

/** The conversation after one more frame. */
export function fold(before: Conversation, frame: Frame, now = Date.now()): Conversation {
  switch (frame.type) {
    case "smartSpace.message": {
      const calls = { ...before.calls };
      const message = readMessage(frame.message, calls);
      return shown({ ...before, calls }, message);
    }
    case "run.created": {
      if (frame.depth > 0) return before;
      const runs = { ...before.runs, [frame.runId]: { id: frame.runId, status: "running", agent: frame.agentName, branch: frame.branchId } };
      const stale = before.stale || (before.branch !== undefined && before.branch !== frame.branchId);
      return { ...before, runs, branch: frame.branchId, stale };
    }
    case "run.started":
      return withRun(before, frame.runId, { status: "running" });
    case "message.user":
      return withRun(before, frame.runId, { turn: frame.messageIds.join("+") });
    case "run.waiting_tool":
      return withRun(before, frame.runId, { status: "waiting_tool", reason: frame.reason });
    case "run.completed":
    case "run.failed":
    case "run.canceled": {
      const error = frame.error ? { error: frame.detail ?? frame.error.message ?? frame.error.code } : {};
      const done = withRun(before, frame.runId, { status: frame.status, ...error });
      return { ...done, waits: without(done.waits, (wait) => wait.runId === frame.runId || wait.rootRunId === frame.runId) };
    }
    case "step.restarted":
      return inAnswer(before, frame.runId, (blocks) => blocks.filter((block) => !("step" in block) || block.step !== frame.step));
    case "text-start":
    case "reasoning-start":
      return inAnswer(running(before, frame.runId), frame.runId, (blocks) => [
        ...blocks,
        { type: frame.type === "text-start" ? "text" : "reasoning", text: "", id: frame.id, step: frame.step },
      ]);
    case "text-delta":
    case "reasoning-delta":
      return inAnswer(before, frame.runId, (blocks) => grown(blocks, frame.id, frame.type === "text-delta" ? "text" : "reasoning", frame.delta, frame.step));
    case "step-so-far":
      return soFar(before, frame);
    case "tool-input-start": {
      const call: Call = { id: frame.toolCallId, name: frame.toolName, state: "writing", startedAt: now };
      const calls = { ...before.calls, [frame.toolCallId]: { ...call, ...before.calls[frame.toolCallId] } };
      return inAnswer({ ...running(before, frame.runId), calls }, frame.runId, (blocks) => withCall(blocks, frame.toolCallId));
    }
    case "tool-input-delta":
      return withKnown(before, frame.toolCallId, frame.toolName, frame.partialInput === undefined ? {} : { input: frame.partialInput });
    case "message.assistant":
      return step(before, frame, now);
    case "message-replaced": {
      const message = before.messages[frame.messageId];
      if (!message) return before;
      const parts = partsOf(frame.parts, frame.step);
      const calls = message.blocks.filter((block) => block.type === "call" && block.step === frame.step);
      const known = message.blocks.some((block) => "step" in block && block.step === frame.step);
      // A message that was read from the store does not say which step a part is of.
      const rest = known ? message.blocks.filter((block) => !ofStep(block, frame.step)) : message.blocks.filter((block) => block.type === "call");
      return { ...before, messages: { ...before.messages, [message.id]: { ...message, blocks: [...rest, ...parts, ...calls] } } };
    }
    case "tool-approval-request":
    case "input-required":
    case "auth-required": {
      const wait = waitOf(frame);
      const known = withKnown(before, frame.toolCallId, frame.toolName, { state: "asking", target: frame.executionTarget, risk: frame.risk });
      return { ...known, waits: { ...known.waits, [wait.id]: wait } };
    }
    case "wait.answered": {
      const waits = without(before.waits, (wait) => wait.id === frame.waitId);
      const allowed = frame.decision === "allow" || frame.decision === "provide";
      const call = before.calls[frame.toolCallId];
      if (!call) return { ...before, waits };
      const next: Call = { ...call, state: allowed ? "running" : call.state, ...(frame.edited === undefined ? {} : { input: frame.edited }) };
      return { ...before, waits, calls: { ...before.calls, [call.id]: next } };
    }
    case "tool-input-available": {
      const known = before.calls[frame.toolCallId];
      // A snapshot tells open calls again: what has ended stays ended.
      if (known && (known.endedAt !== undefined || known.state === "done")) return before;
      const target = frame.executionTarget === undefined ? {} : { target: frame.executionTarget };
      const input = frame.input === undefined ? {} : { input: frame.input };
      return withKnown(before, frame.toolCallId, frame.toolName, { state: "running", startedAt: known?.startedAt ?? now, ...target, ...input });
    }
    case "tool.progress": {
      const { fraction, message } = frame;
      const progress = { ...(fraction === undefined ? {} : { fraction }), ...(message === undefined ? {} : { message }) };
      return withKnown(before, frame.toolCallId, frame.toolName, { progress });
    }
    case "tool-output-available":
    case "tool-error": {
      const waits = without(before.waits, (wait) => wait.toolCallId === frame.toolCallId);
      return withKnown({ ...before, waits }, frame.toolCallId, frame.toolName, { ...ended(frame.outcome, frame.output, frame.error), endedAt: now });
    }
    case "tool-output-amended":
      return withKnown(before, frame.toolCallId, frame.toolName, ended(frame.outcome, frame.output, frame.error));
    default:
      return before;
  }
}

type AskedFrame = Extract<Frame, { type: "tool-approval-request" | "input-required" | "auth-required" }>;

function waitOf(frame: AskedFrame): WaitView {
  return {
    id: frame.waitId,
    runId: frame.runId,
    rootRunId: frame.runId,
    kind: frame.kind,
    toolCallId: frame.toolCallId,
    toolName: frame.toolName,
    openedAt: frame.ts,
    mayAnswer: frame.mayAnswer,
    ...(frame.smartSpaceId === undefined ? {} : { smartSpaceId: frame.smartSpaceId }),
    ...(frame.expiresAt === undefined ? {} : { expiresAt: frame.expiresAt }),
    ...(frame.payload === undefined ? {} : { payload: frame.payload }),
  };
}

function without(waits: Record<string, WaitView>, gone: (wait: WaitView) => boolean): Record<string, WaitView> {
  const kept = Object.entries(waits).filter(([, wait]) => !gone(wait));
  return kept.length === Object.keys(waits).length ? waits : Object.fromEntries(kept);
}

function withRun(before: Conversation, runId: string, change: Partial<RunState>): Conversation {
  const run = before.runs[runId];
  return run ? { ...before, runs: { ...before.runs, [runId]: { ...run, ...change } } } : before;
}

/** Something streams: the run does not wait any more. */
function running(before: Conversation, runId: string): Conversation {
  return before.runs[runId]?.status === "waiting_tool" ? withRun(before, runId, { status: "running" }) : before;
}

function withKnown(before: Conversation, id: string, name: string, change: Partial<Call>): Conversation {
  const call: Call = { id, name, state: "running", ...before.calls[id], ...change };
  return { ...before, calls: { ...before.calls, [id]: call } };
}

function shown(before: Conversation, message: Message): Conversation {
  const order = before.order.includes(message.id) ? before.order : [...before.order, message.id];
  return { ...before, order, messages: { ...before.messages, [message.id]: message } };
}

/** The message that a run writes now. */
function answerOf(before: Conversation, runId: string): Message {
  const ids = [...before.order].reverse();
  const turn = before.runs[runId]?.turn;
  const mine = (message: Message | undefined) => message?.role === "assistant" && message.runId === runId && message.turn === turn;
  const found = ids.map((id) => before.messages[id]).find(mine);
  if (found) return found;
  const draft: Message = { id: draftId(runId, turn), role: "assistant", runId, createdAt: new Date().toISOString(), blocks: [] };
  return turn === undefined ? draft : { ...draft, turn };
}

function inAnswer(before: Conversation, runId: string, change: (blocks: Block[]) => Block[]): Conversation {
  // Runs of agents that were called tell their own story elsewhere.
  if (!before.runs[runId]) return before;
  const message = answerOf(before, runId);
  return shown(before, { ...message, blocks: change(message.blocks) });
}

function withCall(blocks: Block[], callId: string): Block[] {
  return blocks.some((block) => block.type === "call" && block.callId === callId) ? blocks : [...blocks, { type: "call", callId }];
}

function grown(blocks: Block[], id: string, type: "text" | "reasoning", delta: string, at: number): Block[] {
  const found = blocks.findIndex((block) => "id" in block && block.id === id);
  if (found < 0) return [...blocks, { type, text: delta, id, step: at }];
  return blocks.map((block, index) => (index === found && "text" in block ? { ...block, text: block.text + delta } : block));
}

type StepSoFar = Extract<Frame, { type: "step-so-far" }>;

/** The step so far replaces what was streamed of it. */
function soFar(before: Conversation, frame: StepSoFar): Conversation {
  const calls = { ...before.calls };
  const parts: Block[] = [];
  frame.parts.forEach((part) => {
    if (part.type === "text" || part.type === "reasoning") {
      parts.push({ type: part.type, text: part.text, id: part.id, step: frame.step });
    } else {
      const callId = part.toolCallId;
      calls[callId] = { id: callId, name: part.toolName, state: "writing", ...calls[callId] };
      parts.push({ type: "call", callId, step: frame.step });
    }
  });
  const mine = new Set(parts.flatMap((block) => (block.type === "call" ? [block.callId] : [])));
  return inAnswer({ ...before, calls }, frame.runId, (blocks) => [
    ...blocks.filter((block) => !ofStep(block, frame.step) && !(block.type === "call" && mine.has(block.callId))),
    ...parts,
  ]);
}

function ofStep(block: Block, at: number): boolean {
  return ("step" in block && block.step === at) || block.type === "source";
}

function partsOf(parts: MessageView["parts"], at: number): Block[] {
  return parts.flatMap((part): Block[] => {
    if (part.type === "text" || part.type === "reasoning") return [{ type: part.type, text: part.text, step: at }];
    if (part.type === "source") return [{ type: "source", source: sourceOf(part) }];
    if (part.type === "file") return [{ ...part }];
    return [];
  });
}

type StepFrame = Extract<Frame, { type: "message.assistant" }>;

/** A whole step: it replaces what was streamed of it, and names the message. */
function step(before: Conversation, frame: StepFrame, now: number): Conversation {
  if (!before.runs[frame.runId]) return before;
  const calls = { ...before.calls };
  for (const call of frame.toolCalls) {
    const known = calls[call.toolCallId];
    const made: Call = { id: call.toolCallId, name: call.toolName, state: "running", startedAt: now, ...known };
    calls[call.toolCallId] = call.input === undefined ? made : { ...made, input: call.input };
  }
  const draft = before.messages[frame.messageId] ?? answerOf(before, frame.runId);
  const named = new Set(frame.toolCalls.map((call) => call.toolCallId));
  const kept = draft.blocks.filter((block) => {
    if (block.type === "call") return !named.has(block.callId);
    return !("step" in block) || block.step !== frame.step;
  });
  const own: Block[] = frame.toolCalls.map((call) => ({ type: "call", callId: call.toolCallId, step: frame.step }));
  const message: Message = { ...draft, id: frame.messageId, blocks: [...kept, ...partsOf(frame.parts, frame.step), ...own] };
  const messages = { ...before.messages, [message.id]: message };
  if (draft.id !== message.id) delete messages[draft.id];
  const renamed = before.order.map((id) => (id === draft.id ? message.id : id));
  const order = renamed.includes(message.id) ? renamed : [...renamed, message.id];
  return { ...before, calls, messages, order };
}
