import { Store } from "../store.js";

/** Where the selection is kept: `"<serviceId>:<toolName>" -> boolean`; missing means selected. */
export const SELECTION_KEY = "mcp-client-tool-selection";
/** Told in the same tab, where the browser's `storage` event is silent. */
export const STORAGE_CHANGED = "localStorageChange";

/** What `localStorageChange` carries. */
export interface StorageChange {
  key: string;
  newValue: string | null;
}

declare global {
  interface WindowEventMap {
    [STORAGE_CHANGED]: CustomEvent<StorageChange>;
  }
}

/** The picked tools by key. */
export type Selection = Readonly<Record<string, boolean>>;

/** The name of a tool in a selection. */
export function selectionKey(serviceId: string, toolName: string): string {
  return `${serviceId}:${toolName}`;
}

/** Writes a key of the page's storage and tells this tab; other tabs hear it by themselves. */
export function writeStorage(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Full or forbidden: this tab still follows.
  }
  window.dispatchEvent(new CustomEvent<StorageChange>(STORAGE_CHANGED, { detail: { key, newValue: value } }));
}

/** Reads a key; what cannot be read counts as missing. */
export function readStorage(key: string): string | null {
  try {
    return typeof localStorage === "undefined" ? null : localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Hears of changes of a key in this tab and in others. The answer stops it. */
export function onStorage(key: string, hear: (value: string | null) => void): () => void {
  if (typeof window === "undefined") return () => undefined;
  const here = (event: WindowEventMap[typeof STORAGE_CHANGED]) => {
    if (event.detail?.key === key) hear(event.detail.newValue);
  };
  const elsewhere = (event: StorageEvent) => {
    // A key of null means that all of the storage was cleared.
    if (event.key === null) hear(null);
    else if (event.key === key && event.oldValue !== event.newValue) hear(event.newValue);
  };
  window.addEventListener(STORAGE_CHANGED, here);
  window.addEventListener("storage", elsewhere);
  return () => {
    window.removeEventListener(STORAGE_CHANGED, here);
    window.removeEventListener("storage", elsewhere);
  };
}

/** Which tools people picked, in step with the storage. */
export class SelectionStore {
  readonly #store = new Store<Selection>({});
  #listening = 0;
  #off: (() => void) | undefined;
  #text: string | null = null;

  constructor() {
    this.#read(readStorage(SELECTION_KEY));
  }

  readonly get = (): Selection => this.#store.get();

  readonly subscribe = (listener: () => void): (() => void) => {
    if (this.#listening++ === 0) {
      this.#off = onStorage(SELECTION_KEY, (text) => this.#read(text));
      // It may have changed while nobody listened.
      this.#read(readStorage(SELECTION_KEY));
    }
    const off = this.#store.subscribe(listener);
    let over = false;
    return () => {
      off();
      if (over) return;
      over = true;
      if (--this.#listening === 0) this.#off?.();
    };
  };

  /** Missing means selected. */
  isSelected(key: string): boolean {
    return this.get()[key] !== false;
  }

  /** Picks tools, or not. */
  select(keys: readonly string[], selected: boolean): void {
    // Another tab may have written what this one has not heard yet.
    const next: Record<string, boolean> = { ...parse(readStorage(SELECTION_KEY)) };
    for (const key of keys) next[key] = selected;
    const text = JSON.stringify(next);
    this.#read(text);
    writeStorage(SELECTION_KEY, text);
  }

  #read(text: string | null): void {
    if (text === this.#text) return;
    this.#text = text;
    this.#store.set(parse(text));
  }
}

function parse(text: string | null): Selection {
  try {
    const value: unknown = text === null ? {} : JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(Object.entries(value).filter(([, picked]) => typeof picked === "boolean"));
  } catch {
    return {};
  }
}
