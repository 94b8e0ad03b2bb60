// A chat on the WebSocket transport of the AI SDK 7 against the built gateway.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { ai, open, settled, text, tool, until } from "./client.mjs";
import { Gateway } from "./gateway.mjs";
import { Upstream, gate, told } from "./upstream.mjs";

const require = createRequire(`${process.env.CHAT_CLIENTS}/package.json`);
const webSocket = require("ws");
const transports = [];
let upstream, gateway;
let count = 0;
const name = () => `socket/${++count}`;

before(async () => {
  upstream = await Upstream.start();
  gateway = await Gateway.start(upstream);
});
after(async () => {
  transports.forEach((transport) => transport.close());
  await gateway?.stop();
  upstream?.stop();
});

const socket = (headers = gateway.user("ada"), body) => {
  const transport = new ai.WebSocketChatTransport({ url: `${gateway.url}/api/chat/connect`, headers, body, webSocket });
  transports.push(transport);
  return transport;
};

test("c2 text, a tool of the page, and a second turn on one socket", async () => {
  upstream.script({ text: "Let me see. ", calls: [["ask", { n: 21 }]] }, { text: "It is 42" }, { text: "Bye" });
  const chat = open(gateway, { id: name(), transport: socket(), tools: { ask: ({ n }) => n * 2 } });
  await chat.sendMessage({ text: "what is it?" });
  await settled(chat, () => text(chat.messages[1]) === "Let me see. It is 42");
  assert.deepEqual([chat.ran, tool(chat.messages[1], "ask").output], [["ask"], 42]);
  await chat.sendMessage({ text: "bye" });
  assert.equal(text(chat.messages[3]), "Bye");
  assert.deepEqual(told(upstream, 2).at(-1), ["user", "bye"]);
});

test("c2 several chats at once on one socket", async () => {
  const held = [gate(), gate()];
  upstream.script({ text: "One ", hold: held[0].shut, after: "done" }, { text: "Two ", hold: held[1].shut, after: "done" });
  const transport = socket();
  const chats = [open(gateway, { id: name(), transport }), open(gateway, { id: name(), transport })];
  const first = chats[0].sendMessage({ text: "a" });
  await until(() => text(chats[0].messages[1]) === "One ");
  const second = chats[1].sendMessage({ text: "b" });
  await until(() => text(chats[1].messages[1]) === "Two ");
  held[1].open();
  await second;
  assert.equal(text(chats[1].messages[1]), "Two done");
  held[0].open();
  await first;
  assert.equal(text(chats[0].messages[1]), "One done");
});

test("c2 a page that comes back gets the answer from its start, or nothing", async () => {
  const held = gate();
  upstream.script({ text: "First half, ", hold: held.shut, after: "second half" });
  const id = name();
  const gone = socket();
  const first = open(gateway, { id, transport: gone });
  const sending = first.sendMessage({ text: "go" });
  await until(() => text(first.messages[1]) === "First half, ");
  // The connection goes; nothing stops by that.
  gone.close();
  await sending;
  const page = open(gateway, { id, transport: socket(), messages: first.messages.slice(0, 1) });
  const resuming = page.resumeStream();
  await until(() => text(page.messages[1]) === "First half, ");
  held.open();
  await resuming;
  assert.equal(text(page.messages[1]), "First half, second half");
  assert.equal(upstream.requests.length, 1);
  const later = open(gateway, { id, transport: socket(), messages: page.messages });
  await later.resumeStream();
  assert.deepEqual([later.status, later.messages.length], ["ready", 2]);
});

test("c2 stop ends the run on the gateway", async () => {
  const held = gate();
  upstream.script({ text: "Some words ", hold: held.shut }, { text: "Fine" });
  const chat = open(gateway, { id: name(), transport: socket() });
  const sending = chat.sendMessage({ text: "go" });
  await until(() => text(chat.messages[1]) === "Some words ");
  await chat.stop();
  await sending;
  // No POST to /stop: the word on the socket is enough.
  await until(async () => (await gateway.api("/api/runs?limit=1")).json.runs[0].status === "canceled");
  held.open();
  await chat.sendMessage({ text: "next" });
  assert.equal(text(chat.messages.at(-1)), "Fine");
});

test("x6 a refusal is a sentence, and the socket stays", async () => {
  const transport = socket({ "x-secret-key": "wrong" });
  const chat = open(gateway, { id: name(), transport });
  await chat.sendMessage({ text: "go" });
  assert.deepEqual(chat.errors, ["Invalid secret key"]);
  const long = open(gateway, { id: "x".repeat(300), transport: socket() });
  await long.sendMessage({ text: "go" });
  assert.match(long.errors[0], /limit is 256/);
});
