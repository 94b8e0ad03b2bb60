// A chat app of one version of the AI SDK against the built gateway.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open, posts, settled, text, tool, until, version } from "./client.mjs";
import { Gateway } from "./gateway.mjs";
import { Upstream, gate, told } from "./upstream.mjs";

let upstream, gateway;
let count = 0;
const name = () => `chat ${version}/${++count}`;

before(async () => {
  upstream = await Upstream.start();
  gateway = await Gateway.start(upstream);
});
after(async () => {
  await gateway?.stop();
  upstream?.stop();
});

test("text, and a second turn that knows the first", async () => {
  upstream.script({ text: "Hello there" }, { text: "Again" });
  const chat = open(gateway, { id: name() });
  await chat.sendMessage({ text: "hi" });
  assert.equal(chat.status, "ready");
  assert.equal(text(chat.messages[1]), "Hello there");
  await chat.sendMessage({ text: "more" });
  assert.equal(chat.messages.length, 4);
  assert.equal(new Set(chat.messages.map((m) => m.id)).size, 4);
  assert.deepEqual(told(upstream, 1), [["user", "hi"], ["assistant", "Hello there"], ["user", "more"]]);
});

test("reasoning is for those who may see it", async () => {
  upstream.script({ reasoning: "let me think", text: "Yes" }, { reasoning: "let me think", text: "Yes" });
  const backend = open(gateway, { id: name(), headers: gateway.secret });
  await backend.sendMessage({ text: "hi" });
  assert.equal(backend.messages[1].parts.find((p) => p.type === "reasoning").text, "let me think");
  const user = open(gateway, { id: name() });
  await user.sendMessage({ text: "hi" });
  assert.equal(user.messages[1].parts.some((p) => p.type === "reasoning"), false);
  assert.equal(text(user.messages[1]), "Yes");
});

test("h13 a gateway tool runs within one request", async () => {
  upstream.script({ text: "Looking. ", calls: [["look", {}], ["hidden", {}]] }, { text: "Seen" });
  const chat = open(gateway, { id: name() });
  await chat.sendMessage({ text: "look" });
  assert.equal(posts(chat), 1);
  const message = chat.messages[1];
  assert.deepEqual(tool(message, "look").output, { success: true, tool: "look" });
  assert.equal(tool(message, "hidden").state, "output-available");
  assert.deepEqual([tool(message, "hidden").input, tool(message, "hidden").output], [{}, null]);
  assert.equal(text(message), "Looking. Seen");
});

test("h11 h13 a client tool costs two requests and one message", async () => {
  upstream.script({ calls: [["ask", { n: 1 }]] }, { text: "Thanks" });
  const chat = open(gateway, { id: name(), tools: { ask: (input) => ({ twice: input.n * 2 }) } });
  await chat.sendMessage({ text: "go" });
  await settled(chat, () => text(chat.messages[1]) === "Thanks");
  assert.deepEqual([posts(chat), chat.messages.length, chat.ran], [2, 2, ["ask"]]);
  assert.deepEqual(tool(chat.messages[1], "ask").output, { twice: 2 });
  assert.deepEqual(told(upstream, 1).at(-1), ["tool", '{"twice":2}']);
});

test("several client tools at once, and a chain of them", async () => {
  upstream.script({ calls: [["ask", { n: 1 }], ["tell", { n: 2 }]] }, { calls: [["ask", { n: 3 }]] }, { text: "Done" });
  const chat = open(gateway, { id: name(), tools: { ask: () => "asked", tell: () => "told" } });
  await chat.sendMessage({ text: "go" });
  await settled(chat, () => text(chat.messages[1]) === "Done");
  assert.deepEqual([posts(chat), chat.ran, upstream.requests.length], [3, ["ask", "tell", "ask"], 3]);
  assert.deepEqual(told(upstream, 1).slice(-2), [["tool", "asked"], ["tool", "told"]]);
});

test("a gateway tool and a client tool in one step", async () => {
  upstream.script({ calls: [["look", {}], ["ask", {}]] }, { text: "Both" });
  const chat = open(gateway, { id: name(), tools: { ask: () => 1 } });
  await chat.sendMessage({ text: "go" });
  await settled(chat, () => text(chat.messages[1]) === "Both");
  assert.equal(posts(chat), 2);
  assert.equal(tool(chat.messages[1], "look").state, "output-available");
});

test("an answer from elsewhere comes first, and the late one is ignored", async () => {
  upstream.script({ calls: [["ask", {}]] }, { text: "Heard" });
  const late = gate();
  const chat = open(gateway, { id: name(), tools: { ask: () => late.shut.then(() => "late") } });
  await chat.sendMessage({ text: "go" });
  const { json } = await gateway.api("/api/pending-calls");
  const wait = json.waits.find((w) => w.toolCallId === tool(chat.messages[1], "ask").toolCallId);
  const given = await gateway.api(`/api/runs/${wait.runId}/tool-results`, { method: "POST", body: { callId: wait.toolCallId, result: "first" } });
  assert.equal(given.status, 200);
  late.open();
  await settled(chat, () => text(chat.messages[1]) === "Heard");
  assert.deepEqual(told(upstream, 1).at(-1), ["tool", "first"]);
  assert.equal(tool(chat.messages[1], "ask").output, "first", "the stored outcome is streamed");
});

test("a tool that fails is told to the model, bad input to the client", async () => {
  upstream.script({ calls: [["ask", {}]] }, { calls: [["ask", { n: "no number" }]] }, { text: "I see" });
  const chat = open(gateway, { id: name(), tools: { ask: () => Promise.reject(new Error("no camera")) } });
  await chat.sendMessage({ text: "go" });
  await settled(chat, () => text(chat.messages[1]) === "I see");
  assert.match(told(upstream, 1).at(-1)[1], /\{"error":"no camera"\}/);
  assert.deepEqual(chat.ran, ["ask"], "a call with bad input reaches no client");
  const states = chat.messages[1].parts.filter((p) => p.type === "tool-ask").map((p) => p.state);
  assert.deepEqual(states, ["output-error", "output-error"]);
});

test("a model that fails, and one that is cut, are errors", async () => {
  upstream.script({ status: 400 });
  const failed = open(gateway, { id: name() });
  await failed.sendMessage({ text: "go" });
  assert.equal(failed.status, "error");
  assert.ok(failed.errors[0].length > 0);
  // A stream that is cut after its first words is not asked for again.
  const held = gate();
  upstream.script({ text: "Half of ", hold: held.shut, cut: true });
  const cut = open(gateway, { id: name() });
  const sending = cut.sendMessage({ text: "go" });
  await until(() => text(cut.messages[1]) === "Half of ");
  held.open();
  await sending;
  assert.equal(cut.status, "error");
  assert.equal(text(cut.messages[1]), "Half of ");
});

test("a refusal is a sentence", async () => {
  const chat = open(gateway, { id: name(), headers: { "x-secret-key": "wrong" } });
  await chat.sendMessage({ text: "go" });
  assert.deepEqual(chat.errors, ["Invalid secret key"]);
  const big = open(gateway, { id: "x".repeat(300) });
  await big.sendMessage({ text: "go" });
  assert.match(big.errors[0], /limit is 256/);
});

test("h1 tools that the request brings", async () => {
  const locate = { name: "locate", description: "Where is the user", parameters: { type: "object", properties: { precise: { type: "boolean" } } } };
  upstream.script({ calls: [["locate", { precise: true }]] }, { text: "Oslo" });
  const chat = open(gateway, { id: name(), body: { clientTools: [locate] }, tools: { locate: () => ({ city: "Oslo" }) } });
  await chat.sendMessage({ text: "where" });
  await settled(chat, () => text(chat.messages[1]) === "Oslo");
  assert.ok(upstream.requests[0].tools.some((t) => t.function.name === "locate"));
  const taken = open(gateway, { id: name(), body: { clientTools: [{ ...locate, name: "look" }] } });
  await taken.sendMessage({ text: "where" });
  assert.match(taken.errors[0], /look/);
  upstream.script({ text: "ok" });
  const few = open(gateway, { id: name(), body: { exactToolNames: ["look"], excludedTools: ["ask"] } });
  await few.sendMessage({ text: "hi" });
  assert.deepEqual(upstream.requests[0].tools.map((t) => t.function.name), ["look"]);
});

test("the last message alone is enough", async () => {
  upstream.script({ text: "One" }, { calls: [["ask", {}]] }, { text: "Two" });
  const chat = open(gateway, { id: name(), last: true, tools: { ask: () => 1 } });
  await chat.sendMessage({ text: "a" });
  await chat.sendMessage({ text: "b" });
  await settled(chat, () => text(chat.messages[3]) === "Two");
  assert.deepEqual(told(upstream, 1), [["user", "a"], ["assistant", "One"], ["user", "b"]]);
});

test("an edit and a second try start over from there", async () => {
  upstream.script({ text: "One" }, { text: "Two" }, { text: "Three" }, { text: "Four" });
  const chat = open(gateway, { id: name() });
  await chat.sendMessage({ text: "a" });
  await chat.sendMessage({ text: "b" });
  await chat.regenerate();
  assert.equal(text(chat.messages[3]), "Three");
  assert.deepEqual(told(upstream, 2), [["user", "a"], ["assistant", "One"], ["user", "b"]]);
  await chat.sendMessage({ text: "A", messageId: chat.messages[0].id });
  assert.deepEqual(chat.messages.map(text), ["A", "Four"]);
  assert.deepEqual(told(upstream, 3), [["user", "A"]]);
});

test("a page that comes back gets the stream from its start", async () => {
  const held = gate();
  upstream.script({ text: "First half, ", hold: held.shut, after: "second half" });
  const id = name();
  const first = open(gateway, { id });
  const sending = first.sendMessage({ text: "go" });
  await until(() => text(first.messages[1]).startsWith("First half"));
  const page = open(gateway, { id, messages: first.messages.slice(0, 1) });
  const resuming = page.resumeStream();
  await until(() => text(page.messages[1]).startsWith("First half"));
  // The first tab goes away; nothing stops by that.
  await first.stop();
  held.open();
  await Promise.all([sending, resuming]);
  assert.equal(text(page.messages[1]), "First half, second half");
  assert.equal(page.messages[1].id, first.messages[1].id);
  assert.equal(upstream.requests.length, 1);
  const later = open(gateway, { id, messages: page.messages });
  await later.resumeStream();
  assert.equal(later.status, "ready");
  assert.equal(later.messages.length, 2, "nothing to resume is 204");
});

test("a page that was closed while a tool waited gets its call again", async () => {
  upstream.script({ text: "Wait. ", calls: [["ask", { n: 4 }]] }, { text: "Thanks" });
  const id = name();
  const first = open(gateway, { id });
  await first.sendMessage({ text: "go" });
  const page = open(gateway, { id, messages: first.messages.slice(0, 1), tools: { ask: (input) => input.n } });
  await page.resumeStream();
  await settled(page, () => text(page.messages[1]) === "Wait. Thanks");
  assert.deepEqual(page.ran, ["ask"]);
});

test("a page that comes back does not run again what has run", async () => {
  const held = gate();
  upstream.script({ text: "Wait. ", calls: [["ask", { n: 4 }]] }, { text: "Thanks ", hold: held.shut, after: "again" });
  const id = name();
  const first = open(gateway, { id, tools: { ask: (input) => input.n } });
  // Not awaited: if the output is there before the body ends, the client sends
  // it within this very call and comes back with the whole answer.
  const sending = first.sendMessage({ text: "go" });
  await until(() => text(first.messages[1]).endsWith("Thanks "));
  const page = open(gateway, { id, messages: first.messages.slice(0, 1), tools: { ask: (input) => input.n } });
  const resuming = page.resumeStream();
  await until(() => text(page.messages[1]).endsWith("Thanks "));
  held.open();
  await Promise.all([sending, resuming]);
  assert.equal(text(page.messages[1]), "Wait. Thanks again");
  assert.deepEqual(page.ran, []);
  assert.deepEqual([tool(page.messages[1], "ask").input, tool(page.messages[1], "ask").output], [{ n: 4 }, 4]);
  await settled(first, () => text(first.messages[1]) === "Wait. Thanks again");
});

test("stop ends the run, and the next message goes on", async () => {
  const held = gate();
  upstream.script({ text: "Some words ", hold: held.shut }, { text: "Fine" });
  const id = name();
  const chat = open(gateway, { id });
  const sending = chat.sendMessage({ text: "go" });
  await until(() => text(chat.messages[1]) === "Some words ");
  const path = `/api/chat/${encodeURIComponent(id)}/stop`;
  assert.deepEqual((await gateway.api(path, { method: "POST", headers: gateway.user("ada") })).json, { stopped: true });
  await sending;
  assert.equal(chat.status, "ready");
  held.open();
  assert.deepEqual((await gateway.api(path, { method: "POST", headers: gateway.user("ada") })).json, { stopped: false });
  await chat.sendMessage({ text: "next" });
  assert.equal(text(chat.messages.at(-1)), "Fine");
  assert.deepEqual(told(upstream, 1), [["user", "go"], ["assistant", "Some words "], ["user", "next"]]);
});

test("a message instead of an output closes the call", async () => {
  upstream.script({ calls: [["ask", {}]] }, { text: "Never mind" });
  const chat = open(gateway, { id: name() });
  await chat.sendMessage({ text: "go" });
  await chat.sendMessage({ text: "stop that" });
  assert.equal(chat.messages.length, 4);
  assert.equal(text(chat.messages[3]), "Never mind");
  assert.match(told(upstream, 1).find(([role]) => role === "tool")[1], /user provided new input/);
});

test("an output of three megabytes, and a file", async () => {
  const big = "x".repeat(3 << 20);
  upstream.script({ calls: [["ask", {}]] }, { text: "Much" }, { text: "Nice picture" });
  const chat = open(gateway, { id: name(), tools: { ask: () => ({ big }) } });
  await chat.sendMessage({ text: "go" });
  await settled(chat, () => text(chat.messages[1]) === "Much");
  assert.equal(tool(chat.messages[1], "ask").output.big.length, big.length);
  const url = "data:image/png;base64,iVBORw0KGgo=";
  await chat.sendMessage({ text: "look", files: [{ type: "file", mediaType: "image/png", filename: "a.png", url }] });
  assert.equal(text(chat.messages.at(-1)), "Nice picture");
  assert.ok(JSON.stringify(upstream.requests[2]).includes("iVBORw0KGgo="));
});

test("kill -9 in the middle: the page resumes and the answer comes whole", async () => {
  const held = gate();
  // The second try waits for the page: a run that has ended has no stream to resume.
  const back = gate();
  upstream.script({ calls: [["look", {}]] }, { text: "Lost ", hold: held.shut }, { text: "All ", hold: back.shut, after: "of it" });
  const id = name();
  const chat = open(gateway, { id });
  const sending = chat.sendMessage({ text: "go" });
  await until(() => text(chat.messages[1]).startsWith("Lost"));
  await gateway.kill();
  await sending;
  assert.equal(chat.status, "error");
  held.open();
  await gateway.run();
  const page = open(gateway, { id, messages: chat.messages.slice(0, 1) });
  const resumed = page.resumeStream();
  await until(() => text(page.messages[1]).startsWith("All"));
  back.open();
  await resumed;
  assert.equal(text(page.messages[1]), "All of it");
  assert.equal(tool(page.messages[1], "look").state, "output-available");
  assert.equal(page.messages[1].id, chat.messages[1].id);
});

test("h6 h23 the log tells of turns and tools", () => {
  assert.match(gateway.log, /Loaded 6 core \+ 0 SDK client = 6 total tools/);
  assert.match(gateway.log, /Loaded 6 core \+ 1 SDK client = 7 total tools/);
  assert.match(gateway.log, /Loaded 1 core \+ 0 SDK client = 1 total tools/);
  assert.ok(gateway.log.split("chat turn").length > 20);
});
