// Spaces, runs, waits and results against the real gateway.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { safeValidateToolDefinitions, type StreamEvent, type ToolInputAvailableFrame } from "../src/index.js";
import { Gateway, robotSpace, until } from "./gateway.js";

let gateway: Gateway;
before(async () => {
  gateway = await Gateway.start();
});
after(() => gateway.stop());

const move = { name: "move", description: "Moves", inputSchema: { type: "object", properties: { to: { type: "string" } } } };
const look = { name: "look", description: "Looks" };

test("g37_g41_a_robot_listens_executes_and_submits", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "g37", [move]);
  const stream = client.spaces.subscribe(space);
  stream.on("tool-input-available", async (event) => {
    const { toolCallId, toolName, input, runId } = event.data;
    if (toolName !== "move") return;
    await client.tools.submitResult(space, { runId, toolCallId, result: { at: (input as { to: string }).to }, source: "client" });
  });
  const types: string[] = [];
  stream.on("*", (event) => types.push(event.type));
  const posted = await client.spaces.post(space, { entityId: person, content: 'call move {"to":"door"}' });
  const run = posted.runs[0]!.runId!;
  assert.equal((await client.runs.finished(run)).status, "completed");
  await until(() => (types.includes("run.completed") ? true : undefined));
  stream.close();
  await stream.closed;
  const order = ["tool-input-available", "run.waiting_tool", "tool-output-available", "run.completed"];
  assert.deepEqual(types.filter((type) => order.includes(type)), order);
  const events = await client.runs.events(run);
  const output = events.find((frame) => frame.type === "tool-output-available");
  assert.deepEqual([output && "output" in output && output.output, output && "source" in output && output.source], [{ at: "door" }, "client"]);
  const messages = await client.spaces.messages(space);
  assert.match(messages.at(-1)!.content, /door/);
});

test("g41_a_result_goes_in_under_its_run_and_twice_is_harmless", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "g41", [move, look]);
  const posted = await client.spaces.post(space, { entityId: person, content: "call move {}\ncall look {}" });
  const run = posted.runs[0]!.runId!;
  const waits = await until(async () => {
    const found = await client.waits.pendingCalls({ runId: run });
    return found.length === 2 ? found : undefined;
  });
  const [one, two] = waits.map((wait) => wait.toolCallId) as [string, string];
  const first = await client.tools.submitRunResult(run, { callId: one, result: null, source: "client", clientId: "robot-1" });
  assert.deepEqual(first.results, [{ toolCallId: one, status: "accepted" }]);
  const again = await client.tools.submitRunResult(run, { callId: one, result: null });
  assert.equal(again.results[0]?.status, "repeated");
  await assert.rejects(client.tools.submitRunResult(run, { callId: one, result: "other" }), { code: "result_conflict", status: 409 });
  await assert.rejects(client.tools.submitRunResult(run, { callId: "call_00000000000000000000000000", result: 1 }), { status: 404 });
  const last = await client.tools.submitRunResults(run, [{ toolCallId: two, error: "blind" }]);
  assert.equal(last.success, true);
  await client.runs.finished(run);
  const failed = (await client.runs.events(run)).find((frame) => frame.type === "tool-error");
  assert.equal(failed && "error" in failed && failed.error, "blind");
});

test("g36_a_user_answers_with_a_public_key_and_a_fresh_token", { timeout: 20_000 }, async () => {
  const backend = gateway.client();
  const { space } = await robotSpace(backend, "g36", [look]);
  const ada = gateway.user("ada-g36");
  const serving = ada.serve(space, { tools: { look: () => ({ sees: "a cup" }) } });
  const run = (await ada.spaces.post(space, "call look {}")).runs[0]!.runId!;
  const end = await ada.runs.finished(run);
  assert.equal(end.status, "completed");
  await serving.close();
  const bob = gateway.user("bob-nobody");
  await assert.rejects(bob.spaces.messages(space), { code: "forbidden", status: 403 });
});

test("g48_of_two_robots_one_runs_the_call", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "g48", [move]);
  let runs = 0;
  const robot = (clientId: string) => gateway.client().serve(space, { clientId, tools: { move: () => ({ runs: (runs += 1) }) } });
  const robots = [robot("left"), robot("right")];
  await Promise.all(robots.map((each) => new Promise<void>((open) => each.subscription.on("open", () => open()))));
  const run = (await client.spaces.post(space, { entityId: person, content: "call move {}" })).runs[0]!.runId!;
  await client.runs.finished(run);
  assert.equal(runs, 1);
  for (const each of robots) await each.close();
});

test("a robot that was off gets the calls that wait, and old ones not", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "late", [move]);
  const say = async (content: string) => (await client.spaces.post(space, { entityId: person, content })).runs[0]!.runId!;
  const first = client.serve(space, { tools: { move: () => "old" } });
  await client.runs.finished(await say("call move {}"));
  await first.close();
  const run = await say('call move {"to":"hall"}');
  await until(async () => (await client.waits.pendingCalls({ runId: run }))[0]);
  const inputs: unknown[] = [];
  const second = client.serve(space, { tools: { move: (input: { to?: string }) => inputs.push(input) } });
  await client.runs.finished(run);
  await second.close();
  assert.deepEqual(inputs, [{ to: "hall" }]);
});

test("registered tools serve a space, failures are told, undefined means later", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "mixed", [move, look, { name: "ask_person" }, { name: "of_another" }]);
  const parameters = { type: "object" as const, properties: {} };
  client.registerTool({ name: "move", description: "Moves", parameters, execute: () => undefined });
  client.registerTool({
    name: "look",
    description: "Looks",
    parameters,
    execute: () => {
      throw new Error("no camera");
    },
  });
  let asked: ToolInputAvailableFrame | undefined;
  const serving = client.serve(space, { tools: { ask_person: () => undefined } });
  serving.subscription.on("tool-input-available", (event) => {
    if (event.data.toolName === "ask_person") asked = event.data;
  });
  const content = "call move {}\ncall look {}\ncall ask_person {}\ncall of_another {}";
  const run = (await client.spaces.post(space, { entityId: person, content })).runs[0]!.runId!;
  const left = await until(async () => {
    const open = (await client.waits.pendingCalls({ runId: run })).map((wait) => wait.toolName).sort();
    return open.length === 2 ? open : undefined;
  });
  assert.deepEqual(left, ["ask_person", "of_another"]);
  await serving.idle();
  await client.tools.submitRunResult(run, { callId: asked!.toolCallId, result: { approved: true } });
  const other = (await client.waits.pendingCalls({ runId: run }))[0]!;
  await client.tools.submitRunResult(run, { callId: other.toolCallId, result: 1 });
  await client.runs.finished(run);
  await serving.close();
  const ends = (await client.runs.events(run)).flatMap((frame) => {
    if (frame.type !== "tool-output-available" && frame.type !== "tool-error") return [];
    return [[frame.toolName, frame.output ?? frame.error ?? null]];
  });
  assert.deepEqual(Object.fromEntries(ends), { move: null, look: "no camera", ask_person: { approved: true }, of_another: 1 });
});

test("a call waits for the plugin that is about to bring its tool", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "slow-plugin", [look]);
  const run = (await client.spaces.post(space, { entityId: person, content: "call look {}" })).runs[0]!.runId!;
  await until(async () => (await client.waits.pendingCalls({ runId: run }))[0]);
  client.use({
    name: "eyes",
    version: "1.0.0",
    hooks: {
      async onRegister() {
        await new Promise((next) => setTimeout(next, 100));
        this.tools = [{ name: "look", description: "Looks", parameters: { type: "object", properties: {} } }];
        this.executors = { look: () => "a cup" };
      },
    },
  });
  const serving = client.serve(space);
  assert.equal((await client.runs.finished(run)).status, "completed");
  await serving.close();
});

test("h15_a_message_brings_tools_that_its_sender_executes", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "brings", []);
  const parameters = { type: "object" as const, properties: { n: { type: "number" as const } } };
  client.registerTool({ name: "double_it", description: "Doubles", parameters, execute: ({ n }: { n: number }) => n * 2 });
  const serving = client.serve(space);
  const clientTools = client.getClientToolDefinitions();
  const posted = await client.spaces.post(space, { entityId: person, content: 'call double_it {"n": 21}', clientTools });
  await client.runs.finished(posted.runs[0]!.runId!);
  await serving.close();
  assert.match((await client.spaces.messages(space)).at(-1)!.content, /42/);
});

test("l8_l27_the_gateway_refuses_definitions_in_the_same_words", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "words", []);
  const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
  const tool = (more: object) => ({ name: "a", description: "d", parameters: object({}), ...more });
  const deep = (levels: number): object => (levels === 1 ? { type: "string" } : object({ a: deep(levels - 1) }));
  const wide = object(Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`p${n}`, {}])));
  const bad: unknown[][] = [
    ["tool"],
    [tool({ name: "1a" })],
    [tool({ name: "my-tool" }), tool({ name: "" }), tool({ name: "constructor" })],
    [tool({ description: "" })],
    [tool({ description: 7 })],
    [tool({ description: "x".repeat(1025) })],
    [tool({ description: "x\u202ey" })],
    [{ function: tool({}) }],
    [tool({ parameters: { type: "array" } })],
    [tool({ parameters: { type: "object" } })],
    [tool({ parameters: undefined })],
    [tool({ inputSchema: object({}) })],
    [tool({ parameters: deep(6) })],
    [tool({ parameters: wide })],
    [tool({ parameters: object({ "x/y": { type: "date" } }) })],
    [tool({ parameters: object({ x: { $ref: "#" } }) })],
    [tool({ parameters: object({ x: { anyOf: {} } }) })],
    [tool({ parameters: object({ x: 7 }) })],
    [tool({ parameters: object({}, { required: "x" }) })],
    [tool({}), tool({}), tool({ name: "b" }), tool({ name: "b" })],
  ];
  for (const clientTools of bad) {
    const found = safeValidateToolDefinitions(JSON.parse(JSON.stringify(clientTools)), { names: "chat" });
    const ours = found.success ? "accepted" : `Invalid client tool definitions: ${found.errors.join("; ")}`;
    const posting = client.spaces.post(space, { entityId: person, content: "say x", clientTools: clientTools as never });
    const theirs = await posting.then(() => "accepted", (thrown: Error) => thrown.message);
    assert.equal(ours, theirs);
    assert.notEqual(theirs, "accepted");
  }
});

test("waits are claimed and answered", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "asks", [{ ...move, approval: "ask" }]);
  const run = (await client.spaces.post(space, { entityId: person, content: 'call move {"to":"a"}' })).runs[0]!.runId!;
  const wait = await until(async () => (await client.waits.approvals({ runId: run }))[0]);
  assert.equal(wait.kind, "approval");
  await client.waits.answer(wait.id, { decision: "allow", editedArgs: { to: "b" } });
  const call = await until(async () => (await client.waits.pendingCalls({ smartSpaceId: space }))[0]);
  assert.deepEqual(call.payload, { to: "b" });
  const claimed = await client.waits.claim(call.id, "me");
  assert.equal(claimed.clientId, "me");
  await assert.rejects(client.waits.claim(call.id, "you"), { code: "conflict" });
  await client.tools.submitRunResult(run, { callId: call.toolCallId, result: "done" });
  await client.runs.finished(run);
  assert.deepEqual(await client.waits.list({ runId: run }), []);
});

test("x_a_subscription_survives_a_kill_of_the_gateway_and_misses_nothing", { timeout: 40_000 }, async () => {
  const client = gateway.client({ retryMs: 20, retries: 10 });
  const { space, person } = await robotSpace(client, "killed", [move]);
  const ids: string[] = [];
  const calls: StreamEvent<ToolInputAvailableFrame>[] = [];
  const stream = client.spaces.subscribe(space, { retryMs: 20 });
  stream.on("*", ({ id }) => id !== undefined && ids.push(id));
  stream.on("tool-input-available", (event) => calls.push(event));
  let broken = 0;
  stream.on("reconnecting", () => (broken += 1));
  const run = (await client.spaces.post(space, { entityId: person, content: 'call move {"to":"x"}' })).runs[0]!.runId!;
  await until(() => calls[0]);
  await gateway.kill();
  await until(() => (broken > 0 ? true : undefined));
  await gateway.up();
  await client.tools.submitRunResult(run, { callId: calls[0]!.data.toolCallId, result: 1 });
  await client.runs.finished(run);
  const last = (await client.spaces.get(space)).lastSeq;
  await until(() => (ids.at(-1) === String(last) ? true : undefined));
  stream.close();
  // The same as somebody sees who reads it all at once, each event once.
  const all: string[] = [];
  for await (const { id } of client.spaces.subscribe(space, { from: "start" })) {
    if (id !== undefined) all.push(id);
    if (id === String(last)) break;
  }
  assert.deepEqual(ids.slice(1), all.filter((id) => Number(id) > Number(ids[0])));
  assert.equal(calls.length, 1);
});

test("what no second try mends ends a subscription with its error", { timeout: 20_000 }, async () => {
  const client = gateway.client();
  const stream = client.spaces.subscribe("spc_00000000000000000000000000");
  await assert.rejects(async () => {
    for await (const event of stream) assert.fail(event.type);
  }, { status: 404 });
  const stranger = gateway.client({ auth: { secretKey: "sk_of_nobody_at_all_00" } });
  await assert.rejects(stranger.spaces.list(), { code: "unauthorized", status: 401 });
});

test("a post whose answer got lost is not written twice", { timeout: 20_000 }, async () => {
  const backend = gateway.client();
  const { space, person } = await robotSpace(backend, "lost", [move]);
  let lost = 0;
  const flaky: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === "POST" && lost++ === 0) throw new TypeError("socket hang up");
    return response;
  };
  const client = gateway.client({ fetch: flaky, retryMs: 1 });
  await client.spaces.post(space, { entityId: person, content: "say once", triggerAgents: false });
  assert.equal(lost, 2);
  assert.equal((await backend.spaces.messages(space)).length, 1);
});
