/** One server-sent event. */
export interface ServerEvent {
  /** The position to come back to, if this event has one. */
  id?: string;
  /** `message` if the stream names none. */
  event: string;
  data: string;
}

/**
 * Splits bytes into server-sent events. It keeps what is unfinished between
 * pieces, so it does not matter where the network cuts: inside a character,
 * between CR and LF, before the blank line.
 */
export class EventSplitter {
  /** What the server asks to wait before the next connection. */
  retryMs: number | undefined;
  readonly #decoder = new TextDecoder("utf-8");
  #rest = "";
  #afterCr = false;
  #id: string | undefined;
  #event = "";
  #data: string[] = [];

  /** Takes the next piece, gives the events that it completes. */
  push(bytes: Uint8Array): ServerEvent[] {
    return this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The stream is over. An event without its blank line is not delivered. */
  end(): ServerEvent[] {
    return this.#take(this.#decoder.decode());
  }

  #take(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    if (text === "") return events;
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
    this.#afterCr = text === "" ? false : text.endsWith("\r");
    const lines = text.split(/\r\n|\r|\n/);
    const last = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.#line(this.#rest + line);
      this.#rest = "";
      if (event) events.push(event);
    }
    this.#rest += last;
    return events;
  }

  #line(line: string): ServerEvent | undefined {
    if (line === "") return this.#flush();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  #flush(): ServerEvent | undefined {
    const data = this.#data;
    const event: ServerEvent = { event: this.#event || "message", data: data.join("\n") };
    if (this.#id !== undefined) event.id = this.#id;
    this.#data = [];
    this.#event = "";
    this.#id = undefined;
    return data.length > 0 ? event : undefined;
  }
}

export interface ReadOptions {
  splitter?: EventSplitter;
  /** Told of every piece, also of those that complete no event. */
  heard?: () => void;
  /** Ends the reading by itself: in Node 20 the signal of a fetch is sometimes not heard. */
  signal?: AbortSignal;
}

/** The events of a response body, until it ends. */
export async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  { splitter = new EventSplitter(), heard, signal }: ReadOptions = {},
): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = body.getReader();
  const leave = () => reader.cancel().catch(() => undefined);
  let done = false;
  signal?.addEventListener("abort", leave);
  try {
    for (;;) {
      const piece = await reader.read();
      signal?.throwIfAborted();
      heard?.();
      if (piece.done) {
        done = true;
        yield* splitter.end();
        return;
      }
      yield* splitter.push(piece.value);
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    // A reader that leaves early closes the connection.
    if (!done) await leave();
    reader.releaseLock();
  }
}
