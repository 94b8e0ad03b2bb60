import assert from "node:assert/strict";
import { test } from "node:test";
import { Reply } from "../src/chat/reply.js";
import { EventSplitter, type ChatChunk } from "../src/index.js";
import { calls, collect, says, scripted, sse, user } from "./script.js";

const everything: object[] = [
  { type: "start", messageId: "msg-1", messageMetadata: { model: "m", usage: { in: 1 } } },
  { type: "start-step" },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "hm ä" },
  { type: "reasoning-end", id: "r", providerMetadata: { x: { signature: "s" } } },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: "One 😀" },
  { type: "text-delta", id: "t", delta: " two" },
  { type: "text-end", id: "t" },
  { type: "never-heard-of", secret: 1 },
  { type: "tool-input-start", toolCallId: "c1", toolName: "server", dynamic: true },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"a":' },
  { type: "tool-input-available", toolCallId: "c1", toolName: "server", input: '{"a":1}', dynamic: true },
  { type: "tool-output-available", toolCallId: "c1", output: { half: true }, preliminary: true },
  { type: "tool-output-available", toolCallId: "c1", output: '{"whole":true}' },
  { type: "tool-input-error", toolCallId: "c2", toolName: "other", input: "{", errorText: "no JSON" },
  { type: "tool-input-available", toolCallId: "c3", toolName: "third", input: {} },
  { type: "tool-output-error", toolCallId: "c3", errorText: "broke" },
  { type: "tool-of-the-future", toolCallId: "c3" },
  { type: "source-url", sourceId: "s", url: "https://a.test", title: "A" },
  { type: "file", url: "data:text/plain,x", mediaType: "text/plain" },
  { type: "data-status", id: "st", data: { at: 1 } },
  { type: "data-status", id: "st", data: { at: 2 } },
  { type: "data-note", data: "x", transient: true },
  { type: "message-metadata", messageMetadata: { usage: { out: 2 } } },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];

function read(text: string, cuts: number[] = []): { chunks: ChatChunk[]; reply: Reply } {
  const bytes = new TextEncoder().encode(text);
  const splitter = new EventSplitter();
  const reply = new Reply("x");
  const chunks: ChatChunk[] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    for (const { data } of splitter.push(bytes.subarray(from, to))) chunks.push(...reply.read(data));
    from = to;
  }
  return { chunks, reply };
}

const whole = read(sse(everything));

test("a UI message stream becomes chunks and a message", () => {
  const { chunks, reply } = whole;
  assert.deepEqual(chunks.filter((chunk) => chunk.type === "tool_result").map((chunk) => chunk.value), [
    { toolCallId: "c1", toolName: "server", result: { half: true }, preliminary: true },
    { toolCallId: "c1", toolName: "server", result: { whole: true } },
    { toolCallId: "c2", toolName: "other", result: null, error: "no JSON" },
    { toolCallId: "c3", toolName: "third", result: null, error: "broke" },
  ]);
  assert.deepEqual(reply.message, {
    id: "msg-1",
    role: "assistant",
    metadata: { model: "m", usage: { in: 1, out: 2 } },
    parts: [
      { type: "step-start" },
      { type: "reasoning", text: "hm ä", state: "done", providerMetadata: { x: { signature: "s" } } },
      { type: "text", text: "One 😀 two", state: "done" },
      { type: "dynamic-tool", toolName: "server", toolCallId: "c1", state: "output-available", input: { a: 1 }, output: { whole: true } },
      { type: "tool-other", toolCallId: "c2", state: "output-error", input: "{", errorText: "no JSON" },
      { type: "tool-third", toolCallId: "c3", state: "output-error", input: {}, errorText: "broke" },
      { type: "source-url", sourceId: "s", url: "https://a.test", title: "A" },
      { type: "file", url: "data:text/plain,x", mediaType: "text/plain" },
      { type: "data-status", id: "st", data: { at: 2 } },
    ],
  });
  assert.deepEqual([reply.text, reply.reasoning, reply.finishReason, reply.pending], ["One 😀 two", "hm ä", "stop", []]);
});

for (const [name, end] of [["LF", "\n"], ["CRLF", "\r\n"]] as const) {
  test(`the chunks are the same wherever the bytes are cut, with ${name}`, () => {
    const text = sse(everything, end);
    const length = new TextEncoder().encode(text).length;
    for (let at = 0; at <= length; at += 1) assert.deepEqual(read(text, [at]), whole, `cut at ${at}`);
    assert.deepEqual(read(text, Array.from({ length }, (_, at) => at)), whole, "byte by byte");
  });
}

test("chunks that were encoded twice, broken ones and comments do no harm", () => {
  const twice = everything.map((chunk) => `: comment\n\nid: 7\nevent: x\ndata: ${JSON.stringify(JSON.stringify(chunk))}\n\n`).join("");
  assert.deepEqual(read(`data: {"type":\n\ndata: 7\n\ndata: null\n\n${twice}`), whole);
});

test("text that looks like a number or is quoted stays text", () => {
  const outputs = ["7", "true", '"quoted"', "[not json", ""];
  for (const output of outputs) {
    const { reply } = read(sse([{ type: "tool-call", toolCallId: "c", toolName: "t", args: {} }, { type: "tool-result", toolCallId: "c", result: output }]));
    assert.equal(reply.results.get("c")?.result, output);
  }
});

test("an error chunk is thrown, with a sentence", async () => {
  for (const [chunk, message] of [[{ type: "error", errorText: "upstream died" }, "upstream died"], [{ type: "error" }, "Unknown SSE error"]] as const) {
    const { client } = scripted([{ chunks: [...says("half").slice(0, 4), chunk] }]);
    const stream = client.chatStream({ messages: [user("x")] });
    await assert.rejects(collect(stream), { code: "stream_error", message });
    await assert.rejects(stream.response, { message });
  }
});

test("a refusal carries its code, its text and its limit", async () => {
  const text = JSON.stringify({ error: { code: "limit_exceeded", message: "Too many tools: 11 given, at most 10 allowed", limit: 10 } });
  const { client } = scripted([{ status: 400, text }, { status: 401, text: "Missing x-public-key header" }]);
  await assert.rejects(client.chatStream({ messages: [user("x")] }).response, { code: "limit_exceeded", limit: 10, status: 400 });
  await assert.rejects(client.chatStream({ messages: [user("x")] }).response, { message: "Missing x-public-key header", status: 401 });
});

test("a broken stream is picked up again, and nothing is told twice", async () => {
  const chunks = says("one two three four");
  const bytes = new TextEncoder().encode(sse(chunks)).length;
  for (const cutAfter of [0, 60, 150, 230, bytes - 30]) {
    const { client, asked } = scripted([{ chunks, cutAfter, piece: 7 }, { chunks }]);
    const stream = client.chatStream({ messages: [user("x")], id: "c/1" });
    const told = await collect(stream);
    assert.equal(told.map((chunk) => (chunk.type === "text" ? chunk.value : "")).join(""), "one two three four");
    assert.equal((await stream.response).content, "one two three four");
    assert.deepEqual(asked.map(({ method, path }) => `${method} ${path}`), ["POST /api/chat", "GET /api/chat/c%2F1/stream"]);
  }
});

test("a body that ends before finish is no success", async () => {
  const { client } = scripted([{ chunks: says("half").slice(0, -1) }, { status: 204 }]);
  await assert.rejects(client.chatStream({ messages: [user("x")] }).response, { code: "stream_cut" });
});

test("resume follows an answer that is under way, or says that there is none", async () => {
  const { client, asked } = scripted([{ chunks: says("here") }, { status: 204 }]);
  assert.equal((await client.chatStream({ id: "c", messages: [], resume: true }).response).content, "here");
  const nothing = await client.chatStream({ id: "c", messages: [], resume: true }).response;
  assert.deepEqual([nothing.content, nothing.messageId, nothing.messages], ["", undefined, []]);
  assert.deepEqual(asked.map(({ method }) => method), ["GET", "GET"]);
});

test("response alone reads the stream, and a late reader still gets all of it", async () => {
  const { client, asked } = scripted([{ chunks: says("a b c"), piece: 20 }]);
  const stream = client.chatStream({ messages: [user("x")] });
  assert.equal(asked.length, 0, "nothing is asked before somebody reads");
  const response = stream.response;
  await new Promise((next) => setTimeout(next, 3));
  const chunks = await collect(stream);
  assert.equal(chunks.filter((chunk) => chunk.type === "text").length, 3);
  assert.equal((await response).content, "a b c");
  await assert.rejects(collect(stream), /iterated once/);
});

test("leaving the loop stops the request, and no tool runs", async () => {
  let runs = 0;
  const { client, asked } = scripted([{ chunks: calls([["c1", "t", {}]]) }]);
  client.registerTool({ name: "t", description: "t", parameters: { type: "object", properties: {} }, execute: () => (runs += 1) });
  const stream = client.chatStream({ messages: [user("x")] });
  for await (const chunk of stream) if (chunk.type === "tool_call") break;
  await assert.rejects(stream.response, { name: "AbortError" });
  assert.deepEqual([runs, asked.length], [0, 1]);
});

test("an abort ends the stream and the tool that runs", async () => {
  const stop = new AbortController();
  let told = false;
  const { client } = scripted([{ chunks: calls([["c1", "t", {}]]) }]);
  client.registerTool({
    name: "t",
    description: "t",
    parameters: { type: "object", properties: {} },
    execute: (_: unknown, { signal }) => {
      signal.addEventListener("abort", () => (told = true));
      stop.abort();
      return new Promise(() => undefined);
    },
  });
  await assert.rejects(collect(client.chatStream({ messages: [user("x")], signal: stop.signal })), { name: "AbortError" });
  assert.ok(told);
});

test("h68_another_line_of_the_gateway_warns_once", async () => {
  const headers = { "x-toolyard-version": "0.2.0", "x-toolyard-warning": "excludedTools is not served" };
  const { client } = scripted([{ chunks: says("a"), headers }, { chunks: says("b"), headers }]);
  const warnings: string[] = [];
  client.on("warning", ({ message }) => warnings.push(message));
  const before = console.warn;
  console.warn = () => undefined;
  try {
    await client.chatStream({ messages: [user("x")] }).response;
    await client.chatStream({ messages: [user("x")] }).response;
  } finally {
    console.warn = before;
  }
  assert.deepEqual(warnings, ["The gateway is Toolyard 0.2.0, this SDK is 0.1.0: some things may not work", "excludedTools is not served"]);
});
