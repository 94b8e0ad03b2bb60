/** Whether tabs of this browser can take turns. Pages without TLS cannot. */
export function hasLocks(): boolean {
  return typeof navigator !== "undefined" && navigator.locks !== undefined;
}

/**
 * Works while no other tab of this browser works under the same name; tabs
 * that vanish let go. Where a browser has no locks, claims at the gateway
 * alone keep pages apart.
 */
export function exclusively<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  return hasLocks() ? (navigator.locks.request(`toolyard:${name}`, work) as Promise<Value>) : work();
}

/** A name that nobody else has. */
export function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
}
