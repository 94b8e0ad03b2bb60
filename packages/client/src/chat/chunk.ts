import type { ToolCall } from "../call.js";
import type { Fields } from "../json.js";
import type { ToolResult } from "../types.js";

/** A call that waits for a yes or no. */
export interface ApprovalRequest {
  approvalId: string;
  toolCallId: string;
  toolName: string;
  args: Fields;
}

/** What `chatStream` yields. */
export type ChatChunk =
  | { type: "message_id"; value: string }
  | { type: "text"; value: string }
  | { type: "reasoning"; value: string }
  | { type: "tool_call"; value: ToolCall }
  | { type: "tool_result"; value: ToolResult }
  | { type: "tool_approval"; value: ApprovalRequest }
  | { type: "source"; value: Fields }
  | { type: "file"; value: Fields }
  | { type: "data"; value: { name: string; data: unknown; id?: string; transient?: boolean } }
  | { type: "metadata"; value: unknown }
  | { type: "max_tool_rounds_reached"; value: { rounds: number; pendingToolCalls: ToolCall[] } }
  | { type: "finish"; value: { reason: string | undefined } };
