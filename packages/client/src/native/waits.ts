import { path, type Door } from "../door.js";
import type { WaitKind, WaitView } from "../protocol.js";

export interface WaitQuery {
  runId?: string;
  smartSpaceId?: string;
  limit?: number;
}

/** The answer to a wait. */
export interface WaitAnswer {
  decision?: "allow" | "deny";
  /** Other arguments than the ones asked for, with `allow`. */
  editedArgs?: unknown;
  /** Why not, with `deny`. */
  message?: string;
  value?: unknown;
  remember?: "once" | "session" | "always" | "alwaysThese";
  /** Of the question, so that the answer is for what was shown. */
  argsHash?: string;
}

/** What runs wait for: `client.waits`. */
export class Waits {
  readonly #door: Door;

  constructor(door: Door) {
    this.#door = door;
  }

  async list(query: WaitQuery & { kind?: WaitKind } = {}): Promise<WaitView[]> {
    return this.#read("/api/waits", query);
  }

  /** Calls that wait for a client. */
  async pendingCalls(query: WaitQuery = {}): Promise<WaitView[]> {
    return this.#read("/api/pending-calls", query);
  }

  /** Calls that wait for a yes or no. */
  async approvals(query: WaitQuery = {}): Promise<WaitView[]> {
    return this.#read("/api/approvals", query);
  }

  /** Says "mine" for a minute. Another client's claim, or an ended wait, is an error. */
  async claim(waitId: string, clientId: string): Promise<{ waitId: string; clientId: string; claimedUntil: string }> {
    return this.#door.json("POST", path`/api/waits/${waitId}/claim`, { body: { clientId }, repeatable: true });
  }

  async answer(waitId: string, answer: WaitAnswer): Promise<void> {
    await this.#door.json("POST", path`/api/waits/${waitId}/answer`, { body: answer, repeatable: true });
  }

  async #read(from: string, query: WaitQuery & { kind?: WaitKind }): Promise<WaitView[]> {
    return (await this.#door.json<{ waits: WaitView[] }>("GET", from, { query: { ...query } })).waits;
  }
}
