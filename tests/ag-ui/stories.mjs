// Whole runs with the real AG-UI client, against a running gateway.
//   node stories.mjs <client package> <version>
// GATEWAY is its address, SECRET a secret key. Each story has a thread of its own.
import assert from "node:assert/strict";

const [, , packageName, version] = process.argv;
const { HttpAgent } = await import(packageName);
const { GATEWAY, SECRET } = process.env;
const one = version === "1.0";
const headers = { "x-secret-key": SECRET };

let made = 0;
function agent(options = {}) {
  made += 1;
  const threadId = options.threadId ?? `thread-${version}-${made}`;
  const url = `${GATEWAY}/ag-ui/${options.agent ?? "story"}`;
  return new HttpAgent({ url, headers: options.headers ?? headers, threadId, initialState: options.state });
}

function say(client, content) {
  client.addMessage({ id: `user-${version}-${made}-${client.messages.length}`, role: "user", content });
}

/** Runs once; answers the events and what the client made of them. */
async function run(client, parameters = {}) {
  const seen = { events: [], errors: [] };
  const result = await client.runAgent(parameters, {
    onEvent: ({ event }) => void seen.events.push(event),
    onRunErrorEvent: ({ event }) => void seen.errors.push(event),
  });
  const end = seen.events.at(-1);
  return { ...seen, ...result, end, types: seen.events.map((event) => event.type) };
}

const text = (message) => message?.content ?? "";
const last = (client, role) => client.messages.filter((message) => message.role === role).at(-1);
const tool = (name, properties = {}) => ({
  name,
  description: `Runs ${name}`,
  parameters: { type: "object", properties },
});

const stories = {
  async "words of many bytes arrive whole"() {
    const client = agent();
    say(client, "say Grüße 😀, 世界");
    const { types } = await run(client);
    assert.equal(text(last(client, "assistant")), "Grüße 😀, 世界");
    assert.ok(types.includes("STEP_STARTED") && types.includes("STATE_SNAPSHOT") === false, types.join());
    say(client, "say second");
    await run(client);
    assert.equal(client.messages.length, 4);
    assert.equal(text(last(client, "assistant")), "second");
  },

  async "thoughts are messages of their own"() {
    const client = agent();
    say(client, "think Let me see…\nsay Done");
    await run(client);
    assert.equal(text(last(client, "reasoning")), "Let me see…");
    assert.equal(text(last(client, "assistant")), "Done");
  },

  async "a tool of the gateway runs there"() {
    const client = agent();
    say(client, 'call lucky {"for":"Zoë"}');
    const { types } = await run(client);
    const result = last(client, "tool");
    assert.ok(text(result).includes("42"), text(result));
    assert.equal(types.filter((type) => type === "TOOL_CALL_RESULT").length, 1);
    const caller = client.messages.find((message) => message.toolCalls);
    assert.deepEqual(JSON.parse(caller.toolCalls[0].function.arguments), { for: "Zoë" });
    assert.ok(text(last(client, "assistant")).includes("answered"));
  },

  async "a tool of the client pauses the run and resumes it"() {
    const client = agent();
    const tools = [tool("get_location", { precision: { type: "string" } })];
    say(client, 'call get_location {"precision":"city"}');
    const first = await run(client, { tools });
    assert.equal(first.end.type, "RUN_FINISHED");
    const [call] = client.messages.at(-1).toolCalls;
    assert.equal(call.function.arguments, '{"precision":"city"}');
    assert.deepEqual(first.end.outcome, one ? { type: "success", pendingToolCallIds: [call.id] } : undefined);
    client.addMessage({ id: `r-${call.id}`, role: "tool", toolCallId: call.id, content: '{"city":"Zürich"}' });
    const second = await run(client, { tools });
    assert.ok(!second.types.includes("TOOL_CALL_START"));
    assert.ok(text(last(client, "assistant")).includes("Zürich"), text(last(client, "assistant")));
    assert.equal(client.messages.filter((message) => message.role === "tool").length, 1);
  },

  async "parallel calls share a message, and all results are waited for"() {
    const client = agent();
    const tools = [tool("left"), tool("right")];
    say(client, "call left {}\ncall lucky {}\ncall right {}");
    await run(client, { tools });
    const owner = client.messages.filter((message) => message.toolCalls);
    assert.equal(owner.length, 1);
    const calls = owner[0].toolCalls;
    assert.deepEqual(calls.map((call) => call.function.name), ["left", "lucky", "right"]);
    const open = calls.filter((call) => call.function.name !== "lucky");
    assert.equal(client.messages.filter((message) => message.role === "tool").length, 1);
    const answer = (call, content) =>
      client.addMessage({ id: `r-${call.id}`, role: "tool", toolCallId: call.id, content });
    answer(open[0], "L");
    const half = await run(client, { tools });
    assert.equal(half.end.type, "RUN_FINISHED");
    if (one) assert.deepEqual(half.end.outcome.pendingToolCallIds, [open[1].id]);
    answer(open[1], "R");
    await run(client, { tools });
    const said = text(last(client, "assistant"));
    assert.ok(said.includes("left answered: L") && said.includes("right answered: R"), said);
  },

  async "an approval is an interrupt, and edited arguments are what runs"() {
    const client = agent();
    say(client, 'call delete_thing {"name":"a"}');
    const asked = await run(client);
    assert.equal(asked.end.outcome.type, "interrupt");
    const [interrupt] = asked.end.outcome.interrupts;
    assert.equal(interrupt.reason, "tool_call");
    assert.deepEqual(interrupt.metadata.args, { name: "a" });
    assert.ok(interrupt.responseSchema.properties.editedArgs);
    const payload = { approved: true, editedArgs: { name: "b" } };
    const resume = [{ interruptId: interrupt.id, status: "resolved", payload }];
    const done = await run(client, { resume });
    assert.ok(done.types.includes("TOOL_CALL_RESULT") && !done.types.includes("TOOL_CALL_START"));
    assert.ok(text(last(client, "tool")).includes("gone"), text(last(client, "tool")));
    assert.ok(text(last(client, "assistant")).includes("answered"));
  },

  async "a denied call tells the model why"() {
    const client = agent();
    say(client, 'call delete_thing {"name":"a"}');
    const asked = await run(client);
    const [interrupt] = asked.end.outcome.interrupts;
    const payload = { approved: false, reason: "Not today" };
    await run(client, { resume: [{ interruptId: interrupt.id, status: "resolved", payload }] });
    assert.ok(text(last(client, "assistant")).includes("Not today"), text(last(client, "assistant")));
  },

  async "a run that another door cancels ends"() {
    const client = agent();
    say(client, "slow 1500");
    let stopped;
    const seen = [];
    await client.runAgent({}, {
      onEvent: ({ event }) => {
        seen.push(event);
        if (event.type === "TEXT_MESSAGE_CONTENT" && !stopped) {
          const url = `${GATEWAY}/copilotkit/agent/story/stop/${client.threadId}`;
          stopped = fetch(url, { method: "POST", headers });
        }
      },
    });
    assert.equal((await stopped).status, 200);
    const end = seen.at(-1);
    if (one) assert.equal(end.outcome?.type, "cancelled");
    else assert.deepEqual([end.type, end.code], ["RUN_ERROR", "canceled"]);
    say(client, "say go on");
    await run(client);
    assert.equal(text(last(client, "assistant")), "go on");
  },

  async "a failed model is an error event, a refused request an exception"() {
    const client = agent();
    say(client, "fail");
    const failed = await run(client);
    assert.equal(failed.errors.length, 1);
    assert.equal(failed.errors[0].code, "model_request_refused");
    const nobody = agent({ agent: "nobody" });
    say(nobody, "hi");
    await assert.rejects(run(nobody), (error) => error.status === 404 || /404/.test(error.message));
    const stranger = agent({ headers: { "x-secret-key": "wrong" } });
    say(stranger, "hi");
    await assert.rejects(run(stranger), (error) => error.status === 401 || /401/.test(error.message));
  },

  async "state is kept with the thread"() {
    const threadId = `state-${version}`;
    const client = agent({ threadId, state: { theme: "dark" } });
    say(client, "say hi");
    await run(client);
    const other = agent({ threadId });
    say(other, "say again");
    const { types } = await run(other);
    assert.ok(types.includes("STATE_SNAPSHOT"), types.join());
    assert.deepEqual(other.state, { theme: "dark" });
  },

  async "a plain message closes what was open"() {
    const client = agent();
    const tools = [tool("get_location")];
    say(client, "call get_location {}");
    await run(client, { tools });
    say(client, "say never mind");
    await run(client, { tools });
    assert.equal(text(last(client, "assistant")), "never mind");
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
