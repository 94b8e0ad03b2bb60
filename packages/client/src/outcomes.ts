/** What became of a call in this program. */
export type StoredOutcome = { state: "started" } | { state: "done"; result?: unknown; error?: string };

/**
 * Remembers calls by id, so that a program that stops between doing and
 * telling does not do it twice. `get`, `set` and `delete` may be async.
 */
export interface OutcomeStore {
  get(callId: string): StoredOutcome | undefined | Promise<StoredOutcome | undefined>;
  set(callId: string, outcome: StoredOutcome): void | Promise<void>;
  /** The gateway has it. */
  delete(callId: string): void | Promise<void>;
}

/** Remembers as long as the process lives. */
export function memoryOutcomes(): OutcomeStore {
  const map = new Map<string, StoredOutcome>();
  return {
    get: (id) => map.get(id),
    set: (id, outcome) => void map.set(id, outcome),
    delete: (id) => void map.delete(id),
  };
}

/** Remembers in a browser, also over a reload. */
export function storageOutcomes(
  storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> = localStorage,
  prefix = "toolyard_outcome:",
): OutcomeStore {
  return {
    get(id) {
      const text = storage.getItem(prefix + id);
      try {
        return text === null ? undefined : (JSON.parse(text) as StoredOutcome);
      } catch {
        // Somebody began, and what came of it cannot be read.
        return { state: "started" };
      }
    },
    set: (id, outcome) => storage.setItem(prefix + id, JSON.stringify(outcome)),
    delete: (id) => storage.removeItem(prefix + id),
  };
}
