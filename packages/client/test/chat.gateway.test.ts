// The chat against the real gateway and its demo model.
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { safeValidateToolDefinitions, ToolyardError, type ChatChunk } from "../src/index.js";
import { Gateway } from "./gateway.js";
import { collect, user } from "./script.js";

let gateway: Gateway;
let there = false;
before(async () => {
  gateway = await Gateway.start();
  there = await gateway.has("/api/chat");
});
after(() => gateway.stop());

/** A test that needs the chat route. */
function chat(name: string, body: () => Promise<void>): void {
  test(name, { timeout: 30_000 }, async (t: TestContext) => {
    if (!there) return t.skip("this gateway has no /api/chat yet");
    await body();
  });
}

const parameters = { type: "object" as const, properties: { n: { type: "number" as const } } };
const double = { name: "double_it", description: "Doubles a number", parameters, execute: ({ n }: { n: number }) => ({ doubled: n * 2 }) };
const texts = (chunks: ChatChunk[]) => chunks.flatMap((chunk) => (chunk.type === "text" ? [chunk.value] : [])).join("");

chat("text is streamed", async () => {
  const stream = gateway.client().chatStream({ messages: [user("say hello there")] });
  const chunks = await collect(stream);
  assert.equal(texts(chunks), "hello there");
  const response = await stream.response;
  assert.deepEqual([response.content, response.finishReason, response.rounds], ["hello there", "stop", 0]);
});

chat("h41_a_client_tool_runs_here_and_the_model_goes_on", async () => {
  const client = gateway.client().registerTool(double);
  const stream = client.chatStream({ messages: [user('call double_it {"n": 21}')] });
  const chunks = await collect(stream);
  const types = chunks.map((chunk) => chunk.type).filter((type) => type.startsWith("tool") || type === "finish");
  assert.deepEqual(types, ["tool_call", "finish", "tool_result", "finish"]);
  const response = await stream.response;
  assert.match(response.content, /42/);
  assert.deepEqual([response.rounds, response.pendingToolCalls, response.messages.length], [1, [], 2]);
});

chat("text before a call is told once", async () => {
  const client = gateway.client().registerTool(double);
  const stream = client.chatStream({ messages: [user('think hm\nsay first\ncall double_it {"n": 3}')] });
  const chunks = await collect(stream);
  const { content, messages } = await stream.response;
  assert.match(content, /^first[^]*6/);
  assert.equal(content.split("first").length, 2);
  assert.equal(texts(chunks), content);
  const steps = messages[1]!.parts!.filter((part) => part.type === "step-start");
  assert.equal(steps.length, 2);
});

chat("several client tools of one reply, one of them failing", async () => {
  const client = gateway.client().registerTool(double);
  client.registerTool({ ...double, name: "broken", execute: () => Promise.reject(new Error("no power")) });
  const response = await client.chatStream({ messages: [user('call double_it {"n": 1}\ncall broken {}\ncall double_it {"n": 4}')], parallelTools: true }).response;
  assert.equal(response.toolResults.length, 3);
  assert.match(response.content, /2[^]*no power[^]*8/);
});

chat("h36_an_on_tool_call_of_the_request_goes_first", async () => {
  const client = gateway.client().registerTool(double);
  const response = await client.chatStream({ messages: [user('call double_it {"n": 1}')], onToolCall: async () => ({ cancelled: true }) }).response;
  assert.deepEqual(response.toolResults[0]?.result, { cancelled: true });
  assert.match(response.content, /cancelled/);
});

chat("a tool of the gateway runs there, and nothing is sent back", async () => {
  const response = await gateway.client().chatStream({ messages: [user("call about_gateway {}")], onToolCall: () => assert.fail("not here") }).response;
  assert.equal(response.rounds, 0);
  assert.match(JSON.stringify(response.toolResults), /Toolyard/);
});

chat("a call that asks runs after the yes, with the arguments that were shown", async () => {
  const shown: unknown[] = [];
  const written: unknown[] = [];
  const response = await gateway.client().chatStream({
    messages: [user('call write_file {"path": "a.txt", "text": "hi"}')],
    onApproval: ({ toolName, args }) => {
      shown.push([toolName, args]);
      return true;
    },
    onToolCall: ({ toolName, args }) => {
      assert.equal(shown.length, 1, "not before the yes");
      written.push([toolName, args]);
      return "written";
    },
  }).response;
  assert.deepEqual(shown, [["write_file", { path: "a.txt", text: "hi" }]]);
  assert.deepEqual(written, shown);
  assert.match(response.content, /written/);
  assert.deepEqual([response.finishReason, response.pendingApprovals, response.rounds], ["stop", [], 2]);
});

chat("a call that is denied does not run", async () => {
  const response = await gateway.client().chatStream({
    messages: [user('call write_file {"path": "a.txt", "text": "hi"}')],
    onApproval: () => ({ approved: false, reason: "too risky" }),
    onToolCall: () => assert.fail("it was denied"),
  }).response;
  assert.deepEqual([response.finishReason, response.rounds], ["stop", 1]);
  assert.match(response.content, /too risky/);
});

chat("row15_a_tool_of_the_agent_is_not_taken_over", async () => {
  const client = gateway.client().registerTool({ ...double, name: "about_gateway" });
  await assert.rejects(client.chatStream({ messages: [user("say x")] }).response, { status: 409 });
});

chat("a conversation goes on in its chat", async () => {
  const client = gateway.client();
  const first = await client.chatStream({ messages: [user("say one")] }).response;
  const second = await client.chatStream({ id: first.id, messages: [...first.messages, user("say two")] }).response;
  assert.equal(second.content, "two");
  assert.equal(second.messages.length, 4);
  assert.notEqual(second.messageId, first.messageId);
});

chat("a user with a public key has a chat", async () => {
  const ada = gateway.user("ada-chat").registerTool(double);
  const response = await ada.chatStream({ messages: [user('call double_it {"n": 5}')] }).response;
  assert.match(response.content, /10/);
});

chat("h32_invalid_arguments_never_reach_the_tool", async () => {
  let runs = 0;
  const client = gateway.client().registerTool({ ...double, execute: () => (runs += 1) });
  const response = await client.chatStream({ messages: [user('call double_it {"n": "many"}')] }).response;
  assert.deepEqual([runs, response.rounds], [0, 0]);
  assert.match(response.content, /Parameter n has wrong type: expected number, got string/);
});

chat("l8_the_gateway_refuses_definitions_in_the_same_words", async () => {
  const bad: unknown[][] = [
    [{ name: "1a", description: "d", parameters }],
    [{ name: "a", description: "", parameters }],
    [{ name: "a", description: "d", parameters: { type: "array" } }],
    [{ name: "a", description: "d", parameters: { type: "object" } }],
    [{ name: "a", description: "d", parameters: { type: "object", properties: { x: { type: "date" } } } }],
    [{ name: "a", description: "d", parameters: { type: "object", properties: { x: { $ref: "#" } } } }],
    [{ name: "a", description: "d", parameters }, { name: "a", description: "d", parameters }],
  ];
  for (const clientTools of bad) {
    const found = safeValidateToolDefinitions(clientTools, { names: "chat" });
    const ours = found.success ? "accepted" : `Invalid client tool definitions: ${found.errors.join("; ")}`;
    const error = await gateway.client({ retries: 0 }).chatStream({ messages: [user("say x")], body: { clientTools } }).response.catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ToolyardError, ours);
    assert.ok(error.message.includes(ours), `${error.message}\nis not\n${ours}`);
  }
});

chat("a broken connection is picked up, and the text comes once", async () => {
  let cut = false;
  const flaky: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method !== "POST" || cut || !response.body) return response;
    cut = true;
    let pieces = 0;
    const body = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(piece, controller) {
          if ((pieces += 1) > 5) controller.error(new TypeError("terminated"));
          else controller.enqueue(piece);
        },
      }),
    );
    return new Response(body, response);
  };
  const stream = gateway.client({ fetch: flaky, retryMs: 10 }).chatStream({ messages: [user("slow 20")] });
  const chunks = await collect(stream);
  const expected = Array.from({ length: 20 }, (_, n) => `word${n + 1}`).join(" ");
  assert.equal(texts(chunks), expected);
  assert.equal((await stream.response).content, expected);
  assert.ok(cut);
});

chat("stop ends the run", async () => {
  const client = gateway.client();
  const stream = client.chatStream({ messages: [user("slow 400")] });
  await assert.rejects(async () => {
    for await (const chunk of stream) if (chunk.type === "text") await stream.stop();
  }, { name: "AbortError" });
  const again = await client.chatStream({ id: stream.id, messages: [], resume: true }).response;
  assert.notEqual(again.finishReason, "tool-calls");
});

chat("a kill of the gateway while a tool runs loses nothing", async () => {
  let runs = 0;
  const client = gateway.client({ retryMs: 50, retries: 20 }).registerTool({
    ...double,
    execute: async () => {
      runs += 1;
      await gateway.kill();
      await gateway.up();
      return { survived: true };
    },
  });
  const response = await client.chatStream({ messages: [user('call double_it {"n": 1}')] }).response;
  assert.equal(runs, 1);
  assert.match(response.content, /survived/);
});
