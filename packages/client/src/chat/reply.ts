import { toolCallOf, type ToolCall } from "../call.js";
import { ToolyardError } from "../error.js";
import { decodeTwice, isFields, parseJson, type Fields } from "../json.js";
import type { ChatMessage, MessagePart, ToolResult } from "../types.js";
import type { ApprovalRequest, ChatChunk } from "./chunk.js";

/** An assistant's message while it is being read from a UI message stream. */
export class Reply {
  readonly message: ChatMessage & { id: string; parts: MessagePart[] };
  finishReason: string | undefined;
  /** `finish`, `abort` or the like came: the end of the body is meant. */
  ended = false;
  /** Calls by id, in the order of their announcement. */
  readonly calls = new Map<string, ToolCall>();
  readonly results = new Map<string, ToolResult>();
  readonly approvals = new Map<string, ApprovalRequest>();
  readonly #decided = new Set<string>();
  readonly #texts = new Map<string, MessagePart>();
  readonly #inputs = new Map<string, string>();
  /** Characters of each part that were yielded, so that a replay yields only what is new. */
  readonly #yielded = new Map<string, number>();
  #step = 0;
  #kept = 0;

  constructor(id: string, parts: MessagePart[] = []) {
    this.message = { id, role: "assistant", parts };
  }

  get text(): string {
    return this.#join("text");
  }

  get reasoning(): string {
    return this.#join("reasoning");
  }

  get pending(): ToolCall[] {
    return [...this.calls.values()].filter((call) => {
      const result = this.results.get(call.toolCallId);
      return (!result || result.preliminary) && !this.approvals.has(call.toolCallId);
    });
  }

  /** A further response continues this message. */
  next(): void {
    this.finishReason = undefined;
    this.ended = false;
    this.#texts.clear();
    this.#yielded.clear();
    this.#step = 0;
    this.#kept = this.message.parts.length;
  }

  /** The connection broke, and the same response comes again from its beginning. */
  rewind(): void {
    this.message.parts.length = this.#kept;
    this.#texts.clear();
    this.#inputs.clear();
    this.#step = 0;
  }

  /** Puts an outcome into the call's part, as the next request carries it. */
  settle(result: ToolResult): void {
    this.results.set(result.toolCallId, result);
    const part = this.#part(result.toolCallId);
    if (!part) return;
    if (result.error === undefined) Object.assign(part, { state: "output-available", output: result.result });
    else Object.assign(part, { state: "output-error", errorText: result.error });
  }

  /** Puts the answer of a person into the call's part. */
  decide(request: ApprovalRequest, approved: boolean, reason?: string): void {
    this.approvals.delete(request.toolCallId);
    this.#decided.add(request.approvalId);
    const approval = { id: request.approvalId, approved, ...(reason === undefined ? {} : { reason }) };
    const part = this.#part(request.toolCallId);
    if (part) Object.assign(part, { state: "approval-responded", approval });
  }

  /** Reads the data of one event, gives what the reader of the stream gets. */
  read(data: string): ChatChunk[] {
    if (data === "[DONE]") return [];
    const chunk = decodeTwice(parseJson(data));
    // An event that is no JSON is none of ours.
    if (!isFields(chunk) || typeof chunk["type"] !== "string") return [];
    const { type } = chunk;
    if (type.startsWith("data-")) return this.#data(type, chunk);
    switch (type) {
      case "start":
        return this.#start(chunk);
      case "start-step":
        this.#step += 1;
        this.message.parts.push({ type: "step-start" });
        return [];
      case "text-start":
      case "reasoning-start":
        this.#open(type === "text-start" ? "text" : "reasoning", chunk);
        return [];
      case "text-delta":
      case "reasoning-delta":
        return this.#delta(type === "text-delta" ? "text" : "reasoning", chunk);
      case "text-end":
      case "reasoning-end":
        this.#close(type === "text-end" ? "text" : "reasoning", chunk);
        return [];
      case "source-url":
      case "source-document":
        this.message.parts.push({ ...chunk, type });
        return [{ type: "source", value: chunk }];
      case "file":
        this.message.parts.push({ ...chunk, type });
        return [{ type: "file", value: chunk }];
      case "message-metadata":
        return this.#metadata(chunk["messageMetadata"]);
      case "finish":
        return this.#finish(chunk);
      case "abort":
        this.ended = true;
        this.finishReason = "abort";
        return [{ type: "finish", value: { reason: "abort" } }];
      case "error":
        throw new ToolyardError("stream_error", String(chunk["errorText"] ?? chunk["message"] ?? "Unknown SSE error"));
      default:
        return type.startsWith("tool-") ? this.#tool(type, chunk) : [];
    }
  }

  #start(chunk: Fields): ChatChunk[] {
    const id = chunk["messageId"];
    const chunks = this.#metadata(chunk["messageMetadata"]);
    if (typeof id !== "string") return chunks;
    this.message.id = id;
    return [{ type: "message_id", value: id }, ...chunks];
  }

  #metadata(given: unknown): ChatChunk[] {
    if (given === undefined || given === null) return [];
    const before = this.message["metadata"];
    this.message["metadata"] = isFields(before) && isFields(given) ? merge(before, given) : given;
    return [{ type: "metadata", value: given }];
  }

  #finish(chunk: Fields): ChatChunk[] {
    const reason = chunk["finishReason"] ?? chunk["reason"];
    this.finishReason = typeof reason === "string" ? reason : undefined;
    this.ended = true;
    return [...this.#metadata(chunk["messageMetadata"]), { type: "finish", value: { reason: this.finishReason } }];
  }

  #open(type: "text" | "reasoning", chunk: Fields): MessagePart {
    const part: MessagePart = { type, text: "", state: "streaming" };
    keepMetadata(part, chunk);
    this.#texts.set(this.#key(type, chunk), part);
    this.message.parts.push(part);
    return part;
  }

  #delta(type: "text" | "reasoning", chunk: Fields): ChatChunk[] {
    const key = this.#key(type, chunk);
    const part = this.#texts.get(key) ?? this.#open(type, chunk);
    const delta = String(chunk["delta"] ?? chunk["textDelta"] ?? "");
    const text = String(part["text"]) + delta;
    part["text"] = text;
    keepMetadata(part, chunk);
    const seen = this.#yielded.get(key) ?? 0;
    if (text.length <= seen) return [];
    this.#yielded.set(key, text.length);
    return [{ type, value: text.slice(Math.max(seen, text.length - delta.length)) }];
  }

  #close(type: "text" | "reasoning", chunk: Fields): void {
    const part = this.#texts.get(this.#key(type, chunk));
    if (!part) return;
    part["state"] = "done";
    keepMetadata(part, chunk);
  }

  #key(type: string, chunk: Fields): string {
    return `${this.#step}:${type}:${String(chunk["id"] ?? "")}`;
  }

  #data(type: string, chunk: Fields): ChatChunk[] {
    const { data, id, transient } = chunk;
    const value: Extract<ChatChunk, { type: "data" }>["value"] = { name: type.slice(5), data };
    if (typeof id === "string") value.id = id;
    if (transient === true) value.transient = true;
    else {
      const known = id === undefined ? undefined : this.message.parts.find((part) => part.type === type && part["id"] === id);
      if (known) known["data"] = data;
      else this.message.parts.push({ type, ...(id === undefined ? {} : { id }), data });
    }
    return [{ type: "data", value }];
  }

  #tool(type: string, chunk: Fields): ChatChunk[] {
    const id = String(chunk["toolCallId"] ?? chunk["id"] ?? "");
    const part = this.#part(id) ?? this.#newPart(id, chunk);
    switch (type) {
      case "tool-input-start":
        this.#inputs.delete(id);
        return [];
      case "tool-input-delta":
        this.#inputs.set(id, (this.#inputs.get(id) ?? "") + String(chunk["inputTextDelta"] ?? ""));
        return [];
      // Older servers say `tool-call` and `tool-result`, some say both.
      case "tool-call":
      case "tool-input-available":
        return this.#call(id, part, chunk);
      case "tool-input-error":
        if (part) Object.assign(part, { state: "output-error", input: chunk["input"], errorText: chunk["errorText"] });
        return this.#result({ ...named(id, part), result: null, error: String(chunk["errorText"] ?? "") });
      case "tool-result":
      case "tool-output-available": {
        const result: ToolResult = { ...named(id, part), result: decodeTwice(chunk["output"] ?? chunk["result"] ?? null) };
        if (chunk["preliminary"] === true) result.preliminary = true;
        this.#ended(id, part);
        if (part) {
          Object.assign(part, { state: "output-available", output: result.result });
          if (result.preliminary) part["preliminary"] = true;
          else delete part["preliminary"];
        }
        return this.#result(result);
      }
      case "tool-output-error":
      case "tool-output-denied": {
        const denied = type === "tool-output-denied";
        const error = denied ? "denied" : String(chunk["errorText"] ?? "Tool failed");
        this.#ended(id, part);
        if (part) Object.assign(part, denied ? { state: "output-denied" } : { state: "output-error", errorText: error });
        return this.#result({ ...named(id, part), result: null, error });
      }
      case "tool-approval-request":
        return this.#approval(id, part, chunk);
      default:
        return [];
    }
  }

  /** A call that ended before this reader came is not announced: its input is what was written of it. */
  #ended(id: string, part: MessagePart | undefined): void {
    this.approvals.delete(id);
    if (!part || part["input"] !== undefined) return;
    const input = parseJson(this.#inputs.get(id) ?? "");
    part["input"] = input ?? {};
    const call = { toolCallId: id, toolName: nameOf(part, {}), args: isFields(input) ? input : {} };
    if (!this.calls.has(id)) this.calls.set(id, toolCallOf(call));
  }

  #newPart(id: string, chunk: Fields): MessagePart | undefined {
    const name = chunk["toolName"];
    if (typeof name !== "string") return undefined;
    const kind = chunk["dynamic"] === true ? { type: "dynamic-tool", toolName: name } : { type: `tool-${name}` };
    const part: MessagePart = { ...kind, toolCallId: id, state: "input-streaming" };
    if (chunk["providerExecuted"] === true) part["providerExecuted"] = true;
    this.message.parts.push(part);
    return part;
  }

  #call(id: string, part: MessagePart | undefined, chunk: Fields): ChatChunk[] {
    const raw = chunk["input"] ?? chunk["args"];
    const input = typeof raw === "string" ? decodeTwice(raw) : raw;
    // It may run from here on, whatever was asked before.
    this.approvals.delete(id);
    if (part && !this.results.has(id)) Object.assign(part, { state: "input-available", input: input ?? {} });
    if (this.calls.has(id)) return [];
    const call = toolCallOf({ toolCallId: id, toolName: nameOf(part, chunk), args: isFields(input) ? input : {} });
    this.calls.set(id, call);
    return [{ type: "tool_call", value: call }];
  }

  #result(result: ToolResult): ChatChunk[] {
    const before = this.results.get(result.toolCallId);
    this.results.set(result.toolCallId, result);
    // A replay tells it again.
    if (before && !before.preliminary) return [];
    return [{ type: "tool_result", value: result }];
  }

  #approval(id: string, part: MessagePart | undefined, chunk: Fields): ChatChunk[] {
    const approvalId = String(chunk["approvalId"] ?? "");
    // A continuation tells again what was asked.
    if (this.#decided.has(approvalId) || this.results.has(id)) return [];
    if (part) Object.assign(part, { state: "approval-requested", approval: { id: approvalId } });
    const known = this.approvals.has(id);
    const args = part?.["input"] ?? parseJson(this.#inputs.get(id) ?? "");
    if (part && part["input"] === undefined && args !== undefined) part["input"] = args;
    const request: ApprovalRequest = { approvalId, toolCallId: id, toolName: nameOf(part, chunk), args: isFields(args) ? args : {} };
    this.approvals.set(id, request);
    return known ? [] : [{ type: "tool_approval", value: request }];
  }

  #part(id: string): MessagePart | undefined {
    return this.message.parts.find((part) => part["toolCallId"] === id);
  }

  #join(type: string): string {
    const texts = this.message.parts.filter((part) => part.type === type).map((part) => String(part["text"]));
    return texts.join("");
  }
}

function nameOf(part: MessagePart | undefined, chunk: Fields): string {
  if (typeof chunk["toolName"] === "string") return chunk["toolName"];
  if (!part) return "";
  return part.type === "dynamic-tool" ? String(part["toolName"]) : part.type.replace(/^tool-/, "");
}

function named(id: string, part: MessagePart | undefined): { toolCallId: string; toolName: string } {
  return { toolCallId: id, toolName: nameOf(part, {}) };
}

/** Providers want their signatures back. */
function keepMetadata(part: MessagePart, chunk: Fields): void {
  if (chunk["providerMetadata"] !== undefined) part["providerMetadata"] = chunk["providerMetadata"];
}

function merge(one: Fields, two: Fields): Fields {
  const merged: Fields = { ...one };
  for (const [key, value] of Object.entries(two)) {
    if (key === "__proto__") continue;
    const before = merged[key];
    merged[key] = isFields(before) && isFields(value) ? merge(before, value) : value;
  }
  return merged;
}
