import type { ToolCall } from "../call.js";
import type { ChatMessage, ToolResult } from "../types.js";
import type { ApprovalRequest } from "./chunk.js";

/** All of an answer, when it is over. */
export interface ChatResponse {
  /** The chat. Give it to the next `chatStream` to go on. */
  id: string;
  /** The assistant's message. */
  messageId: string | undefined;
  /** Its text. */
  content: string;
  reasoning: string;
  /** The whole conversation, for the next `chatStream`. */
  messages: ChatMessage[];
  toolCalls: ToolCall[];
  toolResults: ToolResult[];
  /** Calls that nobody here has answered. */
  pendingToolCalls: ToolCall[];
  pendingApprovals: ApprovalRequest[];
  finishReason: string | undefined;
  /** How often results were sent back. */
  rounds: number;
  maxToolRoundsReached: boolean;
  metadata: unknown;
}
