/**
 * Checks a configuration against the committed schema, for faults at their
 * fields while somebody writes. The gateway judges again, and knows more.
 */
import schema from "../../../../api/agent-config.schema.json" with { type: "json" };

export interface Fault {
  /** As `agent.name` or `tools.2.risk`; empty means the whole. */
  path: string;
  says: string;
}

type Rule = boolean | RuleBody;

interface RuleBody {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  required?: string[];
  properties?: Record<string, Rule>;
  additionalProperties?: Rule;
  items?: Rule;
  anyOf?: Rule[];
  oneOf?: Rule[];
  minimum?: number;
}

const DEFINITIONS = schema.$defs as unknown as Record<string, Rule>;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** What is wrong with a configuration; nothing if it fits. */
export function check(config: unknown): Fault[] {
  const faults = judge(schema as unknown as Rule, config, "");
  const name = at(config, "agent.name");
  if (typeof name === "string" && !NAME.test(name)) {
    faults.push({ path: "agent.name", says: "begins with a letter or digit and has at most 64 letters, digits, dots, hyphens and underscores" });
  }
  return faults;
}

/** The value at a path. */
export function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inside, key) => (isObject(inside) || Array.isArray(inside) ? (inside as Record<string, unknown>)[key] : undefined), value);
}

/** A copy with another value at a path. `undefined` takes it away, and sections that are empty then. */
export function withAt(value: unknown, path: string, next: unknown): Record<string, unknown> {
  const [key = "", ...rest] = path.split(".");
  const copy: Record<string, unknown> = { ...(isObject(value) ? value : {}) };
  const inside = rest.length === 0 ? next : withAt(copy[key], rest.join("."), next);
  if (inside === undefined || (rest.length > 0 && isObject(inside) && Object.keys(inside).length === 0)) delete copy[key];
  else copy[key] = inside;
  return copy;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function judge(rule: Rule, value: unknown, path: string): Fault[] {
  if (typeof rule === "boolean") return rule ? [] : [{ path, says: "is not known" }];
  if (rule.$ref) return judge(DEFINITIONS[rule.$ref.replace("#/$defs/", "")] ?? true, value, path);
  const choices = rule.anyOf ?? rule.oneOf;
  if (choices) return oneOf(choices, value, path);
  if (rule.const !== undefined) return value === rule.const ? [] : [{ path, says: `must be ${JSON.stringify(rule.const)}` }];
  if (rule.enum) return rule.enum.includes(value) ? [] : [{ path, says: `must be one of ${rule.enum.map(String).join(", ")}` }];
  const types = rule.type === undefined ? [] : [rule.type].flat();
  if (types.length > 0 && !types.some((type) => isOf(type, value))) return [{ path, says: `must be ${words(types)}` }];
  const faults: Fault[] = [];
  if (typeof value === "number" && rule.minimum !== undefined && value < rule.minimum) faults.push({ path, says: `must be at least ${rule.minimum}` });
  if (Array.isArray(value) && rule.items !== undefined) value.forEach((each, place) => faults.push(...judge(rule.items ?? true, each, join(path, String(place)))));
  if (isObject(value)) faults.push(...fields(rule, value, path));
  return faults;
}

function fields(rule: RuleBody, value: Record<string, unknown>, path: string): Fault[] {
  const faults: Fault[] = (rule.required ?? []).filter((name) => value[name] === undefined).map((name) => ({ path: join(path, name), says: "is needed" }));
  for (const [name, each] of Object.entries(value)) {
    const known = rule.properties?.[name] ?? rule.additionalProperties ?? true;
    faults.push(...judge(known, each, join(path, name)));
  }
  return faults;
}

/** The faults of the choice that fits best. */
function oneOf(choices: Rule[], value: unknown, path: string): Fault[] {
  const tries = choices.map((choice) => judge(choice, value, path));
  if (tries.some((faults) => faults.length === 0)) return [];
  const constants = choices.map((choice) => (typeof choice === "object" ? choice.const : undefined));
  if (constants.every((each) => each !== undefined)) return [{ path, says: `must be one of ${constants.map(String).join(", ")}` }];
  const deepest = tries.filter((faults) => faults.some((fault) => fault.path !== path));
  return deepest[0] ?? tries[0] ?? [];
}

function isOf(type: string, value: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

const TYPES: Record<string, string> = { string: "text", integer: "a whole number", number: "a number", boolean: "true or false", array: "a list", object: "an object" };

function words(types: string[]): string {
  return types.filter((type) => type !== "null").map((type) => TYPES[type] ?? type).join(" or ");
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** A refusal of the gateway as a fault at its field, if it names one. */
export function faultOf(message: string): Fault {
  const found = /^Invalid agent config: ([A-Za-z][\w.[\]]*): (.+)$/s.exec(message);
  if (!found) return { path: "", says: message };
  return { path: (found[1] ?? "").replace(/\[(\d+)\]/g, ".$1"), says: found[2] ?? message };
}
