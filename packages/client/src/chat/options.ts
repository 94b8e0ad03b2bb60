import type { ToolCall } from "../call.js";
import type { ChatMessage, ChatRequest, ToolContext } from "../types.js";
import type { ApprovalRequest } from "./chunk.js";

/** The answer of a person to a call that asks. */
export type ApprovalAnswer = boolean | { approved: boolean; reason?: string };

/** One turn of a chat. */
export interface ChatOptions {
  messages: ChatMessage[];
  /** The chat. Missing begins a new one. */
  id?: string;
  agent?: string;
  model?: string;
  selectedToolCategories?: string[];
  exactToolNames?: string[];
  excludedTools?: string[];
  /** `regenerate-message` asks for another answer to the same message. */
  trigger?: ChatRequest["trigger"];
  /** With an edit: the user's message. With a regeneration: the assistant's. */
  messageId?: string;
  /** Do not ask; follow the answer that is under way in `id`. */
  resume?: boolean;
  /**
   * How often results may be sent back. 5 if missing, 0 means without a limit.
   * A tool does not run if its result could not be sent any more.
   */
  maxToolRounds?: number;
  /** Runs the calls of this request. `undefined` falls through to plugins. */
  onToolCall?: (call: ToolCall, context: ToolContext) => unknown;
  /** Decides calls that ask. Without it they stay open. */
  onApproval?: (request: ApprovalRequest) => ApprovalAnswer | Promise<ApprovalAnswer>;
  /** Several calls of one reply run at once instead of one after the other. */
  parallelTools?: boolean;
  /** Stops reading. The run goes on; `stop` ends it. */
  signal?: AbortSignal;
  /** More fields for the request. */
  body?: Record<string, unknown>;
}

/** Gives short messages the form of the wire; others pass as they are. */
export function wireMessage(message: ChatMessage, mint: (prefix: string) => string): ChatMessage {
  const { content, parts, ...rest } = message;
  const id = message.id ?? mint("msg");
  if (parts) return { ...message, id };
  const plain = typeof content === "string" && message.role !== "tool";
  if (!plain || "toolCalls" in message || "tool_calls" in message) return message;
  return { ...rest, id, parts: [{ type: "text", text: content }] };
}
