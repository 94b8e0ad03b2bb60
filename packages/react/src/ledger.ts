import type { ToolyardClient, WaitView } from "@toolyard/client";
import { Store } from "./store.js";

/** What runs wait for, as this page knows it. */
export interface LedgerView {
  waits: readonly WaitView[];
  isLoading: boolean;
  error: Error | undefined;
}

/** How often an open page looks by itself. */
const POLL_MS = 5_000;

/**
 * The open waits that this user may see. Everybody on the page shares one
 * list; it is read anew when something happened, when the page is looked at,
 * and every few seconds while somebody follows it.
 */
export class Ledger {
  readonly #client: ToolyardClient;
  readonly #store = new Store<LedgerView>({ waits: [], isLoading: true, error: undefined });
  #followers = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #reading: Promise<void> | undefined;
  #again = false;
  #text = "";

  constructor(client: ToolyardClient) {
    this.#client = client;
  }

  readonly get = (): LedgerView => this.#store.get();

  readonly subscribe = (listener: () => void): (() => void) => {
    const off = this.#store.subscribe(listener);
    if (this.#followers++ === 0) this.#begin();
    let over = false;
    return () => {
      off();
      if (over) return;
      over = true;
      if (--this.#followers === 0) this.#end();
    };
  };

  /** Something happened that may have opened or ended a wait. */
  touch(): void {
    if (this.#followers > 0) void this.refresh();
  }

  /** Reads the list again. */
  readonly refresh = (): Promise<void> => {
    if (this.#reading) {
      // What was asked before the change does not show it.
      this.#again = true;
      return this.#reading;
    }
    const reading = this.#read().finally(() => (this.#reading = undefined));
    this.#reading = reading;
    return reading;
  };

  async #read(): Promise<void> {
    do {
      this.#again = false;
      try {
        const waits = await this.#client.waits.list({ limit: 200 });
        this.#show({ waits, isLoading: false, error: undefined });
      } catch (thrown) {
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        this.#show({ ...this.get(), isLoading: false, error });
      }
    } while (this.#again);
  }

  #show(view: LedgerView): void {
    const text = JSON.stringify([view.waits, view.isLoading, view.error?.message]);
    if (text === this.#text) return;
    this.#text = text;
    this.#store.set(view);
  }

  #begin(): void {
    void this.refresh();
    this.#timer = setInterval(() => {
      if (document.visibilityState !== "hidden") void this.refresh();
    }, POLL_MS);
    document.addEventListener("visibilitychange", this.#seen);
  }

  #end(): void {
    clearInterval(this.#timer);
    document.removeEventListener("visibilitychange", this.#seen);
  }

  readonly #seen = () => {
    if (document.visibilityState !== "hidden") void this.refresh();
  };
}
