/** A header with which a request has one effect, however often it is sent. */
export function idempotencyKey(): Record<string, string> {
  return { "idempotency-key": randomId("once") };
}

/** An id that nobody else has. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `${prefix}_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
