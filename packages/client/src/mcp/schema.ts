import { MAX_PROPERTIES, MAX_SCHEMA_DEPTH } from "../definitions.js";
import { isFields, type Fields } from "../json.js";
import type { FunctionParameters } from "../types.js";

/** Keywords with schemas inside: by name, in a list, alone. */
const BY_NAME = ["properties", "patternProperties", "dependentSchemas"];
const LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SINGLE = ["items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"];
const DROPPED = ["$schema", "$id", "$anchor", "$defs", "definitions", "$comment", "$dynamicRef", "$recursiveRef"];

/**
 * A server's schema in the form that a request may bring: references are put
 * in their place, and what lies too deep or stands beside too many others is
 * left open. It then allows more than the server does, never less; the server
 * judges the arguments itself.
 */
export function requestSchema(schema: unknown): FunctionParameters {
  const root = isFields(schema) ? schema : {};
  const open = simplify(root, root, 1, []);
  const whole: Fields = isFields(open) ? open : {};
  return { ...whole, type: "object", properties: isFields(whole["properties"]) ? whole["properties"] : {} } as FunctionParameters;
}

function simplify(schema: unknown, root: Fields, level: number, path: readonly string[]): unknown {
  if (!isFields(schema)) return schema === false ? false : true;
  const ref = schema["$ref"];
  if (typeof ref === "string") {
    const target = path.includes(ref) ? undefined : find(root, ref);
    const { $ref: _, ...beside } = schema;
    if (!isFields(target)) return simplify(beside, root, level, path);
    return simplify({ ...target, ...beside }, root, level, [...path, ref]);
  }
  const inside = (value: unknown) => simplify(value, root, level + 1, path);
  const deepest = level >= MAX_SCHEMA_DEPTH;
  const result: Fields = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (DROPPED.includes(keyword)) continue;
    const nests = BY_NAME.includes(keyword) || LISTS.includes(keyword) || SINGLE.includes(keyword);
    if (!nests || typeof value === "boolean") result[keyword] = value;
    else if (deepest) continue;
    else if (LISTS.includes(keyword) || Array.isArray(value)) result[keyword] = Array.isArray(value) ? value.map(inside) : value;
    else if (SINGLE.includes(keyword)) result[keyword] = inside(value);
    else if (isFields(value)) {
      const kept = keyword === "properties" ? few(value, schema["required"]) : Object.entries(value).slice(0, MAX_PROPERTIES);
      result[keyword] = Object.fromEntries(kept.map(([name, each]) => [name, inside(each)]));
    }
  }
  // What was left out must still be allowed.
  const names = (of: Fields) => Object.keys(isFields(of["properties"]) ? of["properties"] : {}).length;
  if (names(result) < names(schema)) delete result["additionalProperties"];
  return result;
}

/** The required properties first, then as many others as there is room for. */
function few(properties: Fields, required: unknown): [string, unknown][] {
  const all = Object.entries(properties);
  if (all.length <= MAX_PROPERTIES) return all;
  const needed = new Set(Array.isArray(required) ? required : []);
  const first = all.filter(([name]) => needed.has(name));
  return [...first, ...all.filter(([name]) => !needed.has(name))].slice(0, MAX_PROPERTIES);
}

/** What a local reference names. */
function find(root: Fields, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let found: unknown = root;
  for (const part of decodeURIComponent(ref.slice(2)).split("/")) {
    if (!isFields(found)) return undefined;
    found = found[part.replace(/~1/g, "/").replace(/~0/g, "~")];
  }
  return found;
}
