// The binary form of the events, read by the reference decoder.
import assert from "node:assert/strict";

import { decode } from "@ag-ui/proto";

const { GATEWAY, SECRET } = process.env;
const media = "application/vnd.ag-ui.event+proto";

async function events(messages, extra = {}) {
  const body = { threadId: extra.threadId, runId: "r1", protocolVersion: "1.0", messages, ...extra };
  const response = await fetch(`${GATEWAY}/ag-ui/story`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: media, "x-secret-key": SECRET },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), media);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const view = new DataView(bytes.buffer);
  const found = [];
  for (let at = 0; at < bytes.length; ) {
    const length = view.getUint32(at);
    found.push(decode(bytes.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return found;
}

const user = (content) => [{ id: "u1", role: "user", content }];

const told = await events(user("think hm\nsay Grüße 😀"), { threadId: "b1", state: { n: 1.5, list: [null, true] } });
assert.equal(told[0].type, "RUN_STARTED");
assert.deepEqual(told.find((event) => event.type === "STATE_SNAPSHOT").snapshot, { n: 1.5, list: [null, true] });
const words = told.filter((event) => event.type === "TEXT_MESSAGE_CONTENT").map((event) => event.delta);
assert.equal(words.join(""), "Grüße 😀");
assert.ok(told.some((event) => event.type === "REASONING_MESSAGE_CONTENT"));
assert.deepEqual([told.at(-1).type, told.at(-1).outcome], ["RUN_FINISHED", { type: "success" }]);
assert.ok(told.at(-1).usage[0].totalTokens > 0);

const asked = await events(user('call delete_thing {"name":"ä"}'), { threadId: "b2" });
const snapshot = asked.find((event) => event.type === "MESSAGES_SNAPSHOT");
assert.equal(snapshot.messages[1].toolCalls[0].function.name, "delete_thing");
const [interrupt] = asked.at(-1).outcome.interrupts;
assert.deepEqual(interrupt.metadata.args, { name: "ä" });

const tools = [{ name: "here", description: "Runs here", parameters: { type: "object", properties: {} } }];
const paused = await events(user("call here {}"), { threadId: "b3", tools });
assert.equal(paused.at(-1).outcome.pendingToolCallIds.length, 1);

const failed = await events(user("fail"), { threadId: "b4" });
assert.equal(failed.at(-1).type, "RUN_ERROR");
console.log("ok the binary form");
