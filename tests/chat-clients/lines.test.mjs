// Older clients: the data stream, and both shapes of a result turn.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Gateway } from "./gateway.mjs";
import { Upstream, told } from "./upstream.mjs";

let upstream, gateway;
before(async () => {
  upstream = await Upstream.start();
  gateway = await Gateway.start(upstream);
});
after(async () => {
  await gateway?.stop();
  upstream?.stop();
});

// Each line of an answer: its code and its value.
async function ask(body, headers = { "x-mcp-mode": "true" }) {
  const response = await fetch(`${gateway.url}/api/chat`, {
    method: "POST", body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...("x-secret-key" in headers ? {} : gateway.user("ada")), ...headers },
  });
  const text = await response.text();
  if (!response.ok) return { status: response.status, text };
  assert.equal(response.headers.get("x-vercel-ai-data-stream"), "v1");
  const lines = text.trim().split("\n").map((line) => [line[0], JSON.parse(line.slice(2))]);
  return { lines, codes: lines.map(([code]) => code).join(""), of: (code) => lines.filter(([c]) => c === code).map(([, value]) => value) };
}

const clientTools = [{ name: "get_time", description: "The time", parameters: { type: "object", properties: {} } }];

test("text ends with its reasons", async () => {
  upstream.script({ text: "Hi there" });
  const { lines, codes, of } = await ask({ id: "v1-text", messages: [{ role: "user", content: "hello" }] });
  assert.equal(codes, "f00ed");
  assert.match(of("f")[0].messageId, /^msg_/);
  assert.deepEqual(of("0"), ["Hi ", "there"]);
  const usage = { promptTokens: 7, completionTokens: 3 };
  assert.deepEqual(lines.slice(-2), [["e", { finishReason: "stop", usage, isContinued: false }], ["d", { finishReason: "stop", usage }]]);
});

test("h11 h12 h16 a result comes back as messages of role tool", async () => {
  upstream.script({ calls: [["get_time", {}]] }, { text: "Noon" });
  const id = "v1-tool";
  const user = { role: "user", content: "time?" };
  const first = await ask({ id, messages: [user], clientTools });
  assert.equal(first.codes, "fbc9ed");
  const [call] = first.of("9");
  assert.deepEqual([call.toolName, call.args, first.of("e")[0].finishReason], ["get_time", {}, "tool-calls"]);
  const toolCalls = [{ ...call, id: call.toolCallId }];
  const result = { role: "tool", tool_call_id: call.toolCallId, content: JSON.stringify({ t: 12 }) };
  const second = await ask({ id, messages: [user, { role: "assistant", content: "", tool_calls: toolCalls }, result], clientTools });
  assert.deepEqual([second.of("0"), second.of("e")[0].finishReason], [["Noon"], "stop"]);
  assert.deepEqual(told(upstream, 1).at(-1), ["tool", '{"t":12}']);
});

test("h16 a result comes back inside one assistant message", async () => {
  upstream.script({ calls: [["get_time", {}]] }, { text: "One" }, { text: "Two" });
  const id = "v1-parts";
  const user = { role: "user", content: "time?" };
  const first = await ask({ id, messages: [user], clientTools });
  const { toolCallId, toolName } = first.of("9")[0];
  const part = { type: "tool-invocation", toolCallId, toolName, state: "output-available", input: {}, output: { t: 1 } };
  const turn = [user, { role: "assistant", content: "", parts: [{ type: "text", text: "" }, part] }];
  const second = await ask({ id, messages: turn, clientTools });
  assert.deepEqual(second.of("0"), ["One"]);
  assert.equal(upstream.requests.length, 2);
  const third = await ask({ id, messages: [...turn, { role: "assistant", content: "One" }, { role: "user", content: "and?" }], clientTools });
  assert.deepEqual(third.of("0"), ["Two"]);
  const heard = told(upstream, 2).map(([role]) => role);
  assert.deepEqual(heard, ["user", "assistant", "tool", "assistant", "user"]);
});

test("a gateway tool has its result within one stream, a failure is a result", async () => {
  upstream.script({ calls: [["look", {}], ["nothing_of_that_name", {}]] }, { text: "Seen" });
  const { of } = await ask({ id: "v1-look", messages: [{ role: "user", content: "look" }] }, { ...gateway.secret, "x-mcp-mode": "true" });
  // What cannot run fails at once, what can comes later.
  assert.deepEqual(of("a").map((a) => a.result), [{ error: "Tool: nothing_of_that_name not found" }, { success: true, tool: "look" }]);
  assert.deepEqual(of("d")[0].finishReason, "stop");
});

test("an unusable request is a sentence and changes nothing", async () => {
  const said = async (body) => {
    const { status, text } = await ask(body);
    return [status, text];
  };
  assert.deepEqual(await said({ messages: [] }), [400, "Missing required field: id"]);
  assert.deepEqual(await said({ id: "v1-bad" }), [400, "Missing required field: messages"]);
  assert.deepEqual(await said({ id: "v1-bad", messages: [{ role: "wizard", content: "x" }] }), [400, "messages[0].role: must be user, assistant, system or tool"]);
  const [status, text] = await said({ id: "v1-bad", messages: [{ role: "user", content: "x" }], agent: "nobody" });
  assert.deepEqual([status, text], [404, "Agent nobody not found"]);
  const many = Array.from({ length: 11 }, (_, i) => ({ ...clientTools[0], name: `t${i}` }));
  const [refused, why] = await said({ id: "v1-bad", messages: [{ role: "user", content: "x" }], clientTools: many });
  assert.equal(refused, 400);
  assert.match(why, /10/);
});
