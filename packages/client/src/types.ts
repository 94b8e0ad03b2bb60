import type { ToolCall } from "./call.js";
import type { Fields } from "./json.js";

/** The types that a schema may name. */
export type JsonSchemaType = "string" | "number" | "integer" | "boolean" | "array" | "object" | "null";

/** One property of a tool's parameters, in JSON Schema. */
export interface JsonSchemaProperty {
  type?: JsonSchemaType | JsonSchemaType[];
  description?: string;
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  items?: JsonSchemaProperty;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  properties?: Record<string, JsonSchemaProperty>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchemaProperty;
  oneOf?: readonly JsonSchemaProperty[];
  anyOf?: readonly JsonSchemaProperty[];
  allOf?: readonly JsonSchemaProperty[];
  [keyword: string]: unknown;
}

/** The parameters of a tool: an object schema. */
export interface FunctionParameters extends JsonSchemaProperty {
  type: "object";
  properties: Record<string, JsonSchemaProperty>;
}

/** A tool as the model gets to know it. The gateway never gets its code. */
export interface ClientToolDefinition {
  name: string;
  description: string;
  parameters: FunctionParameters;
  [extra: string]: unknown;
}

/** The same definition in the wrapped form of some vendors. */
export interface WrappedToolDefinition {
  type: "function";
  function: ClientToolDefinition;
}

/** What an executor learns of its call, beside the arguments. */
export interface ToolContext {
  call: ToolCall;
  toolCallId: string;
  toolName: string;
  /** Fires when the call timed out or the request was aborted. */
  signal: AbortSignal;
  /** Says how far a long call is. Nothing fails if nobody hears it. */
  progress(report: ProgressReport): void;
}

/** How far a long call is. */
export interface ProgressReport {
  /** From 0 to 1. */
  fraction?: number;
  message?: string;
  /** What the result looks like so far. */
  preliminary?: unknown;
}

/** Runs a tool: an async function of one object. */
// `any` lets an executor name the type of its arguments.
export type ToolExecutor<Args = any, Result = unknown> = (args: Args, context: ToolContext) => Promise<Result> | Result;

/** How a tool behaves in this process. None of it is sent. */
export interface ToolBehaviour {
  /** Milliseconds after which a call has failed. */
  timeoutMs?: number;
  /** A repeat of the same call has no second effect. */
  idempotent?: boolean;
}

/** One tool with its code, for `registerTool`. */
export interface ToolRegistration<Args = any, Result = unknown> extends ToolBehaviour {
  name: string;
  description: string;
  parameters: FunctionParameters;
  execute: ToolExecutor<Args, Result>;
}

/** The outcome of one call. */
export interface ToolResult {
  toolCallId: string;
  toolName: string;
  result: unknown;
  /** Why there is no result, if there is none. */
  error?: string;
  /** More is to come. */
  preliminary?: boolean;
}

/** A message: the short form, or the AI SDK's with `parts`. */
export interface ChatMessage {
  role: "user" | "assistant" | "system" | "tool" | (string & {});
  content?: unknown;
  id?: string;
  parts?: MessagePart[];
  [extra: string]: unknown;
}

/** A piece of a message, as the AI SDK writes it. */
export interface MessagePart {
  type: string;
  [field: string]: unknown;
}

/** What is sent to `POST /api/chat`. `beforeRequest` hooks may change it. */
export interface ChatRequest {
  id: string;
  messages: ChatMessage[];
  trigger: "submit-message" | "regenerate-message";
  messageId?: string;
  /** Absent if there are no client tools. */
  clientTools?: ClientToolDefinition[];
  agent?: string;
  model?: string;
  selectedToolCategories?: string[];
  exactToolNames?: string[];
  excludedTools?: string[];
  [extra: string]: unknown;
}

/** Options of the plugins and tools of a client. */
export interface ClientToolOptions {
  /** Logs registration, execution and hooks to the console, or to a function. */
  debug?: boolean | ((line: string, ...more: unknown[]) => void);
  /** Milliseconds that an executor gets, unless its tool says otherwise. */
  toolTimeoutMs?: number;
}

export type { Fields };
