import type { Frame, Risk, RunStatus, Usage } from "@toolyard/client";

/** One line of a timeline. */
export interface TimelineEntry {
  /** Unique within the run. */
  id: string;
  kind: "step" | "call" | "wait" | "child" | "message" | "plugin" | "end";
  title: string;
  state: "running" | "waiting" | "done" | "failed";
  startedAt: string;
  endedAt?: string;
  step?: number;
  toolCallId?: string;
  /** Where a call executes. */
  place?: string;
  risk?: Risk;
  input?: unknown;
  output?: unknown;
  error?: string;
  /** From 0 to 1, of a call that says so. */
  progress?: number;
  usage?: Usage;
  /** Millionths of a US dollar. */
  cost?: number;
  model?: string;
  childRunId?: string;
  /** Taken over from another run: nothing was executed for it here. */
  isCopy?: boolean;
}

/** What is known of a run. */
export interface Timeline {
  runId: string | undefined;
  agentName: string | undefined;
  status: RunStatus;
  startedAt: string | undefined;
  endedAt: string | undefined;
  entries: readonly TimelineEntry[];
  usage: Usage | undefined;
  /** Millionths of a US dollar. */
  cost: number | undefined;
  /** The run that this one begins with, and the step of it that was done anew. */
  replayOf: { runId: string; step: number } | undefined;
}

export const emptyTimeline: Timeline = {
  runId: undefined,
  agentName: undefined,
  status: "queued",
  startedAt: undefined,
  endedAt: undefined,
  entries: [],
  usage: undefined,
  cost: undefined,
  replayOf: undefined,
};

/** A timeline with one more frame of its run. Deltas change nothing. */
export function timelineWith(timeline: Timeline, frame: Frame): Timeline {
  switch (frame.type) {
    case "run.created": {
      const { runId, agentName, ts, replayedRunId, replayedStep } = frame;
      const replayOf = replayedRunId === undefined || replayedStep === undefined ? undefined : { runId: replayedRunId, step: replayedStep };
      return { ...timeline, runId, agentName, startedAt: ts, replayOf };
    }
    case "run.started":
      return { ...timeline, status: "running" };
    case "message.assistant": {
      const { step, usage, cost, model, ts } = frame;
      const entry = { id: `step-${step}`, kind: "step", title: `Step ${step}`, state: "done", startedAt: ts, endedAt: ts, step, usage } as const;
      const copy = timeline.replayOf !== undefined && step < timeline.replayOf.step ? { isCopy: true } : {};
      return put({ ...timeline, status: "running" }, { ...entry, ...copy, ...(cost === undefined ? {} : { cost }), ...(model === undefined ? {} : { model }) });
    }
    case "tool-input-available": {
      const { toolCallId, toolName, executionTarget = "server", input, risk, ts } = frame;
      return put(timeline, {
        id: toolCallId,
        kind: "call",
        title: toolName,
        state: executionTarget === "server" ? "running" : "waiting",
        startedAt: ts,
        toolCallId,
        place: executionTarget,
        ...(timeline.entries.findLast((entry) => entry.kind === "step")?.isCopy ? { isCopy: true } : {}),
        ...(risk === undefined ? {} : { risk }),
        ...(input === undefined ? {} : { input }),
      });
    }
    case "tool.progress": {
      const { toolCallId, fraction, preliminary } = frame;
      return change(timeline, toolCallId, {
        ...(fraction === undefined ? {} : { progress: fraction }),
        ...(preliminary === undefined ? {} : { output: preliminary }),
      });
    }
    case "tool-output-available":
    case "tool-error": {
      const { toolCallId, toolName, output, error, outcome = "ok", ts } = frame;
      const known = timeline.entries.some((entry) => entry.id === toolCallId);
      const held = known
        ? timeline
        : put(timeline, { id: toolCallId, kind: "call", title: toolName, state: "running", startedAt: ts, toolCallId });
      return change({ ...held, status: "running" }, toolCallId, {
        state: outcome === "ok" ? "done" : "failed",
        endedAt: ts,
        ...(output === undefined ? {} : { output }),
        ...(error === undefined ? (outcome === "ok" ? {} : { error: outcome }) : { error }),
      });
    }
    case "tool-approval-request":
    case "input-required":
    case "auth-required": {
      const { waitId, toolCallId, toolName, risk, payload, ts, type } = frame;
      const asks = { "tool-approval-request": "a permission", "input-required": "a value", "auth-required": "a login" }[type];
      const input = payload === undefined ? {} : { input: payload };
      return put(timeline, { id: waitId, kind: "wait", title: `${toolName} asks for ${asks}`, state: "waiting", startedAt: ts, toolCallId, risk, ...input });
    }
    case "wait.answered": {
      const failed = frame.decision === "deny" || frame.decision === "expire" || frame.decision === "withdraw";
      return change(timeline, frame.waitId, { state: failed ? "failed" : "done", endedAt: frame.ts, output: frame.decision });
    }
    case "child.started": {
      const { toolCallId, toolName, childRunId, ts } = frame;
      return put(timeline, { id: childRunId, kind: "child", title: toolName, state: "running", startedAt: ts, toolCallId, childRunId });
    }
    case "child.asked":
      return change(timeline, frame.childRunId, { state: "waiting" });
    case "child.answered":
      return change(timeline, frame.childRunId, { state: "running" });
    case "message.user":
      return put(timeline, { id: `message-${frame.seq}`, kind: "message", title: "New message", state: "done", startedAt: frame.ts, endedAt: frame.ts });
    case "plugin.emitted": {
      const { plugin, name, value, seq, ts } = frame;
      return put(timeline, { id: `plugin-${seq}`, kind: "plugin", title: `${plugin}: ${name}`, state: "done", startedAt: ts, endedAt: ts, output: value });
    }
    case "run.waiting_tool":
      return { ...timeline, status: "waiting_tool" };
    case "run.completed":
    case "run.failed":
    case "run.canceled": {
      const { status, ts, usage, cost, error, message } = frame;
      const said = error?.message ?? error?.code ?? message;
      const entry: TimelineEntry = {
        id: "end",
        kind: "end",
        title: { completed: "Completed", failed: "Failed", canceled: "Canceled" }[status],
        state: status === "completed" ? "done" : "failed",
        startedAt: ts,
        endedAt: ts,
        ...(said === undefined ? {} : { error: said }),
      };
      return put({ ...timeline, status, endedAt: ts, usage, cost }, entry);
    }
    case "reset":
      return "run" in frame ? { ...timeline, runId: frame.runId, status: frame.run.status, agentName: frame.run.agentName } : timeline;
    default:
      return timeline;
  }
}

/** Adds an entry; one with its id is told again and stays where it is. */
function put(timeline: Timeline, entry: TimelineEntry): Timeline {
  const at = timeline.entries.findIndex((each) => each.id === entry.id);
  if (at === -1) return { ...timeline, entries: [...timeline.entries, entry] };
  return change(timeline, entry.id, entry);
}

function change(timeline: Timeline, id: string, what: Partial<TimelineEntry>): Timeline {
  return { ...timeline, entries: timeline.entries.map((entry) => (entry.id === id ? { ...entry, ...what } : entry)) };
}
