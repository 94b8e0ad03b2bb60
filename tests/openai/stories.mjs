// The official OpenAI package for Node, unchanged, against a running gateway.
import assert from "node:assert/strict";

import OpenAI from "openai";

const { GATEWAY, SECRET } = process.env;
const openai = new OpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: SECRET, maxRetries: 0 });
const model = "story";
const user = (content) => ({ role: "user", content });
const fn = (name, properties = {}) => ({
  type: "function",
  function: { name, description: `Runs ${name}`, parameters: { type: "object", properties } },
});
const flat = ({ function: held }) => ({ type: "function", strict: false, ...held });

const stories = {
  async "agents are models"() {
    const names = [];
    for await (const entry of openai.models.list()) names.push(entry.id);
    assert.ok(names.includes("story"), names.join());
    assert.equal((await openai.models.retrieve("story")).id, "story");
    await assert.rejects(openai.models.retrieve("nobody"), OpenAI.NotFoundError);
  },

  async "chat: words of many bytes, whole and streamed"() {
    const messages = [user("think hm\nsay Grüße 😀, 世界")];
    const whole = await openai.chat.completions.create({ model, messages });
    assert.equal(whole.choices[0].message.content, "Grüße 😀, 世界");
    assert.equal(whole.choices[0].message.reasoning_content, "hm");
    assert.equal(whole.choices[0].finish_reason, "stop");
    assert.ok(whole.usage.total_tokens > 0);
    const stream = openai.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    let heard = "";
    stream.on("content", (delta) => (heard += delta));
    const last = await stream.finalChatCompletion();
    assert.equal(heard, "Grüße 😀, 世界");
    assert.equal(last.choices[0].message.content, heard);
    assert.ok(last.usage.total_tokens > 0);
  },

  async "chat: a conversation that only the client remembers"() {
    const messages = [user("say one"), { role: "assistant", content: "one" }, user("say two")];
    const next = await openai.chat.completions.create({ model, messages });
    assert.equal(next.choices[0].message.content, "two");
  },

  async "chat: a tool of the gateway is not shown"() {
    const whole = await openai.chat.completions.create({ model, messages: [user("call lucky {}")] });
    assert.equal(whole.choices[0].message.tool_calls, undefined);
    assert.ok(whole.choices[0].message.content.includes("42"));
  },

  async "chat: the client's calls, in parallel, and the same run goes on"() {
    const tools = [fn("left", { a: { type: "integer" } }), fn("right")];
    const messages = [user('call left {"a":1}\ncall right {}')];
    const first = await openai.chat.completions.create({ model, messages, tools });
    const [choice] = first.choices;
    assert.equal(choice.finish_reason, "tool_calls");
    const calls = choice.message.tool_calls;
    assert.deepEqual(calls.map((call) => call.function.name), ["left", "right"]);
    assert.deepEqual(JSON.parse(calls[0].function.arguments), { a: 1 });
    messages.push(choice.message);
    messages.push({ role: "tool", tool_call_id: calls[0].id, content: '{"n":"é"}' });
    messages.push({ role: "tool", tool_call_id: calls[1].id, content: "R" });
    const second = await openai.chat.completions.create({ model, messages, tools });
    const said = second.choices[0].message.content;
    assert.ok(said.includes('"é"') && said.includes("right answered: R"), said);
    assert.equal(second.choices[0].finish_reason, "stop");
    assert.equal(second.toolyard.runId, first.toolyard.runId);
    // The next question stays in the same conversation.
    messages.push(second.choices[0].message, user("say and on"));
    const third = await openai.chat.completions.create({ model, messages, tools });
    assert.equal(third.choices[0].message.content, "and on");
  },

  async "chat: streamed calls"() {
    const tools = [fn("left")];
    const stream = openai.chat.completions.stream({ model, messages: [user("call left {}")], tools });
    const last = await stream.finalChatCompletion();
    assert.equal(last.choices[0].finish_reason, "tool_calls");
    assert.equal(last.choices[0].message.tool_calls[0].function.arguments, "{}");
  },

  async "chat: the package's own tool loop"() {
    const tool = {
      type: "function",
      function: {
        name: "get_location",
        description: "Where",
        parameters: { type: "object", properties: {} },
        parse: JSON.parse,
        function: async () => ({ city: "Zürich" }),
      },
    };
    const runner = openai.chat.completions.runTools({
      model,
      messages: [user("call get_location {}")],
      tools: [tool],
    });
    assert.ok((await runner.finalContent()).includes("Zürich"));
  },

  async "chat: errors are the package's own"() {
    const ask = (body) => openai.chat.completions.create({ model, messages: [user("hi")], ...body });
    await assert.rejects(ask({ model: "nobody" }), OpenAI.NotFoundError);
    await assert.rejects(ask({ n: 2 }), OpenAI.BadRequestError);
    await assert.rejects(ask({ messages: [user("fail")] }), (error) => error.code === "model_request_refused");
    const streamed = async () => {
      for await (const _ of await ask({ messages: [user("fail")], stream: true })) void _;
    };
    await assert.rejects(streamed(), OpenAI.APIError);
    const stranger = new OpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  },

  async "chat: an answer of the form that was asked for"() {
    const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
    const response_format = { type: "json_schema", json_schema: { name: "answer", schema, strict: true } };
    const whole = await openai.chat.completions.parse({
      model,
      messages: [user('say {"a":1}')],
      response_format,
    });
    assert.deepEqual(JSON.parse(whole.choices[0].message.content), { a: 1 });
  },

  async "responses: whole, streamed and chained"() {
    const whole = await openai.responses.create({ model, input: "think hm\nsay Grüße 😀" });
    assert.equal(whole.output_text, "Grüße 😀");
    assert.equal(whole.output[0].type, "reasoning");
    assert.equal(whole.status, "completed");
    const stream = openai.responses.stream({
      model,
      input: "say 世界",
      previous_response_id: whole.id,
    });
    let heard = "";
    stream.on("response.output_text.delta", (event) => (heard += event.delta));
    const last = await stream.finalResponse();
    assert.equal(heard, "世界");
    assert.equal(last.output_text, "世界");
    assert.equal(last.previous_response_id, whole.id);
  },

  async "responses: the client's calls by call id"() {
    const tools = [flat(fn("left")), flat(fn("right"))];
    const first = await openai.responses.create({ model, input: "call left {}\ncall right {}", tools });
    const calls = first.output.filter((item) => item.type === "function_call");
    assert.equal(calls.length, 2);
    const input = calls.map(({ call_id, name }) => ({ type: "function_call_output", call_id, output: `${name}!` }));
    const second = await openai.responses.create({ model, input, tools, previous_response_id: first.id });
    assert.ok(second.output_text.includes("left!") && second.output_text.includes("right!"), second.output_text);

    // The same without the gateway's memory of the response: the history says it.
    const again = await openai.responses.create({ model, input: "call left {}", tools });
    const [call] = again.output.filter((item) => item.type === "function_call");
    const history = [
      { role: "user", content: "call left {}" },
      ...again.output,
      { type: "function_call_output", call_id: call.call_id, output: "é" },
    ];
    const last = await openai.responses.create({ model, input: history, tools });
    assert.ok(last.output_text.includes("é"), last.output_text);
  },

  async "responses: an approval is asked for and given"() {
    const asked = await openai.responses.create({ model, input: 'call delete_thing {"name":"a"}' });
    const [request] = asked.output.filter((item) => item.type === "mcp_approval_request");
    assert.deepEqual(JSON.parse(request.arguments), { name: "a" });
    const input = [{ type: "mcp_approval_response", approval_request_id: request.id, approve: true }];
    const done = await openai.responses.create({ model, input, previous_response_id: asked.id });
    assert.ok(done.output_text.includes("gone"), done.output_text);
  },

  async "responses: failures"() {
    const stream = openai.responses.stream({ model, input: "fail" });
    const seen = [];
    try {
      for await (const event of stream) seen.push(event);
    } catch {
      // The package may throw for a failed response.
    }
    assert.equal(seen.at(-1).type, "response.failed");
    assert.equal(seen.at(-1).response.error.code, "model_request_refused");
    await assert.rejects(
      openai.responses.create({ model, input: "hi", previous_response_id: "resp_nothing_1" }),
      OpenAI.NotFoundError,
    );
  },
};

for (const [name, story] of Object.entries(stories)) {
  try {
    await story();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`FAILED ${name}`);
    console.error(error);
    process.exitCode = 1;
  }
}
