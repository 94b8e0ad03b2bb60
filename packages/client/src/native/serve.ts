import { toolCallOf, type ToolCall } from "../call.js";
import { pause, type Door } from "../door.js";
import { messageOf, ToolyardError } from "../error.js";
import { isFields } from "../json.js";
import type { ToolInputAvailableFrame } from "../protocol.js";
import type { Registry } from "../registry.js";
import { reporter } from "../reporter.js";
import type { Outcome, ToolRunner } from "../runner.js";
import type { ToolContext } from "../types.js";
import { randomId } from "./once.js";
import type { StreamEvent, SubscribeOptions, Subscription } from "./subscription.js";
import type { Tools } from "./tools.js";
import type { Waits } from "./waits.js";

/** Runs one tool of `serve`. `undefined` means: the result is submitted by hand, later. */
export type ToolHandler = (input: never, context: ToolContext) => unknown;

export interface ServeOptions extends SubscribeOptions {
  /** Handlers by tool name, beside the registered tools. */
  tools?: Record<string, ToolHandler>;
  /** This program's stable name: two programs with one name count as one. */
  clientId?: string;
  /** Calls that run at once; missing means all. */
  concurrency?: number;
  /** Do not ask for the call before running it. For programs that are alone. */
  claim?: boolean;
}

/** What serving needs of a client. */
export interface Parts {
  door: Door;
  registry: Registry;
  runner: ToolRunner;
  tools: Tools;
  waits: Waits;
  log: (line: string, ...more: unknown[]) => void;
}

/** A claim lasts a minute. */
const RENEW_MS = 25_000;

/**
 * Runs the tool calls of a stream and hands in their results. A call runs
 * once: others of the same tools see it claimed, and what was done is written
 * down before it is told.
 */
export class Serving {
  readonly subscription: Subscription;
  readonly #parts: Parts;
  readonly #options: ServeOptions;
  readonly #clientId: string;
  readonly #running = new Map<string, Promise<void>>();
  /** Calls that somebody else has; the signal ends the waiting. */
  readonly #others = new Map<string, AbortController>();
  readonly #queue: (() => void)[] = [];
  readonly #stop = new AbortController();
  #active = 0;

  constructor(subscription: Subscription, parts: Parts, options: ServeOptions) {
    this.subscription = subscription;
    this.#parts = parts;
    this.#options = options;
    this.#clientId = options.clientId ?? randomId("cli");
    subscription.on("tool-input-available", (event) => this.#offer(event));
    for (const ended of ["tool-output-available", "tool-error"] as const) {
      subscription.on(ended, (event) => this.#others.get(event.data.toolCallId)?.abort());
    }
    subscription.on("close", () => this.#others.forEach((waiting) => waiting.abort()));
  }

  /** Takes no more calls, and waits for those that run. */
  async close(): Promise<void> {
    this.subscription.close();
    await this.idle();
    this.#stop.abort(new Error("closed"));
    await this.subscription.closed;
  }

  /** Waits until no call is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  #offer({ data }: StreamEvent<ToolInputAvailableFrame>): void {
    const { toolCallId, toolName, executionTarget, mayAnswer } = data;
    const remote = executionTarget === "client" || executionTarget === "external";
    if (!remote || mayAnswer === false || this.#running.has(toolCallId)) return;
    const work = this.#accept(data)
      .catch((thrown: unknown) => this.#parts.log(`call ${toolCallId} of ${toolName} was left`, thrown))
      .finally(() => this.#running.delete(toolCallId));
    this.#running.set(toolCallId, work);
  }

  async #accept(data: ToolInputAvailableFrame): Promise<void> {
    const { registry } = this.#parts;
    // A plugin may be about to bring the tool.
    await registry.settled();
    if (!this.#handler(data.toolName) && !registry.hasExecutor(data.toolName)) return;
    await this.#turn(() => this.#serve(data));
  }

  #handler(name: string): ToolHandler | undefined {
    const { tools } = this.#options;
    return tools && Object.hasOwn(tools, name) ? tools[name] : undefined;
  }

  /** Waits for a free place, then works. */
  async #turn(work: () => Promise<void>): Promise<void> {
    const { concurrency = Infinity } = this.#options;
    if (this.#active >= concurrency) await new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#active += 1;
    try {
      await work();
    } finally {
      this.#active -= 1;
      this.#queue.shift()?.();
    }
  }

  async #serve(frame: ToolInputAvailableFrame): Promise<void> {
    const { toolCallId, runId, waitId } = frame;
    const claimed = waitId !== undefined && this.#options.claim !== false;
    if (claimed && !(await this.#claim(waitId, toolCallId))) return;
    const renew = () => void this.#parts.waits.claim(waitId ?? "", this.#clientId).catch(() => undefined);
    const renewal = claimed ? setInterval(renew, RENEW_MS) : undefined;
    try {
      const outcome = await this.#run(frame);
      if (outcome) await this.#tell(runId, toolCallId, outcome);
    } finally {
      clearInterval(renewal);
    }
  }

  /**
   * Claims a call; `false` if it has ended. If another program has it, waits
   * until that one has answered or vanished.
   */
  async #claim(waitId: string, callId: string): Promise<boolean> {
    const waiting = new AbortController();
    this.#others.set(callId, waiting);
    try {
      for (;;) {
        try {
          await this.#parts.waits.claim(waitId, this.#clientId);
          return true;
        } catch (thrown) {
          if (!(thrown instanceof ToolyardError) || thrown.code !== "conflict") {
            this.#parts.log(`call ${callId} cannot be claimed`, messageOf(thrown));
            return false;
          }
        }
        await pause(RENEW_MS, waiting.signal);
      }
    } finally {
      this.#others.delete(callId);
    }
  }

  async #run(frame: ToolInputAvailableFrame): Promise<Outcome | undefined> {
    const { toolCallId, toolName, runId } = frame;
    const input = isFields(frame.input) ? frame.input : {};
    const call: ToolCall = toolCallOf({ toolCallId, toolName, args: input, runId });
    const handler = this.#handler(toolName);
    let later = false;
    const outcome = await this.#parts.runner.run(call, {
      signal: this.#stop.signal,
      progress: reporter((report) => {
        return this.#parts.tools.reportProgress(runId, { callId: toolCallId, clientId: this.#clientId, ...report });
      }),
      onToolCall:
        handler &&
        (async (_call, context) => {
          const answer = await handler(input as never, context);
          later = answer === undefined;
          // Anything but `undefined`, which would ask the registered tools.
          return later ? null : answer;
        }),
    });
    if (!later) return outcome;
    await this.#parts.runner.forget(toolCallId);
    return undefined;
  }

  /** Hands in an outcome, for as long as it takes. */
  async #tell(runId: string, callId: string, { result, error }: Outcome): Promise<void> {
    const body = error === undefined ? { callId, result } : { callId, error };
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.#parts.tools.submitRunResult(runId, { ...body, clientId: this.#clientId });
        break;
      } catch (thrown) {
        const refused = thrown instanceof ToolyardError && !thrown.passing;
        this.#parts.log(`result of ${callId} was not taken`, messageOf(thrown));
        // Somebody else was first, or the run is over: there is nobody to tell.
        if (refused) break;
        await this.#parts.door.rest(attempt, this.#stop.signal);
      }
    }
    await this.#parts.runner.forget(callId);
  }
}
