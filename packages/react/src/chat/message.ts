import type { Usage, WaitAnswer } from "@toolyard/client";
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

/** The run that was shown last. */
export function runOf(messages: readonly ToolyardMessage[]): string | undefined {
  return messages.findLast((message) => message.metadata?.runId)?.metadata?.runId;
}

/** The first part of a call that fits. */
export function partOf(messages: readonly ToolyardMessage[], fits: (part: ToolPart) => boolean): ToolPart | undefined {
  for (const message of messages) {
    for (const part of message.parts) if (isToolPart(part) && fits(part)) return part;
  }
  return undefined;
}

/** Whether a part asks the question of a wait. */
export function isQuestion(waitId: string): (part: ToolPart) => boolean {
  return (part) => part.state === "approval-requested" && part.approval?.id === waitId;
}

/** Messages with a decision, which shows before the stream tells of it. */
export function withDecision(messages: readonly ToolyardMessage[], waitId: string, { decision, message }: WaitAnswer): ToolyardMessage[] {
  const asks = isQuestion(waitId);
  const approval = { id: waitId, approved: decision === "allow", ...(message === undefined ? {} : { reason: message }) };
  return messages.map((each) => {
    const parts = each.parts.map((part) =>
      isToolPart(part) && asks(part) ? ({ ...(part as ToolPart), state: "approval-responded", approval } as never) : part,
    );
    return { ...each, parts };
  });
}
