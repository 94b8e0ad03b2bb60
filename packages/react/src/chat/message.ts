import type { Usage } from "@toolyard/client";
import type { UIMessage } from "ai";

/** What the gateway says of a message beside its parts. */
export interface MessageMetadata {
  runId?: string;
  usage?: Usage;
  /** Who said it, of messages that were read from a space. */
  entityId?: string;
  createdAt?: string;
}

/** A message of a chat, in the form of the AI SDK. */
export type ToolyardMessage = UIMessage<MessageMetadata>;

/** Whether a message still waits for a tool or a permission. */
export function hasOpenCalls(message: ToolyardMessage | undefined): boolean {
  return message?.role === "assistant" && message.parts.some((part) => isToolPart(part) && OPEN.has(part.state));
}

const OPEN = new Set(["input-streaming", "input-available", "approval-requested", "approval-responded"]);

/** A part that shows a call. */
export interface ToolPart {
  type: string;
  toolName?: string;
  toolCallId: string;
  state: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  preliminary?: boolean;
  approval?: { id: string; approved?: boolean; reason?: string };
}

/** Whether a part shows a call. */
export function isToolPart(part: { type: string }): part is ToolPart {
  return part.type.startsWith("tool-") || part.type === "dynamic-tool";
}

/** The name of a part's tool. */
export function toolNameOf(part: ToolPart): string {
  return part.toolName ?? part.type.slice("tool-".length);
}
