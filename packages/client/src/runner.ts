import type { ToolCall } from "./call.js";
import type { Emitter } from "./emitter.js";
import { messageOf } from "./error.js";
import type { ClientEvents } from "./events.js";
import type { OutcomeStore, StoredOutcome } from "./outcomes.js";
import type { Registry } from "./registry.js";
import type { ProgressReport, ToolContext } from "./types.js";

/** How a call ended here. */
export interface Outcome {
  result?: unknown;
  error?: string;
}

export interface RunOptions {
  /** Asked first. `undefined` falls through. */
  onToolCall?: ((call: ToolCall, context: ToolContext) => unknown) | undefined;
  signal?: AbortSignal | undefined;
  progress?: ((report: ProgressReport) => void) | undefined;
  /** The tool was offered by this request, so nobody else will run it. */
  offered?: boolean;
}

/** Runs the calls of tools that live in this process. */
export class ToolRunner {
  readonly #registry: Registry;
  readonly #outcomes: OutcomeStore;
  readonly #events: Emitter<ClientEvents>;
  readonly #timeoutMs: number | undefined;

  constructor(registry: Registry, outcomes: OutcomeStore, events: Emitter<ClientEvents>, timeoutMs: number | undefined) {
    this.#registry = registry;
    this.#outcomes = outcomes;
    this.#events = events;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Runs a call, at most once for its id. The order is: the request's own
   * `onToolCall`, the tool's executor, the plugins' hooks. `undefined` means
   * that nobody here knows the tool. It throws only when aborted.
   */
  async run(call: ToolCall, options: RunOptions = {}): Promise<Outcome | undefined> {
    const stored = await this.#outcomes.get(call.toolCallId);
    if (stored?.state === "done") return bare(stored);
    const { idempotent = false } = this.#registry.behaviour(call.toolName);
    if (stored?.state === "started" && !idempotent) {
      return this.#keep(call, {
        error: `It is uncertain whether ${call.toolName} took effect: its program stopped while it ran.`,
      });
    }
    options.signal?.throwIfAborted();
    await this.#outcomes.set(call.toolCallId, { state: "started" });
    const began = Date.now();
    const { toolCallId, toolName, args } = call;
    // Whether a hook knows the call shows only when it has answered.
    const known = options.onToolCall !== undefined || options.offered || this.#registry.hasExecutor(toolName);
    if (known) this.#events.emit("tool_start", { toolCallId, toolName, args });
    const outcome = await this.#attempt(call, options);
    if (!outcome) {
      await this.#outcomes.delete(call.toolCallId);
      return undefined;
    }
    if (!known) this.#events.emit("tool_start", { toolCallId, toolName, args });
    this.#events.emit("tool_end", { toolCallId, toolName, ...outcome, durationMs: Date.now() - began });
    return outcome;
  }

  /** The gateway has the outcome, or does not want it any more. */
  async forget(callId: string): Promise<void> {
    await this.#outcomes.delete(callId);
  }

  async #attempt(call: ToolCall, options: RunOptions): Promise<Outcome | undefined> {
    const timeoutMs = this.#registry.behaviour(call.toolName).timeoutMs ?? this.#timeoutMs;
    const stop = new AbortController();
    const context: ToolContext = {
      call,
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      signal: stop.signal,
      progress: (report) => {
        this.#events.emit("tool_progress", { toolCallId: call.toolCallId, toolName: call.toolName, ...report });
        options.progress?.(report);
      },
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const { signal } = options;
    let abort: (() => void) | undefined;
    const cut = new Promise<Outcome>((resolve, reject) => {
      if (timeoutMs) {
        timer = setTimeout(() => {
          const error = `Tool ${call.toolName} timed out after ${timeoutMs} ms`;
          stop.abort(new Error(error));
          resolve({ error });
        }, timeoutMs);
      }
      abort = () => {
        stop.abort(signal?.reason);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", abort);
    });
    const own = this.#ask(call, options, context).catch((thrown: unknown): Outcome => ({ error: messageOf(thrown) }));
    try {
      const outcome = await Promise.race([own, cut]);
      return outcome && (await this.#keep(call, outcome));
    } catch (aborted) {
      // The request is gone, the work may go on: keep what comes of it.
      void own.then((late) => late && this.#keep(call, late)).catch(() => undefined);
      throw aborted;
    } finally {
      clearTimeout(timer);
      if (abort) signal?.removeEventListener("abort", abort);
    }
  }

  async #ask(call: ToolCall, { onToolCall, offered }: RunOptions, context: ToolContext): Promise<Outcome | undefined> {
    const answer = await onToolCall?.(call, context);
    if (answer !== undefined) return { result: plain(answer) };
    if (this.#registry.hasExecutor(call.toolName)) {
      return { result: plain(await this.#registry.execute(call, context)) };
    }
    const hooked = await this.#registry.askHooks(call);
    if (hooked !== undefined) return { result: plain(hooked) };
    return offered ? { error: `No executor for tool: ${call.toolName}` } : undefined;
  }

  /** Writes an outcome down before anybody hears of it. */
  async #keep(call: ToolCall, outcome: Outcome): Promise<Outcome> {
    await this.#outcomes.set(call.toolCallId, { state: "done", ...outcome });
    return outcome;
  }
}

/** The value as it will travel. What JSON cannot hold is the tool's failure. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? null : JSON.parse(text);
}

function bare({ result, error }: Extract<StoredOutcome, { state: "done" }>): Outcome {
  return error === undefined ? { result: result ?? null } : { error };
}
