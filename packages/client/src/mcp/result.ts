import { isFields } from "../json.js";

/** The value of a server's answer; an answer that says it is an error is thrown. */
export function valueOf(result: unknown): unknown {
  if (!isFields(result)) return result ?? null;
  const content = Array.isArray(result["content"]) ? result["content"].filter(isFields) : [];
  const texts = content.flatMap((part) => (part["type"] === "text" ? [String(part["text"])] : []));
  if (result["isError"] === true) throw new Error(texts.join("\n") || "The tool failed");
  if (result["structuredContent"] !== undefined) return result["structuredContent"];
  // Old servers answer a bare value.
  if (!("content" in result)) return "toolResult" in result ? result["toolResult"] : result;
  return texts.length === content.length ? texts.join("\n") : { content };
}
