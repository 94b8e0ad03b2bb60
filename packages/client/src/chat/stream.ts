import type { ChatChunk } from "./chunk.js";
import type { ChatResponse } from "./response.js";

/**
 * An answer under way. Iterate over it, or await `response`, or both. Nothing
 * is asked before one of them begins; who iterates sets the pace, so a tool
 * runs only after its call was read.
 */
export class ChatStream implements AsyncIterable<ChatChunk> {
  /** The chat. */
  readonly id: string;
  /** Ends the run on the gateway, and this stream. */
  readonly stop: () => Promise<void>;
  readonly #source: AsyncGenerator<ChatChunk, ChatResponse, undefined>;
  readonly #abort: (reason?: unknown) => void;
  readonly #response: Promise<ChatResponse>;
  #settle!: { resolve: (response: ChatResponse) => void; reject: (reason: unknown) => void };
  /** What was read for `response` before somebody came to iterate. */
  readonly #read: ChatChunk[] = [];
  #iterated = false;
  #draining: Promise<void> | undefined;

  constructor(
    id: string,
    source: AsyncGenerator<ChatChunk, ChatResponse, undefined>,
    abort: (reason?: unknown) => void,
    stop: () => Promise<void>,
  ) {
    this.id = id;
    this.#source = source;
    this.#abort = abort;
    this.#response = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    // Who does not ask for it has heard of the failure by iterating.
    this.#response.catch(() => undefined);
    this.stop = async () => {
      await stop();
      this.abort();
    };
  }

  /** All of the answer, when it is over. */
  get response(): Promise<ChatResponse> {
    // A loop that begins right after this line comes first.
    setTimeout(() => {
      if (!this.#iterated) this.#draining ??= this.#drain();
    });
    return this.#response;
  }

  /** Stops reading. The run goes on. */
  abort(reason?: unknown): void {
    this.#abort(reason ?? new DOMException("The chat was aborted", "AbortError"));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatChunk, void, undefined> {
    if (this.#iterated) throw new TypeError("A chat stream can be iterated once");
    this.#iterated = true;
    let whole = false;
    try {
      // What `response` has begun to read ends with the piece under way.
      await this.#draining;
      for (;;) {
        const next = this.#read.shift() ?? (await this.#pull());
        if (!next) break;
        yield next;
      }
      whole = true;
    } finally {
      if (!whole) {
        this.abort();
        await this.#source.return(undefined as never).catch(() => undefined);
        this.#settle.reject(new DOMException("The chat was left before its end", "AbortError"));
      }
    }
  }

  async #pull(): Promise<ChatChunk | undefined> {
    try {
      const next = await this.#source.next();
      if (!next.done) return next.value;
      // A generator that has ended says so again, with nothing.
      if (next.value) this.#settle.resolve(next.value);
      // Lets go of the caller's signal.
      this.#abort();
      return undefined;
    } catch (thrown) {
      this.#settle.reject(thrown);
      throw thrown;
    }
  }

  async #drain(): Promise<void> {
    try {
      while (!this.#iterated) {
        const next = await this.#pull();
        if (!next) return;
        this.#read.push(next);
      }
    } catch {
      // `response` tells it.
    }
  }
}
