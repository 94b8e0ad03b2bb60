import { ToolyardError } from "./error.js";
import { decodeTwice, isFields, parseJson, type Fields } from "./json.js";

/**
 * A request of the model to run a tool. Each field has its older name beside
 * it (`id`, `name`, `arguments`), so that code for either reads it.
 */
export interface ToolCall {
  toolCallId: string;
  toolName: string;
  args: Fields;
  id: string;
  name: string;
  arguments: Fields;
  /** The run that waits, where it is known. */
  runId?: string;
}

/** A call as somebody may write it down. */
export interface ToolCallLike {
  toolCallId?: string | undefined;
  toolName?: string | undefined;
  args?: unknown;
  input?: unknown;
  id?: string | undefined;
  name?: string | undefined;
  arguments?: unknown;
  function?: { name?: string; arguments?: unknown } | undefined;
  runId?: string | undefined;
}

/** Reads a call under any of its field names; arguments may be JSON text. */
export function toolCallOf(call: ToolCallLike): ToolCall {
  const name = call.toolName ?? call.name ?? call.function?.name;
  if (!name) throw new ToolyardError("bad_request", "Tool call missing toolName");
  const id = call.toolCallId ?? call.id ?? "";
  const args = argsOf(call.args ?? call.input ?? call.arguments ?? call.function?.arguments);
  const whole: ToolCall = { toolCallId: id, toolName: name, args, id, name, arguments: args };
  if (call.runId !== undefined) whole.runId = call.runId;
  return whole;
}

/** Arguments as an object: vendors and old clients send text, or nothing. */
export function argsOf(given: unknown): Fields {
  if (given === undefined || given === null || given === "") return {};
  const value = typeof given === "string" ? decodeTwice(parseJson(given) ?? given) : given;
  if (isFields(value)) return value;
  throw new ToolyardError("bad_request", "Invalid tool arguments: must be an object.");
}
