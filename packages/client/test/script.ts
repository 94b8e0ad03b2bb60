// Answers of the chat route, written down as the wire carries them: for the
// loop and the parsers. The real gateway answers in chat.gateway.test.ts.
import { ToolyardClient, type ChatChunk, type ChatRequest, type ChatStream, type ToolyardClientOptions } from "../src/index.js";

/** One response of the script. */
export interface Answer {
  chunks?: object[];
  status?: number;
  text?: string;
  headers?: Record<string, string>;
  /** Breaks the body off after this many bytes. */
  cutAfter?: number;
  /** Bytes per piece; all at once if missing. */
  piece?: number;
}

export interface Asked {
  method: string;
  path: string;
  headers: Headers;
  body: ChatRequest;
}

/** A client whose requests are answered one after the other. */
export function scripted(answers: Answer[], options: Partial<ToolyardClientOptions> = {}) {
  const asked: Asked[] = [];
  const speak: typeof fetch = async (input, init) => {
    const url = new URL(String(input));
    const body = init?.body ? (JSON.parse(String(init.body)) as ChatRequest) : ({} as ChatRequest);
    asked.push({ method: init?.method ?? "GET", path: url.pathname, headers: new Headers(init?.headers), body });
    init?.signal?.throwIfAborted();
    const answer = answers.shift();
    if (!answer) throw new Error("the script is over");
    const headers = { "content-type": "text/event-stream", ...answer.headers };
    if (answer.status === 204) return new Response(null, { status: 204 });
    const bytes = new TextEncoder().encode(answer.text ?? sse(answer.chunks ?? []));
    return new Response(pieces(bytes, answer, init?.signal ?? undefined), { status: answer.status ?? 200, headers });
  };
  const client = new ToolyardClient({ baseUrl: "http://script.test", fetch: speak, retryMs: 1, ...options });
  return { client, asked };
}

function pieces(bytes: Uint8Array, { cutAfter, piece = bytes.length || 1 }: Answer, signal?: AbortSignal): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (signal?.aborted) return controller.error(signal.reason);
      if (cutAfter !== undefined && at >= cutAfter) return controller.error(new TypeError("terminated"));
      if (at >= bytes.length) return controller.close();
      const end = Math.min(at + piece, cutAfter ?? Infinity, bytes.length);
      controller.enqueue(bytes.slice(at, end));
      at = end;
    },
  });
}

/** Chunks as a UI message stream. */
export function sse(chunks: object[], end = "\n"): string {
  const lines = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"];
  return lines.map((line) => `data: ${line}${end}${end}`).join("");
}

export const says = (text: string, messageId = "msg-1"): object[] => [
  { type: "start", messageId },
  { type: "start-step" },
  { type: "text-start", id: "t1" },
  ...text.split(/(?<= )/).map((delta) => ({ type: "text-delta", id: "t1", delta })),
  { type: "text-end", id: "t1" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];

/** A reply that calls tools of the client. */
export const calls = (list: [id: string, tool: string, input: unknown][], finishReason: string | undefined = "tool-calls"): object[] => [
  { type: "start", messageId: "msg-1" },
  { type: "start-step" },
  ...list.flatMap(([toolCallId, toolName, input]) => [
    { type: "tool-input-start", toolCallId, toolName },
    { type: "tool-input-delta", toolCallId, inputTextDelta: JSON.stringify(input) },
    { type: "tool-input-available", toolCallId, toolName, input },
  ]),
  { type: "finish-step" },
  { type: "finish", ...(finishReason === undefined ? {} : { finishReason }) },
];

export async function collect(stream: ChatStream): Promise<ChatChunk[]> {
  const chunks: ChatChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export const user = (content: string) => ({ role: "user", content });
