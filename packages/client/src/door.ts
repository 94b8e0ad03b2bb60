import { refusalOf, ToolyardError } from "./error.js";

import { sameLine } from "./range.js";
import { VERSION } from "./version.js";

type Maybe<Value> = Value | (() => Value | Promise<Value>);

/** Who asks. Functions are asked again for each request. */
export type Auth =
  | { secretKey: Maybe<string> }
  | { publicKey: Maybe<string>; token: Maybe<string> }
  | { headers: Maybe<Record<string, string>> };

export interface DoorOptions {
  baseUrl: string;
  auth?: Auth | undefined;
  fetch?: typeof fetch | undefined;
  /** How long an answer may take to begin. */
  requestTimeoutMs?: number | undefined;
  /** How often a request is repeated that may be. */
  retries?: number | undefined;
  /** The first pause before that, in milliseconds; it doubles up to 30 s. 500 if missing. */
  retryMs?: number | undefined;
}

export interface Asking {
  query?: Record<string, string | number | undefined> | undefined;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Sending it again has no second effect. */
  repeatable?: boolean;
}

/** Every request of the client goes through here. */
export class Door {
  readonly #base: string;
  readonly #auth: Auth | undefined;
  readonly #fetch: typeof fetch;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #retryMs: number;
  readonly #warn: (message: string) => void;
  readonly #told = new Set<string>();

  constructor(options: DoorOptions, warn: (message: string) => void) {
    if (!options.baseUrl) throw new ToolyardError("bad_request", "ToolyardClient needs a baseUrl");
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#auth = options.auth;
    // Browsers refuse a fetch that is called on another object.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#timeoutMs = options.requestTimeoutMs ?? 30_000;
    this.#retries = options.retries ?? 4;
    this.#retryMs = options.retryMs ?? 500;
    this.#warn = warn;
  }

  /** Asks, and reads the answer as JSON. */
  async json<Answer>(method: string, path: string, asking: Asking = {}): Promise<Answer> {
    const whole = new AbortController();
    follows(whole, asking.signal);
    const response = await this.open(method, path, { ...asking, signal: whole.signal });
    const text = await response.text();
    whole.abort();
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }

  /** Asks, and gives the answer unread. A refusal is thrown. */
  async open(method: string, path: string, asking: Asking = {}): Promise<Response> {
    const repeatable = asking.repeatable ?? method === "GET";
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#once(method, path, asking);
      } catch (thrown) {
        const passing = thrown instanceof ToolyardError && thrown.passing;
        if (!repeatable || !passing || attempt >= this.#retries) throw thrown;
        await this.rest(attempt, asking.signal, thrown.retryAfter);
      }
    }
  }

  /** The pause before the next try. */
  rest(attempt: number, signal?: AbortSignal, retryAfter?: number): Promise<void> {
    return pause(backoff(attempt, retryAfter, this.#retryMs), signal);
  }

  async #once(method: string, path: string, asking: Asking): Promise<Response> {
    const headers: Record<string, string> = {
      ...(await this.#credentials()),
      "x-toolyard-sdk": `client/${VERSION}`,
      ...asking.headers,
    };
    const init: RequestInit = { method, headers };
    if (asking.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(asking.body);
    }
    asking.signal?.throwIfAborted();
    const stop = new AbortController();
    const timer = setTimeout(() => {
      late = true;
      stop.abort();
    }, this.#timeoutMs);
    let late = false;
    follows(stop, asking.signal);
    init.signal = stop.signal;
    let response: Response;
    try {
      const aborted = new Promise<never>((_, reject) => {
        stop.signal.addEventListener("abort", () => reject(stop.signal.reason as Error), { once: true });
      });
      response = await Promise.race([this.#fetch(this.#base + path + search(asking.query), init), aborted]);
    } catch (cause) {
      asking.signal?.throwIfAborted();
      const why = late ? `did not answer within ${this.#timeoutMs} ms` : "cannot be reached";
      throw new ToolyardError("network", `The gateway at ${this.#base} ${why}`, { cause });
    } finally {
      clearTimeout(timer);
    }
    this.#read(response.headers);
    if (response.ok) return response;
    throw await refusalOf(response);
  }

  async #credentials(): Promise<Record<string, string>> {
    const auth = this.#auth;
    if (!auth) return {};
    if ("headers" in auth) return await valueOf(auth.headers);
    if ("secretKey" in auth) return { "x-secret-key": await valueOf(auth.secretKey) };
    const [key, token] = [await valueOf(auth.publicKey), await valueOf(auth.token)];
    return { "x-public-key": key, authorization: `Bearer ${token}` };
  }

  /** The gateway says its version, and what it cannot do. */
  #read(headers: Headers): void {
    const version = headers.get("x-toolyard-version");
    if (version && !sameLine(version, VERSION)) {
      this.#tell(`The gateway is Toolyard ${version}, this SDK is ${VERSION}: some things may not work`);
    }
    const warning = headers.get("x-toolyard-warning");
    if (warning) this.#tell(warning);
  }

  #tell(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#warn(message);
  }
}

async function valueOf<Value>(given: Maybe<Value>): Promise<Value> {
  return typeof given === "function" ? await (given as () => Value | Promise<Value>)() : given;
}

function search(query: Asking["query"]): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  return given.length > 0 ? `?${new URLSearchParams(given as [string, string][])}` : "";
}

/** Milliseconds before the next try: doubling, up to 30 s, with some chance. */
export function backoff(attempt: number, retryAfter: number | undefined, first: number): number {
  const wait = Math.min(first * 2 ** attempt, 30_000);
  return Math.max(wait * (0.75 + Math.random() / 2), (retryAfter ?? 0) * 1000);
}

/** Waits, unless the signal says otherwise: then it throws. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop);
  });
}

/**
 * Aborts with a signal. The platform's own `AbortSignal.any` may be collected
 * as garbage in Node 20 while somebody still waits for it.
 */
export function follows(controller: AbortController, signal: AbortSignal | undefined): void {
  if (signal?.aborted) controller.abort(signal.reason);
  // An abort of the controller also takes the listener away.
  else signal?.addEventListener("abort", () => controller.abort(signal.reason), { once: true, signal: controller.signal });
}

/** A path with its parts made safe. */
export function path(parts: TemplateStringsArray, ...values: string[]): string {
  return parts.reduce((whole, part, at) => whole + encodeURIComponent(values[at - 1] ?? "") + part);
}

