import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatRequest, Plugin, ToolCall } from "../src/index.js";
import { calls, collect, says, scripted, user, type Answer } from "./script.js";

const parameters = { type: "object" as const, properties: {} };
const clock: Plugin = {
  name: "clock",
  version: "1.0.0",
  tools: [{ name: "get_time", description: "Says the time", parameters }],
  executors: { get_time: async () => ({ t: 1 }) },
};
const wants = (id = "c1", tool = "get_time"): Answer => ({ chunks: calls([[id, tool, {}]]) });
const ends = (text = "It is one."): Answer => ({ chunks: says(text) });
const part = (request: ChatRequest, id: string) =>
  request.messages.flatMap((message) => message.parts ?? []).find((each) => each["toolCallId"] === id);

test("a plain answer is streamed and gathered", async () => {
  const { client, asked } = scripted([ends("Hello, you")]);
  const stream = client.chatStream({ messages: [user("hi")], id: "chat-1", agent: "a", model: "m", selectedToolCategories: ["x"] });
  const chunks = await collect(stream);
  assert.deepEqual(chunks, [
    { type: "message_id", value: "msg-1" },
    { type: "text", value: "Hello, " },
    { type: "text", value: "you" },
    { type: "finish", value: { reason: "stop" } },
  ]);
  const response = await stream.response;
  assert.equal(response.content, "Hello, you");
  assert.deepEqual([response.id, response.messageId, response.finishReason, response.rounds], ["chat-1", "msg-1", "stop", 0]);
  const { body, headers } = asked[0]!;
  const sent = body.messages[0]!;
  assert.deepEqual({ ...body, messages: [] }, { id: "chat-1", messages: [], trigger: "submit-message", agent: "a", model: "m", selectedToolCategories: ["x"] });
  assert.deepEqual(sent, { id: sent.id, role: "user", parts: [{ type: "text", text: "hi" }] });
  assert.equal(headers.get("x-toolyard-sdk"), "client/0.1.0");
  // The conversation goes on with what came back.
  assert.deepEqual(response.messages.map((message) => message.id), [sent.id, "msg-1"]);
});

test("h27_client_tools_are_sent_when_there_are_some", async () => {
  const { client, asked } = scripted([ends(), ends()]);
  await client.chatStream({ messages: [user("a")] }).response;
  client.use(clock);
  await client.chatStream({ messages: [user("b")] }).response;
  assert.ok(!("clientTools" in asked[0]!.body));
  assert.deepEqual(asked[1]!.body.clientTools, clock.tools);
});

test("h37_h38_h40_h41_the_loop_runs_a_tool_and_goes_on", async () => {
  const { client, asked } = scripted([wants(), ends()]);
  const events: string[] = [];
  for (const name of ["stream_start", "tool_start", "tool_end", "stream_end"] as const) client.on(name, () => events.push(name));
  const stream = client.use(clock).chatStream({ messages: [user("time?")] });
  const chunks = await collect(stream);
  assert.deepEqual(
    chunks.map((chunk) => chunk.type),
    ["message_id", "tool_call", "finish", "tool_result", "message_id", "text", "text", "text", "finish"],
  );
  const call = chunks[1]!.value as ToolCall;
  assert.deepEqual(call, { toolCallId: "c1", toolName: "get_time", args: {}, id: "c1", name: "get_time", arguments: {} });
  assert.deepEqual(chunks[3]!.value, { toolCallId: "c1", toolName: "get_time", result: { t: 1 } });
  assert.deepEqual(events, ["stream_start", "tool_start", "tool_end", "stream_end"]);
  // The result turn has the form of the AI SDK.
  const second = asked[1]!.body;
  assert.equal(second.messageId, "msg-1");
  assert.deepEqual(second.clientTools, clock.tools);
  assert.deepEqual(second.messages[1], {
    id: "msg-1",
    role: "assistant",
    parts: [{ type: "step-start" }, { type: "tool-get_time", toolCallId: "c1", state: "output-available", input: {}, output: { t: 1 } }],
  });
  const response = await stream.response;
  assert.deepEqual([response.content, response.rounds, response.pendingToolCalls.length], ["It is one.", 1, 0]);
  assert.equal(response.messages.length, 2);
});

for (const reason of ["tool-calls", "tool_calls", undefined]) {
  test(`h37_the_finish_reason ${reason} runs tools`, async () => {
    const { client } = scripted([{ chunks: calls([["c1", "get_time", {}]], reason) }, ends()]);
    assert.equal((await client.use(clock).chatStream({ messages: [user("x")] }).response).rounds, 1);
  });
}

test("h37_calls_of_other_peoples_tools_stay_open", async () => {
  const { client, asked } = scripted([wants("c1", "of_another")]);
  const response = await client.use(clock).chatStream({ messages: [user("x")] }).response;
  assert.deepEqual(response.pendingToolCalls.map((call) => call.toolName), ["of_another"]);
  assert.equal(asked.length, 1);
});

test("h37_a_finished_call_does_not_run", async () => {
  let runs = 0;
  const done = [...calls([["c1", "get_time", {}]]).slice(0, -2), { type: "tool-output-available", toolCallId: "c1", output: '{"t":2}' }];
  const { client } = scripted([{ chunks: [...done, { type: "finish", finishReason: "tool-calls" }] }]);
  client.use({ ...clock, executors: { get_time: () => (runs += 1) } });
  const response = await client.chatStream({ messages: [user("x")] }).response;
  assert.deepEqual([runs, response.toolResults], [0, [{ toolCallId: "c1", toolName: "get_time", result: { t: 2 } }]]);
});

test("h37_a_call_that_ended_before_the_page_came_back_does_not_run", async () => {
  let runs = 0;
  const told = [
    { type: "start", messageId: "m1" },
    { type: "tool-input-start", toolCallId: "c1", toolName: "get_time" },
    { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"zone":"UTC"}' },
    { type: "tool-output-available", toolCallId: "c1", output: 2 },
    { type: "finish", finishReason: "stop" },
  ];
  const { client, asked } = scripted([{ chunks: told }]);
  client.use({ ...clock, executors: { get_time: () => (runs += 1) } });
  const response = await client.chatStream({ id: "chat", resume: true, messages: [user("x")] }).response;
  const part = response.messages.at(-1)!.parts!.find((each) => each.type === "tool-get_time")!;
  assert.deepEqual([runs, asked.length, part["input"], part["output"], part["state"]], [0, 1, { zone: "UTC" }, 2, "output-available"]);
  assert.deepEqual(response.toolCalls.map((call) => call.args), [{ zone: "UTC" }]);
});

test("a call that is told twice runs once", async () => {
  let runs = 0;
  const twice = calls([["c1", "get_time", {}]]);
  twice.splice(3, 0, { type: "tool-call", toolCallId: "c1", toolName: "get_time", args: {} });
  const { client } = scripted([{ chunks: twice }, ends()]);
  client.use({ ...clock, executors: { get_time: () => (runs += 1) } });
  await client.chatStream({ messages: [user("x")] }).response;
  assert.equal(runs, 1);
});

test("h39_a_failing_tool_is_told_to_the_model_and_the_loop_goes_on", async () => {
  const { client, asked } = scripted([wants(), ends()]);
  const ended: object[] = [];
  client.on("tool_end", ({ toolName, error }) => ended.push({ toolName, error }));
  client.use({ ...clock, executors: { get_time: () => Promise.reject(new Error("no clock")) } });
  const chunks = await collect(client.chatStream({ messages: [user("x")] }));
  const result = chunks.find((chunk) => chunk.type === "tool_result");
  assert.deepEqual(result?.value, { toolCallId: "c1", toolName: "get_time", result: { error: "no clock" }, error: "no clock" });
  assert.deepEqual(part(asked[1]!.body, "c1"), { type: "tool-get_time", toolCallId: "c1", state: "output-error", input: {}, errorText: "no clock" });
  assert.deepEqual(ended, [{ toolName: "get_time", error: "no clock" }]);
  assert.equal(chunks.at(-1)?.type, "finish");
});

test("h35_row18_the_default_is_five_rounds_and_the_last_call_does_not_run", async () => {
  let runs = 0;
  const { client, asked } = scripted(Array.from({ length: 9 }, (_, n) => wants(`c${n}`)));
  const reached: number[] = [];
  client.on("max_tool_rounds_reached", ({ rounds }) => reached.push(rounds));
  client.use({ ...clock, executors: { get_time: () => (runs += 1) } });
  const stream = client.chatStream({ messages: [user("x")] });
  const chunks = await collect(stream);
  const response = await stream.response;
  // Six requests: five of them brought a result.
  assert.deepEqual([asked.length, runs, reached, response.rounds, response.maxToolRoundsReached], [6, 5, [5], 5, true]);
  assert.deepEqual(response.pendingToolCalls.map((call) => call.toolCallId), ["c5"]);
  assert.equal(chunks.at(-1)?.type, "max_tool_rounds_reached");
});

test("h35_h41_a_limit_of_one_sends_one_result", async () => {
  let runs = 0;
  const { client, asked } = scripted([wants("c1"), wants("c2")]);
  client.use({ ...clock, executors: { get_time: () => (runs += 1) } });
  await client.chatStream({ messages: [user("x")], maxToolRounds: 1 }).response;
  assert.deepEqual([asked.length, runs], [2, 1]);
});

test("h35_zero_means_no_limit", async () => {
  const { client, asked } = scripted([...Array.from({ length: 12 }, (_, n) => wants(`c${n}`)), ends()]);
  const response = await client.use(clock).chatStream({ messages: [user("x")], maxToolRounds: 0 }).response;
  assert.deepEqual([asked.length, response.rounds, response.maxToolRoundsReached], [13, 12, false]);
});

test("h25_h33_hooks_run_in_the_order_of_registration", async () => {
  const { client, asked } = scripted([wants(), ends()]);
  const order: string[] = [];
  const adding = (name: string): Plugin => ({
    name,
    version: "1.0.0",
    hooks: {
      async beforeRequest(request) {
        order.push(`${name} before`);
        return { ...request, trail: [...((request["trail"] as string[] | undefined) ?? []), name] };
      },
      afterResponse: (response) => void order.push(`${name} after ${response.finishReason}`),
    },
  });
  await client.use(clock).use(adding("one")).use(adding("two")).chatStream({ messages: [user("x")] }).response;
  assert.deepEqual(asked[0]!.body["trail"], ["one", "two"]);
  const round = (reason: string) => ["one before", "two before", `one after ${reason}`, `two after ${reason}`];
  assert.deepEqual(order, [...round("tool-calls"), ...round("stop")]);
});

test("row17_request_option_then_executor_then_hooks_then_error", async () => {
  const names = ["asked", "own", "hooked", "nobody"];
  const tools = names.map((name) => ({ name, description: name, parameters }));
  const first: Plugin = { name: "first", version: "1.0.0", tools, executors: { asked: () => "wrong", own: () => "executor" } };
  const passes: Plugin = { name: "passes", version: "1.0.0", hooks: { onToolCall: () => undefined } };
  const hooks: Plugin = { name: "hooks", version: "1.0.0", hooks: { onToolCall: (call) => (call.toolName === "hooked" ? Promise.resolve("hook") : undefined) } };
  const { client } = scripted([{ chunks: calls(names.map((name) => [name, name, {}])) }, ends()]);
  const response = await client.use(first, passes, hooks).chatStream({
    messages: [user("x")],
    onToolCall: (call) => (call.toolName === "asked" ? "option" : undefined),
  }).response;
  assert.deepEqual(
    response.toolResults.map(({ toolName, result }) => [toolName, result]),
    [["asked", "option"], ["own", "executor"], ["hooked", "hook"], ["nobody", { error: "No executor for tool: nobody" }]],
  );
});

test("row34_text_stays_text_and_nothing_is_null", async () => {
  const tools = ["text", "none", "json"].map((name) => ({ name, description: name, parameters }));
  const executors = { text: () => "plain", none: () => undefined, json: () => ({ at: new Date(0) }) };
  const { client, asked } = scripted([{ chunks: calls([["1", "text", {}], ["2", "none", {}], ["3", "json", {}]]) }, ends()]);
  await client.use({ name: "p", version: "1.0.0", tools, executors }).chatStream({ messages: [user("x")] }).response;
  const outputs = ["1", "2", "3"].map((id) => part(asked[1]!.body, id)?.["output"]);
  assert.deepEqual(outputs, ["plain", null, { at: "1970-01-01T00:00:00.000Z" }]);
});

test("parallel tools run at once when asked to, one after the other else", async () => {
  for (const parallelTools of [false, true]) {
    let active = 0;
    let most = 0;
    const { client } = scripted([{ chunks: calls([["1", "get_time", {}], ["2", "get_time", {}]]) }, ends()]);
    const get_time = async () => {
      most = Math.max(most, (active += 1));
      await new Promise((next) => setTimeout(next, 5));
      active -= 1;
    };
    const response = await client.use({ ...clock, executors: { get_time } }).chatStream({ messages: [user("x")], parallelTools }).response;
    assert.deepEqual([most, response.toolResults.length], [parallelTools ? 2 : 1, 2]);
  }
});

test("h43_a_slow_tool_times_out_and_is_told_to_stop", async () => {
  let stopped = false;
  const { client, asked } = scripted([wants(), ends()], { toolTimeoutMs: 10 });
  const get_time = (_: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise(() => signal.addEventListener("abort", () => (stopped = true)));
  await client.use({ ...clock, executors: { get_time } }).chatStream({ messages: [user("x")] }).response;
  assert.equal(part(asked[1]!.body, "c1")?.["errorText"], "Tool get_time timed out after 10 ms");
  assert.ok(stopped);
});

test("an approval is decided, or stays open", async () => {
  const asks = [
    ...calls([["c1", "delete_file", { path: "a" }]]).slice(0, 4),
    { type: "tool-approval-request", approvalId: "ap1", toolCallId: "c1" },
    { type: "finish-step" },
    { type: "finish", finishReason: "tool-calls" },
  ];
  const denied = [{ type: "start", messageId: "msg-1" }, { type: "tool-output-denied", toolCallId: "c1" }, ...says("No.").slice(1)];
  const open = await scripted([{ chunks: asks }]).client.chatStream({ messages: [user("x")] }).response;
  assert.deepEqual(open.pendingApprovals, [{ approvalId: "ap1", toolCallId: "c1", toolName: "delete_file", args: { path: "a" } }]);
  assert.deepEqual(open.pendingToolCalls, []);
  const { client, asked } = scripted([{ chunks: asks }, { chunks: denied }]);
  const response = await client.chatStream({ messages: [user("x")], onApproval: () => ({ approved: false, reason: "too risky" }) }).response;
  assert.deepEqual(part(asked[1]!.body, "c1"), {
    type: "tool-delete_file",
    toolCallId: "c1",
    state: "approval-responded",
    input: { path: "a" },
    approval: { id: "ap1", approved: false, reason: "too risky" },
  });
  assert.deepEqual([response.content, response.pendingApprovals], ["No.", []]);
});
