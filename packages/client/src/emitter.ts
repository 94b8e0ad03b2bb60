/** Tells listeners of events. A listener that throws stops nobody. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>();

  /** Listens. The answer stops it. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void {
    let set = this.#listeners.get(name);
    if (!set) this.#listeners.set(name, (set = new Set()));
    set.add(listener as (event: never) => void);
    return () => set.delete(listener as (event: never) => void);
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        // A listener may be async although its type does not say so.
        const done: unknown = (listener as (event: Events[Name]) => unknown)(event);
        if (done instanceof Promise) done.catch(report);
      } catch (thrown) {
        report(thrown);
      }
    }
  }
}

/** A fault in somebody's listener shows as one of theirs. */
function report(thrown: unknown): void {
  queueMicrotask(() => console.error("toolyard: a listener failed:", thrown));
}
