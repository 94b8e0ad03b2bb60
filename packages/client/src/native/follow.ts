import { backoff, follows, pause, type Door } from "../door.js";
import { messageOf, ToolyardError } from "../error.js";
import { eventsOf, EventSplitter, type ServerEvent } from "../sse.js";

/** A position ahead of every log: the gateway answers with a snapshot and goes on from there. */
export const NOW = "9007199254740991";
/** The gateway says something every 15 s; a connection that is silent for longer is dead. */
const SILENCE_MS = 45_000;

export interface FollowOptions {
  /** Continue after this event; nothing means from the beginning. */
  after?: string | undefined;
  signal: AbortSignal;
  /** A connection stands. */
  onOpen?: () => void;
  /** It broke; the next try is in `delayMs`. */
  onRetry?: (event: { delayMs: number; reason: string }) => void;
  silenceMs?: number | undefined;
  firstDelayMs?: number | undefined;
}

/**
 * The events of a native stream. It comes back with `Last-Event-ID` when the
 * connection breaks, so that no durable event is missing or comes twice. It
 * ends when the gateway says that there is nothing more, and throws what no
 * second try mends.
 */
export async function* follow(door: Door, path: string, options: FollowOptions): AsyncGenerator<ServerEvent, void, undefined> {
  const { signal, silenceMs = SILENCE_MS } = options;
  let { after } = options;
  let failures = 0;
  let refused = 0;
  let asked = options.firstDelayMs ?? 1000;
  while (!signal.aborted) {
    let reason = "the stream ended";
    let wait: number | undefined;
    const connection = new AbortController();
    follows(connection, signal);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => connection.abort(new Error("the stream was silent")), silenceMs);
    };
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (after !== undefined) headers["last-event-id"] = after;
      const response = await door.open("GET", path, { headers, signal: connection.signal, repeatable: false });
      refused = 0;
      if (response.status === 204 || !response.body) return;
      options.onOpen?.();
      heard();
      const splitter = new EventSplitter();
      for await (const event of eventsOf(response.body, { splitter, heard, signal: connection.signal })) {
        // Something came: the next trouble is a new one.
        failures = 0;
        if (event.id !== undefined) after = event.id;
        yield event;
      }
      if (options.firstDelayMs === undefined) asked = splitter.retryMs ?? asked;
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof ToolyardError && !thrown.passing) {
        // A token may have run out: the next one is asked for.
        refused += 1;
        if (thrown.status !== 401 || refused > 1) throw thrown;
      }
      reason = messageOf(thrown);
      if (thrown instanceof ToolyardError) wait = thrown.retryAfter;
    } finally {
      clearTimeout(timer);
      connection.abort();
    }
    const delayMs = backoff(failures, wait, asked);
    failures += 1;
    options.onRetry?.({ delayMs, reason });
    await pause(delayMs, signal).catch(() => undefined);
  }
}
