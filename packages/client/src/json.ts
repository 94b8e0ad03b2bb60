/** A JSON object. */
export type Fields = Record<string, unknown>;

/** Whether the value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses text, or answers `undefined`. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Opens a value that somebody encoded twice: text that holds an object or an
 * array. Other text is meant as text, also if it looks like a number.
 */
export function decodeTwice(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[{["]/.test(value)) return value;
  const inside = parseJson(value);
  if (typeof inside === "object" && inside !== null) return inside;
  if (typeof inside === "string") {
    const decoded = decodeTwice(inside);
    if (typeof decoded === "object" && decoded !== null) return decoded;
  }
  return value;
}
