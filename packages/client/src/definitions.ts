import { ToolyardError } from "./error.js";
import { isFields, type Fields } from "./json.js";
import type { ClientToolDefinition, FunctionParameters } from "./types.js";

/** Which names a surface accepts: chats and plugins, or A2A and agents. */
export type NameRule = "chat" | "config";

export interface ValidationOptions {
  /** Missing means `config`: letters, digits, hyphens and underscores. */
  names?: NameRule;
  /** Missing means 128. The gateway's own limit depends on the key. */
  maxTools?: number;
}

/** The answer of `safeValidateToolDefinitions`. */
export type Validation =
  | { success: true; data: ClientToolDefinition[]; warnings: string[] }
  | { success: false; errors: string[] };

/** Levels of a schema that a request may bring; the root is the first. */
export const MAX_SCHEMA_DEPTH = 5;
/** Properties of one object of such a schema. */
export const MAX_PROPERTIES = 20;
const MAX_TOOLS = 128;
const MAX_DESCRIPTION = 1024;

const RULES: Record<NameRule, readonly [RegExp, string]> = {
  chat: [/^[A-Za-z][A-Za-z0-9_]{0,63}$/, "1-64 letters, digits and underscores, beginning with a letter"],
  config: [/^[A-Za-z0-9_-]{1,64}$/, "1-64 letters, digits, hyphens and underscores"],
};
const TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"];
/** Keys of every object: a table of tools would answer for them. */
const RESERVED = ["__proto__", "constructor", "prototype"];
const HIDDEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\r(?!\n)|[\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;

/** Whether a tool may have this name. */
export function isToolName(name: unknown, rule: NameRule = "chat"): name is string {
  return typeof name === "string" && RULES[rule][0].test(name) && !RESERVED.includes(name);
}

/** Checks definitions in any accepted shape; throws all that is wrong. */
export function validateToolDefinitions(definitions: unknown, options?: ValidationOptions): ClientToolDefinition[] {
  const found = safeValidateToolDefinitions(definitions, options);
  if (found.success) return found.data;
  throw new ToolyardError("bad_request", `Invalid client tool definitions: ${found.errors.join("; ")}`);
}

/** The same without throwing. The texts are those of the gateway. */
export function safeValidateToolDefinitions(definitions: unknown, options: ValidationOptions = {}): Validation {
  const { names = "config", maxTools = MAX_TOOLS } = options;
  if (!Array.isArray(definitions)) return { success: false, errors: ["The tool definitions must be a list"] };
  const count = definitions.length;
  if (count > maxTools) {
    return { success: false, errors: [`Too many tools: ${count} given, at most ${maxTools} allowed`] };
  }
  const data: ClientToolDefinition[] = [];
  const errors: string[] = [];
  definitions.forEach((given: unknown, index) => {
    try {
      data.push(definitionOf(given, names));
    } catch (thrown) {
      if (!(thrown instanceof Problem)) throw thrown;
      errors.push(`Tool ${label(given, index)}: ${thrown.message}`);
    }
  });
  const all = data.map((tool) => tool.name);
  const twice = [...new Set(all.filter((name, at) => all.indexOf(name) < at))];
  if (twice.length > 0) errors.push(`Duplicate tool names: ${twice.join(", ")}`);
  if (errors.length > 0) return { success: false, errors };
  return { success: true, data, warnings: data.flatMap(warningOf) };
}

class Problem extends Error {}

function label(given: unknown, index: number): string {
  const wrapped = isFields(given) && "function" in given;
  const inside = wrapped ? given["type"] === "function" && given["function"] : given;
  const name = isFields(inside) ? inside["name"] : undefined;
  return typeof name === "string" && name !== "" ? `${name.slice(0, 64)} (#${index + 1})` : `#${index + 1}`;
}

function definitionOf(given: unknown, rule: NameRule): ClientToolDefinition {
  if (!isFields(given)) throw new Problem("must be an object");
  let fields = given;
  if ("function" in given) {
    if (given["type"] !== "function") {
      throw new Problem('`type` must be "function" when the definition is wrapped in `function`');
    }
    if (!isFields(given["function"])) throw new Problem("must be an object");
    fields = given["function"];
  }
  const { parameters, inputSchema, name, description, ...rest } = fields;
  if (typeof name !== "string" || name === "") throw new Problem("has no name");
  if (!isToolName(name, rule)) throw new Problem(`invalid name: use ${RULES[rule][1]}`);
  if (description !== undefined && description !== null && typeof description !== "string") {
    throw new Problem("the description must be a string");
  }
  if (!description) throw new Problem("has no description");
  if ([...description].length > MAX_DESCRIPTION) {
    throw new Problem(`the description is longer than ${MAX_DESCRIPTION} characters`);
  }
  const hidden = HIDDEN.exec(description)?.[0].codePointAt(0);
  if (hidden !== undefined) {
    const code = hidden.toString(16).toUpperCase().padStart(4, "0");
    throw new Problem(`the description has the hidden character U+${code}`);
  }
  if (parameters !== undefined && inputSchema !== undefined) {
    throw new Problem("has both `parameters` and `inputSchema`");
  }
  const schema = parameters ?? inputSchema;
  if (parameters === undefined && inputSchema === undefined) throw new Problem("has no `parameters` (or `inputSchema`)");
  if (!isFields(schema) || schema["type"] !== "object") {
    throw new Problem('the schema must be an object schema: `type` at the root must be "object"');
  }
  if (!("properties" in schema)) {
    throw new Problem("the schema must list its parameters: `properties` is missing at the root");
  }
  walk(schema, "", 1);
  return { name, description, parameters: schema as FunctionParameters, ...rest };
}

function warningOf({ name, deprecated }: ClientToolDefinition): string[] {
  if (deprecated === undefined || deprecated === false || deprecated === null) return [];
  return [`Tool ${name} is deprecated${typeof deprecated === "string" && deprecated ? `: ${deprecated}` : ""}`];
}

const BY_NAME = ["properties", "patternProperties", "dependentSchemas"];
const LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SINGLE = ["items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"];
const REFUSED = ["$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "$id", "$anchor"];

/** Throws what is wrong inside a schema, which lies `level` levels deep. */
function walk(schema: unknown, at: string, level: number): void {
  if (typeof schema === "boolean") return;
  const place = at || "/";
  if (!isFields(schema)) throw malformed(place, "a schema: an object, true or false");
  const deeper = (value: unknown, path: string) => {
    // Not to the bottom: a hostile schema can be deeper than the stack.
    if (level >= MAX_SCHEMA_DEPTH && isFields(value)) {
      throw new Problem(`the schema is nested deeper than ${MAX_SCHEMA_DEPTH} levels`);
    }
    walk(value, path, level + 1);
  };
  for (const [keyword, value] of Object.entries(schema)) {
    const here = `${at}/${pointer(keyword)}`;
    if (REFUSED.includes(keyword)) throw new Problem(`${here} uses \`${keyword}\`, which is not allowed here`);
    if (keyword === "type") checkTypes(value, here);
    else if (BY_NAME.includes(keyword)) {
      const named = Object.entries(objectOf(value, here));
      if (keyword !== "dependentSchemas" && named.length > MAX_PROPERTIES) {
        throw new Problem(`${here} has ${named.length} properties, more than ${MAX_PROPERTIES}`);
      }
      for (const [name, inside] of named) deeper(inside, `${here}/${pointer(name)}`);
    } else if (LISTS.includes(keyword) || (keyword === "items" && Array.isArray(value))) {
      if (!Array.isArray(value)) throw malformed(here, "a list of schemas");
      value.forEach((inside, index) => deeper(inside, `${here}/${index}`));
    } else if (SINGLE.includes(keyword)) deeper(value, here);
    else if (keyword === "required" && !(Array.isArray(value) && value.every((name) => typeof name === "string"))) {
      throw malformed(here, "a list of names");
    }
  }
}

function checkTypes(value: unknown, at: string): void {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every((type) => TYPES.includes(type as string))) {
    throw new Problem(`${at} has an unknown type: use string, number, integer, boolean, array, object or null`);
  }
}

function objectOf(value: unknown, at: string): Fields {
  if (isFields(value)) return value;
  throw malformed(at, "an object of schemas");
}

function malformed(at: string, expected: string): Problem {
  return new Problem(`${at} is not valid JSON Schema: expected ${expected}`);
}

function pointer(name: string): string {
  return name.replace(/~/g, "~0").replace(/\//g, "~1");
}
