// A React page with `useChat` against the built gateway, used by its buttons.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { version } from "./client.mjs";
import { Gateway } from "./gateway.mjs";
import { leave, visit } from "./page.mjs";
import { Upstream, gate } from "./upstream.mjs";

let upstream, gateway;
let count = 0;
const name = () => `page ${version}/${++count}`;

before(async () => {
  upstream = await Upstream.start();
  gateway = await Gateway.start(upstream);
});
after(async () => {
  leave();
  await gateway?.stop();
  upstream?.stop();
});

test("c2 a person writes, a tool of the page runs, and the answer is on the page", async () => {
  upstream.script({ text: "Let me see. ", calls: [["ask", { n: 21 }]] }, { text: "It is 42" }, { text: "Bye" });
  const page = visit(gateway, { id: name(), tools: { ask: (input) => ({ twice: input.n * 2 }) } });
  await page.write("what is it?");
  await page.sees(() => page.said()[1]?.[1] === "Let me see. It is 42" && page.status() === "ready");
  assert.deepEqual([page.ran, page.tool("ask").textContent, page.tool("ask").dataset.state], [["ask"], '{"twice":42}', "output-available"]);
  await page.write("bye");
  await page.sees(() => page.said()[3]?.[1] === "Bye");
  assert.deepEqual(page.said().map(([role]) => role), ["user", "assistant", "user", "assistant"]);
  assert.equal(new Set(page.ids()).size, 4);
  assert.equal(page.alert(), undefined);
  page.close();
});

test("c2 a reloaded page shows the whole answer and runs nothing again", async () => {
  const held = gate();
  upstream.script({ text: "Wait. ", calls: [["ask", { n: 4 }]] }, { text: "First half, ", hold: held.shut, after: "second half" });
  const id = name();
  const tools = { ask: (input) => input.n };
  const first = visit(gateway, { id, tools });
  await first.write("go");
  await first.sees(() => first.said()[1]?.[1] === "Wait. First half, ");
  const [user, answer] = first.ids();
  first.close();
  // In development React mounts every page twice.
  const messages = [{ id: user, role: "user", parts: [{ type: "text", text: "go" }] }];
  const page = visit(gateway, { id, tools, messages, resume: true, strict: true });
  await page.sees(() => page.said()[1]?.[1] === "Wait. First half, ");
  held.open();
  await page.sees(() => page.said()[1]?.[1] === "Wait. First half, second half" && page.status() === "ready");
  assert.deepEqual([page.ran, page.tool("ask").textContent, page.ids()], [[], "4", [user, answer]]);
  assert.equal(upstream.requests.length, 2);
  page.close();
});

test("c2 stop leaves what was said", async () => {
  const held = gate();
  upstream.script({ text: "Some words ", hold: held.shut });
  const page = visit(gateway, { id: name() });
  await page.write("go");
  await page.sees(() => page.said()[1]?.[1] === "Some words ");
  await page.press("Stop");
  await page.sees(() => page.status() === "ready");
  held.open();
  assert.deepEqual(page.said(), [["user", "go"], ["assistant", "Some words "]]);
  page.close();
});

test("c2 a refusal is a sentence on the page", async () => {
  const page = visit(gateway, { id: "x".repeat(300) });
  await page.write("go");
  await page.sees(() => page.alert()?.includes("limit is 256"));
  assert.equal(page.status(), "error");
  page.close();
});

// Version 5 has no word for approvals.
test("c13 a person allows and denies by buttons", { skip: version === 5 }, async () => {
  upstream.script({ calls: [["pay", {}]] }, { text: "Paid" }, { calls: [["pay", {}]] }, { text: "Kept" });
  const page = visit(gateway, { id: name() });
  await page.write("pay");
  await page.press("Allow");
  await page.sees(() => page.said()[1]?.[1] === "Paid");
  assert.equal(page.tool("pay").dataset.state, "output-available");
  await page.write("again");
  await page.press("Deny");
  await page.sees(() => page.said()[3]?.[1] === "Kept");
  page.close();
});
