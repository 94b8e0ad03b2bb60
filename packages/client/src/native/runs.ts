import { path, type Door } from "../door.js";
import { ToolyardError } from "../error.js";
import type { Frame, RunFinishedFrame, RunView } from "../protocol.js";
import { idempotencyKey } from "./once.js";
import { Subscription, type SubscribeOptions } from "./subscription.js";

/** Units of work: `client.runs`. */
export class Runs {
  readonly #door: Door;

  constructor(door: Door) {
    this.#door = door;
  }

  /** Starts a run on what a space says (secret key). */
  async create(run: {
    smartSpaceId: string;
    agentEntityId: string;
    triggeredById?: string;
    model?: string;
    metadata?: unknown;
  }): Promise<{ runId: string; status: string; streamUrl: string }> {
    return this.#door.json("POST", "/api/runs", { body: run, headers: idempotencyKey(), repeatable: true });
  }

  async get(runId: string): Promise<RunView> {
    return (await this.#door.json<{ run: RunView }>("GET", path`/api/runs/${runId}`)).run;
  }

  async events(runId: string, query: { limit?: number; afterSeq?: number } = {}): Promise<Frame[]> {
    return (await this.#door.json<{ events: Frame[] }>("GET", path`/api/runs/${runId}/events`, { query })).events;
  }

  /**
   * Starts a run that has what another one had before a step, and does that
   * step and what follows anew. Nothing before it is executed again.
   */
  async replay(
    runId: string,
    from: { step?: number; model?: string; metadata?: unknown } = {},
  ): Promise<{ runId: string; status: string; streamUrl: string }> {
    const asking = { body: from, headers: idempotencyKey(), repeatable: true };
    return this.#door.json("POST", path`/api/runs/${runId}/replay`, asking);
  }

  /** Stops a run (secret key). */
  async cancel(runId: string, reason?: string): Promise<void> {
    await this.#door.json("POST", path`/api/runs/${runId}/cancel`, { body: { reason }, repeatable: true });
  }

  /** Follows a run from its beginning to its end. */
  subscribe(runId: string, options: SubscribeOptions = {}): Subscription {
    return new Subscription(this.#door, path`/api/runs/${runId}/stream`, { from: "start", ...options });
  }

  /** Waits until a run has ended, and gives its last frame. */
  async finished(runId: string, options: { signal?: AbortSignal } = {}): Promise<RunFinishedFrame> {
    for await (const { data } of this.subscribe(runId, options)) {
      if (data.type === "run.completed" || data.type === "run.failed" || data.type === "run.canceled") return data;
    }
    options.signal?.throwIfAborted();
    throw new ToolyardError("stream_cut", `The stream of run ${runId} ended before the run`);
  }
}
