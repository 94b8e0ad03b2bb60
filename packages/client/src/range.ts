import { ToolyardError } from "./error.js";

type Version = readonly [major: number, minor: number, patch: number, pre: string];

const VERSION = /^v?(\d+)(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?(?:-([0-9A-Za-z.-]+))?(?:\+\S*)?$/;

function parse(text: string): { version: Version; given: number } | undefined {
  const found = VERSION.exec(text.trim());
  if (!found) return undefined;
  const numbers = [found[1], found[2], found[3]];
  const given = numbers.findIndex((n) => n === undefined || /[x*]/.test(n));
  const at = (i: number) => (given >= 0 && i >= given ? 0 : Number(numbers[i]));
  return { version: [at(0), at(1), at(2), found[4] ?? ""], given: given < 0 ? 3 : given };
}

function compare(a: Version, b: Version): number {
  for (const i of [0, 1, 2] as const) if (a[i] !== b[i]) return a[i] - b[i];
  if (a[3] === b[3]) return 0;
  // A release comes after its previews.
  if (a[3] === "" || b[3] === "") return a[3] === "" ? 1 : -1;
  return a[3] < b[3] ? -1 : 1;
}

function step([major, minor, patch]: Version, place: number): Version {
  if (place === 0) return [major + 1, 0, 0, ""];
  return place === 1 ? [major, minor + 1, 0, ""] : [major, minor, patch + 1, ""];
}

/** Whether one comparison, such as `^1.2` or `>=1`, holds. `undefined`: it is none. */
function holds(version: Version, text: string): boolean | undefined {
  if (text === "*" || text === "x" || text === "latest") return true;
  const found = /^(\^|~|>=|<=|>|<|=)?(.+)$/.exec(text);
  const bound = found && parse(found[2] ?? "");
  if (!bound) return undefined;
  const { version: low, given } = bound;
  const order = compare(version, low);
  // Everything that the written numbers stand for: 1.2 is 1.2.0 up to 1.3.0.
  const above = given < 3 && compare(version, step(low, given - 1)) >= 0;
  switch (found[1]) {
    case ">=":
      return order >= 0;
    case ">":
      return given < 3 ? above : order > 0;
    case "<":
      return order < 0;
    case "<=":
      return given < 3 ? !above : order <= 0;
    case "^": {
      const first = [0, 1, 2].find((i) => low[i as 0] > 0 || i === given - 1) ?? 2;
      return order >= 0 && compare(version, step(low, first)) < 0;
    }
    case "~":
      return order >= 0 && compare(version, step(low, given === 1 ? 0 : 1)) < 0;
    default:
      return given < 3 ? order >= 0 && !above : order === 0;
  }
}

/**
 * Whether a version lies in a range: `1.2.3`, `1.x`, `^1.2`, `~1.2.3`,
 * `>=1 <3`, `1 || 2`, `*`.
 */
export function inRange(version: string, range: string): boolean {
  const parsed = parse(version)?.version;
  const every = (part: string) =>
    part
      .replace(/(\^|~|>=|<=|>|<|=)\s+/g, "$1")
      .split(/\s+/)
      .filter(Boolean)
      .map((text) => {
        const found = holds(parsed ?? [0, 0, 0, ""], text);
        if (found === undefined) throw new ToolyardError("plugin_refused", `"${range}" is not a version range`);
        return found;
      })
      .every(Boolean);
  const any = range.split("||").map(every).some(Boolean);
  // A version that is no number fits only a range that allows everything.
  return parsed ? any : range.trim() === "*";
}

/** Whether two releases speak the same protocol: same major, below 1 same minor. */
export function sameLine(a: string, b: string): boolean {
  const [one, two] = [parse(a)?.version, parse(b)?.version];
  if (!one || !two) return true;
  return one[0] === two[0] && (one[0] > 0 || one[1] === two[1]);
}

/** Splits `name@range`. A name may begin with `@`; a missing range is `*`. */
export function requirement(text: string): { name: string; range: string } {
  const at = text.lastIndexOf("@");
  return at > 0 ? { name: text.slice(0, at), range: text.slice(at + 1) || "*" } : { name: text, range: "*" };
}
