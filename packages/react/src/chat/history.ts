import type { MessageView, PartView } from "@toolyard/client";
import type { ToolyardMessage } from "./message.js";

type UIPart = ToolyardMessage["parts"][number];

/** Stored messages as a chat shows them. Ask the gateway for `branch: "current"`: it knows what edits left behind. */
export function historyOf(messages: readonly MessageView[]): ToolyardMessage[] {
  return messages.map(messageOf);
}

/** One message in the form of the AI SDK. */
export function messageOf(message: MessageView): ToolyardMessage {
  const parts: UIPart[] = [];
  for (const part of message.parts) add(parts, part);
  const { id, role, runId, entityId, createdAt } = message;
  const metadata = { createdAt, ...(runId === undefined ? {} : { runId }), ...(entityId === undefined ? {} : { entityId }) };
  return { id, role, parts, metadata };
}

function add(parts: UIPart[], part: PartView): void {
  switch (part.type) {
    case "text":
      return void parts.push({ type: "text", text: part.text, state: "done" });
    case "reasoning":
      return void parts.push({ type: "reasoning", text: part.text, state: "done" });
    case "file": {
      const { mediaType, url, name } = part;
      if (url !== undefined) parts.push({ type: "file", mediaType, url, ...(name === undefined ? {} : { filename: name }) });
      return;
    }
    case "source": {
      const { id: sourceId, url, title } = part;
      return void parts.push({ type: "source-url", sourceId, url, ...(title === undefined ? {} : { title }) });
    }
    case "tool-call": {
      const { toolCallId, toolName, input } = part;
      return void parts.push({ type: `tool-${toolName}`, toolCallId, state: "input-available", input: input ?? {} } as UIPart);
    }
    case "tool-result":
      return end(parts, part);
    case "data":
      return void parts.push({ type: `data-${part.name}`, data: part.value } as UIPart);
  }
}

/** Writes an outcome into the part of its call. */
function end(parts: UIPart[], result: Extract<PartView, { type: "tool-result" }>): void {
  const { toolCallId, toolName, output, error, outcome = "ok" } = result;
  const at = parts.findIndex((part) => "toolCallId" in part && part.toolCallId === toolCallId);
  const call = (parts[at] ?? { type: `tool-${toolName}`, toolCallId, input: {} }) as object;
  const ended =
    outcome === "ok"
      ? { ...call, state: "output-available", output: output ?? null }
      : outcome === "denied"
        ? { ...call, state: "output-denied", approval: { id: toolCallId, approved: false, ...(error === undefined ? {} : { reason: error }) } }
        : { ...call, state: "output-error", errorText: error ?? "Tool failed" };
  if (at === -1) parts.push(ended as UIPart);
  else parts[at] = ended as UIPart;
}

/** Stored messages under the ids that the page shows them with, so that nothing is drawn anew. */
export function withNames(stored: ToolyardMessage[], shown: readonly ToolyardMessage[]): ToolyardMessage[] {
  const text = (message: ToolyardMessage) => JSON.stringify(message.parts.map((part) => (part.type === "text" ? part.text : part.type)));
  return stored.map((message, at) => {
    const same = shown[at];
    return same?.role === "user" && message.role === "user" && text(same) === text(message) ? { ...message, id: same.id } : message;
  });
}
