import { follows, type Door } from "../door.js";
import { Emitter } from "../emitter.js";
import { ToolyardError } from "../error.js";
import { decodeTwice, isFields, parseJson } from "../json.js";
import type { Frame, WaitView } from "../protocol.js";
import { follow, NOW } from "./follow.js";

/** A frame of a native stream. */
export interface StreamEvent<Data = Frame> {
  /** Only durable events have one. */
  id?: string;
  type: string;
  data: Data;
}

/** The frames of a union that may have a name. */
type Named<Each, Name> = Each extends { type: infer Types } ? (Name extends Types ? Each : never) : never;

/** Frames by their name, and what the connection does. */
export type SubscriptionEvents = { [Name in Frame["type"]]: StreamEvent<Named<Frame, Name>> } & {
  /** Every frame, also those that this release does not know. */
  "*": StreamEvent;
  open: Record<string, never>;
  reconnecting: { delayMs: number; reason: string };
  /** No second try mends it; the subscription is closed. */
  error: ToolyardError;
  close: Record<string, never>;
};

export interface SubscribeOptions {
  /**
   * Where to begin: `now` (with the calls that are open), `start`, or after
   * the event with this id.
   */
  from?: "now" | "start" | (string & {}) | number;
  signal?: AbortSignal;
  /** Silence after which a connection counts as dead. */
  silenceMs?: number;
  /** The first pause before coming back; it doubles up to 30 s. */
  retryMs?: number;
}

/** A stream of a space or a run, which comes back by itself. */
export class Subscription implements AsyncIterable<StreamEvent> {
  readonly #emitter = new Emitter<SubscriptionEvents>();
  readonly #stop = new AbortController();
  readonly #offs = new Map<unknown, () => void>();
  /** Calls that were told, so that a snapshot does not tell them again. */
  readonly #told = new Set<string>();
  /** Ends when the stream has. */
  readonly closed: Promise<void>;
  #lastId: string | undefined;

  constructor(door: Door, path: string, { from = "now", signal, silenceMs, retryMs }: SubscribeOptions) {
    const after = from === "now" ? NOW : from === "start" ? undefined : String(from);
    const stop = this.#stop;
    follows(stop, signal);
    // Later than this call, so that listeners are there before the first event.
    this.closed = Promise.resolve().then(() =>
      this.#run(door, path, { after, signal: stop.signal, silenceMs, firstDelayMs: retryMs }),
    );
  }

  /** Listens to frames of a name, to `*`, or to the connection. */
  on<Name extends keyof SubscriptionEvents>(name: Name, listener: (event: SubscriptionEvents[Name]) => unknown): this {
    this.#offs.set(listener, this.#emitter.on(name, listener as (event: SubscriptionEvents[Name]) => void));
    return this;
  }

  /** Listens no more. */
  off(listener: unknown): this {
    this.#offs.get(listener)?.();
    this.#offs.delete(listener);
    return this;
  }

  /** The id of the last durable event, for `from`. */
  get lastEventId(): string | undefined {
    return this.#lastId;
  }

  close(): void {
    this.#stop.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent, void, undefined> {
    const queue: StreamEvent[] = [];
    let failure: ToolyardError | undefined;
    let wake: (() => void) | undefined;
    let over = false;
    const push = (event: StreamEvent) => {
      queue.push(event);
      wake?.();
    };
    const fail = (error: ToolyardError) => (failure = error);
    this.on("*", push).on("error", fail);
    void this.closed.then(() => {
      over = true;
      wake?.();
    });
    try {
      for (;;) {
        const next = queue.shift();
        if (next) yield next;
        else if (failure) throw failure;
        else if (over) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.off(push).off(fail);
      this.close();
    }
  }

  async #run(door: Door, path: string, options: Omit<Parameters<typeof follow>[2], "onOpen" | "onRetry">): Promise<void> {
    try {
      const events = follow(door, path, {
        ...options,
        onOpen: () => this.#emitter.emit("open", {}),
        onRetry: (event) => this.#emitter.emit("reconnecting", event),
      });
      for await (const { id, event, data } of events) {
        if (id !== undefined) this.#lastId = id;
        const frame = decodeTwice(parseJson(data));
        if (!isFields(frame)) continue;
        const type = typeof frame["type"] === "string" ? frame["type"] : event;
        this.#tell({ ...(id === undefined ? {} : { id }), type, data: { ...frame, type } as unknown as Frame });
      }
    } catch (thrown) {
      const error = thrown instanceof ToolyardError ? thrown : new ToolyardError("network", String(thrown), { cause: thrown });
      this.#emitter.emit("error", error);
    } finally {
      this.#stop.abort();
      this.#emitter.emit("close", {});
    }
  }

  #tell(event: StreamEvent): void {
    const { data } = event;
    if (data.type === "tool-input-available") {
      if (this.#told.has(data.toolCallId)) return;
      this.#told.add(data.toolCallId);
    } else if (data.type === "tool-output-available" || data.type === "tool-error") this.#told.delete(data.toolCallId);
    this.#emitter.emit(event.type as Frame["type"], event as never);
    this.#emitter.emit("*", event);
    // Whoever comes late still learns of the calls that wait.
    if (data.type === "reset") for (const wait of data.waits) if (wait.kind === "client") this.#tell(announced(wait));
  }
}

/** An open call, told as if it had just been announced. */
export function announced(wait: WaitView): StreamEvent {
  const { toolCallId, toolName, runId, mayAnswer, id: waitId } = wait;
  const data = {
    type: "tool-input-available",
    runId,
    seq: 0,
    ts: wait.openedAt,
    toolCallId,
    toolName,
    input: wait.payload,
    executionTarget: "client",
    waitId,
    kind: "client",
    mayAnswer,
    ...(wait.smartSpaceId === undefined ? {} : { smartSpaceId: wait.smartSpaceId }),
    ...(wait.expiresAt === undefined ? {} : { expiresAt: wait.expiresAt }),
  };
  return { type: data.type, data: data as Frame };
}
