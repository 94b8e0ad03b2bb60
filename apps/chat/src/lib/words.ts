/** Times and numbers for people. */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export function ago(at: string | number | undefined, now = Date.now()): string {
  if (at === undefined) return "";
  const then = typeof at === "number" ? at : Date.parse(at);
  if (Number.isNaN(then)) return "";
  const past = now - then;
  if (past < 0) return `in ${span(-past)}`;
  if (past < 45_000) return "just now";
  if (past > 7 * DAY) return new Date(then).toLocaleDateString(undefined, { dateStyle: "medium" });
  return `${span(past)} ago`;
}

/** A length of time in its largest unit. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < MINUTE) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 60 * MINUTE) return `${Math.round(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.round(ms / (60 * MINUTE))} h`;
  return `${Math.round(ms / DAY)} d`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** Millionths of a dollar as dollars. */
export function dollars(millionths: number): string {
  const value = millionths / 1e6;
  return `$${value < 0.01 ? value.toFixed(4) : value.toFixed(2)}`;
}

/** `write_file` as "Write file". */
export function human(name: string): string {
  const words = name.replace(/[_-]+/g, " ").replace(/([a-z0-9])([A-Z])/g, "$1 $2").trim().toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function pretty(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
