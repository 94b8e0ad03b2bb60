// CopilotKit's own core, without its Node runtime, against a running gateway.
import assert from "node:assert/strict";

const { GATEWAY, SECRET } = process.env;

// It does nothing on a server: the least of a browser that it asks for.
globalThis.window = {
  location: { origin: GATEWAY, href: `${GATEWAY}/` },
  addEventListener() {},
  removeEventListener() {},
  fetch: globalThis.fetch,
};
const { CopilotKitCore } = await import("@copilotkit/core");

function schema(properties) {
  // The least that a tool's parameters must be: a standard schema that names its JSON Schema.
  const json = { type: "object", properties };
  return {
    "~standard": {
      version: 1,
      vendor: "story",
      validate: (value) => ({ value }),
      jsonSchema: { input: () => json, output: () => json },
    },
  };
}

async function connected(tools = []) {
  const core = new CopilotKitCore({
    runtimeUrl: `${GATEWAY}/copilotkit`,
    headers: { "x-secret-key": SECRET },
    tools,
  });
  for (let tries = 0; tries < 200 && !core.getAgent("story"); tries += 1) {
    await new Promise((done) => setTimeout(done, 25));
  }
  const agent = core.getAgent("story");
  assert.ok(agent, "the agent is in /info");
  return { core, agent };
}

const text = (agent) => agent.messages.filter((message) => message.role === "assistant").at(-1)?.content;
const until = async (what, holds) => {
  for (let tries = 0; tries < 400; tries += 1) {
    if (holds()) return;
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error(`it never came: ${what}`);
};
let count = 0;
const say = (agent, content) => agent.addMessage({ id: `u-${(count += 1)}`, role: "user", content });

const stories = {
  async "a frontend tool runs here and the answer follows"() {
    const heard = [];
    const handler = async (args) => {
      heard.push(args);
      return { city: "Zürich" };
    };
    const parameters = schema({ precision: { type: "string" } });
    const location = { name: "get_location", description: "Where", parameters, handler };
    const { core, agent } = await connected([location]);
    agent.threadId = "ck-tool";
    say(agent, 'call get_location {"precision":"city"}');
    await core.runAgent({ agent });
    assert.deepEqual(heard, [{ precision: "city" }]);
    assert.ok(text(agent).includes("Zürich"), text(agent));
  },

  async "an interrupt is answered by resume"() {
    const { core, agent } = await connected();
    agent.threadId = "ck-approval";
    let interrupts;
    agent.subscribe({
      onRunFinishedEvent: ({ event }) => {
        if (event.outcome?.type === "interrupt") interrupts = event.outcome.interrupts;
      },
    });
    say(agent, 'call delete_thing {"name":"a"}');
    await core.runAgent({ agent });
    assert.equal(interrupts?.length, 1);
    const [{ id, toolCallId }] = interrupts;
    // What CopilotKit's hooks do: the decision also stands in the history.
    agent.addMessage({ id: `t-${id}`, role: "tool", toolCallId, content: '{"approved":true}' });
    const resume = [{ interruptId: id, status: "resolved", payload: { approved: true } }];
    await core.runAgent({ agent, resume });
    assert.ok(text(agent).includes("gone"), text(agent));
  },

  async "a page that reloads gets the thread, and its open question again"() {
    const parameters = schema({ question: { type: "string" } });
    let answer;
    const waits = (args) => new Promise((resolve) => (answer = () => resolve(`yes to ${args.question}`)));
    const ask = { type: "human-in-the-loop", name: "ask", description: "Asks", parameters };
    const first = await connected([{ ...ask, handler: waits }]);
    first.agent.threadId = "ck-reload";
    say(first.agent, 'call ask {"question":"cake?"}');
    void first.core.runAgent({ agent: first.agent });
    await until("the first question", () => answer);

    // Another page: nothing is in its memory.
    answer = undefined;
    const second = await connected([{ ...ask, handler: waits }]);
    second.agent.threadId = "ck-reload";
    await second.core.connectAgent({ agent: second.agent });
    assert.equal(second.agent.messages[0].role, "user");
    assert.ok(second.agent.messages.some((message) => message.toolCalls?.[0]?.function.name === "ask"));
    await until("the question again", () => answer);
    answer();
    await until("the answer", () => text(second.agent)?.includes("yes to cake?"));
    first.core.stopAgent({ agent: first.agent });
  },

  async "a thread that rests is replayed as messages"() {
    const { core, agent } = await connected();
    agent.threadId = "ck-rest";
    say(agent, "call lucky {}");
    await core.runAgent({ agent });
    const before = agent.messages.map(({ role, content }) => ({ role, content }));
    const later = await connected();
    later.agent.threadId = "ck-rest";
    await later.core.connectAgent({ agent: later.agent });
    const after = later.agent.messages.map(({ role, content }) => ({ role, content }));
    assert.deepEqual(after, before);
    say(later.agent, "say and on");
    await later.core.runAgent({ agent: later.agent });
    assert.equal(text(later.agent), "and on");
  },

  async "stop ends the run"() {
    const { core, agent } = await connected();
    agent.threadId = "ck-stop";
    say(agent, "slow 1500");
    let stopped = false;
    agent.subscribe({
      onTextMessageContentEvent: () => {
        if (!stopped) core.stopAgent({ agent });
        stopped = true;
      },
    });
    await core.runAgent({ agent });
    assert.ok(stopped);
    await until("the end of the run", async () => true);
    const list = () => fetch(`${GATEWAY}/api/runs?limit=1`, { headers: { "x-secret-key": SECRET } });
    let status;
    for (let tries = 0; tries < 200 && status !== "canceled"; tries += 1) {
      status = (await (await list()).json()).runs[0].status;
      await new Promise((done) => setTimeout(done, 25));
    }
    assert.equal(status, "canceled");
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
process.exit();
