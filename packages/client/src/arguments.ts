import { isFields, type Fields } from "./json.js";
import type { JsonSchemaProperty, JsonSchemaType } from "./types.js";

type Bound = "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems";

/** Sentences in one refusal. */
const MAX_ERRORS = 20;

/**
 * What is wrong with the arguments of a call, in the gateway's words. Names,
 * types, enums, ranges and lengths are looked at, through all levels; the
 * gateway checks everything else.
 */
export function argumentErrors(schema: JsonSchemaProperty, args: unknown): string[] {
  if (!isFields(args)) return ["Invalid tool arguments: must be an object."];
  const errors: string[] = [];
  check(schema, args, "", errors);
  return [...new Set(errors)].slice(0, MAX_ERRORS);
}

function check(schema: JsonSchemaProperty | boolean, value: unknown, path: string, errors: string[]): void {
  if (typeof schema === "boolean" || errors.length > MAX_ERRORS) return;
  const subject = path ? `Parameter ${path}` : "The arguments object";
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => admits(type, value))) {
    // A value of the wrong type breaks other rules too; they would only distract.
    errors.push(
      types.length === 1 && types[0] === "integer" && typeof value === "number"
        ? `${subject} must be an integer, got: ${value}`
        : `${subject} has wrong type: expected ${types.join(" or ")}, got ${typeOf(value)}`,
    );
    return;
  }
  const broken = (keyword: string, sentence: string) => errors.push(`${subject} ${sentence} (${keyword})`);
  if (schema.enum && !schema.enum.some((allowed) => same(allowed, value))) broken("enum", "is not one of the allowed values");
  if (schema.const !== undefined && !same(schema.const, value)) broken("const", "is not the required value");
  const between = (size: number, low: Bound, high: Bound, small: string, large: string) => {
    if ((schema[low] ?? size) > size) broken(low, small);
    if ((schema[high] ?? size) < size) broken(high, large);
  };
  if (typeof value === "number") between(value, "minimum", "maximum", "is too small", "is too large");
  else if (typeof value === "string") between([...value].length, "minLength", "maxLength", "is too short", "is too long");
  else if (Array.isArray(value)) {
    between(value.length, "minItems", "maxItems", "has too few items", "has too many items");
    const { items } = schema;
    if (items && !Array.isArray(items)) value.forEach((item, index) => check(items, item, `${path}[${index}]`, errors));
  } else if (isFields(value)) checkMembers(schema, value, path, errors);
}

function checkMembers(schema: JsonSchemaProperty, value: Fields, path: string, errors: string[]): void {
  const inside = (name: string) => (path ? `${path}.${name}` : name);
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) errors.push(`Missing required parameter: ${inside(name)}`);
  }
  const { properties = {}, additionalProperties: others } = schema;
  for (const [name, member] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known !== undefined) check(known, member, inside(name), errors);
    else if (others === false && !("patternProperties" in schema)) errors.push(`Unknown parameter: ${inside(name)}`);
    else if (isFields(others)) check(others, member, inside(name), errors);
  }
}

function typeOf(value: unknown): JsonSchemaType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value as JsonSchemaType;
}

function admits(type: JsonSchemaType, value: unknown): boolean {
  return type === "integer" ? Number.isInteger(value) : typeOf(value) === type;
}

function same(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === "object" && JSON.stringify(a) === JSON.stringify(b));
}
