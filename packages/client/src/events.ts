import type { ToolCall } from "./call.js";
import type { Fields } from "./json.js";
import type { ProgressReport } from "./types.js";

/** What a client tells its listeners. */
export interface ClientEvents {
  stream_start: { id: string };
  stream_end: { id: string; finishReason: string | undefined };
  tool_start: { toolCallId: string; toolName: string; args: Fields };
  tool_progress: { toolCallId: string; toolName: string } & ProgressReport;
  /** Also for calls that failed: then with `error`. */
  tool_end: { toolCallId: string; toolName: string; result?: unknown; error?: string; durationMs: number };
  /** Calls were left alone because their results could not be sent any more. */
  max_tool_rounds_reached: { id: string; rounds: number; pendingToolCalls: ToolCall[] };
  /** The gateway or the versions have something to say; each text once. */
  warning: { message: string };
}
