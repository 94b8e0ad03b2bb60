import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { memoryOutcomes, storageOutcomes, type OutcomeStore } from "../src/index.js";
import { fileOutcomes } from "../src/node.js";
import { calls, says, scripted, user } from "./script.js";

function storage(): Storage {
  const map = new Map<string, string>();
  return {
    getItem: (key: string) => map.get(key) ?? null,
    setItem: (key: string, value: string) => void map.set(key, value),
    removeItem: (key: string) => void map.delete(key),
    get length() {
      return map.size;
    },
  } as Storage;
}

const STORES: [string, () => Promise<OutcomeStore>][] = [
  ["memory", async () => memoryOutcomes()],
  ["localStorage", async () => storageOutcomes(storage())],
  ["file", async () => fileOutcomes(join(await mkdtemp(join(tmpdir(), "toolyard-outcomes-")), "deep"))],
];
for (const [name, make] of STORES) {
  test(`outcomes are kept and dropped: ${name}`, async () => {
    const store = await make();
    const id = "call/../../etc";
    assert.equal(await store.get(id), undefined);
    await store.set(id, { state: "started" });
    assert.deepEqual(await store.get(id), { state: "started" });
    await store.set(id, { state: "done", result: { a: ["ä"] } });
    assert.deepEqual(await store.get(id), { state: "done", result: { a: ["ä"] } });
    await store.delete(id);
    await store.delete(id);
    assert.equal(await store.get(id), undefined);
  });
}

test("a file that was cut counts as begun", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolyard-outcomes-"));
  const store = fileOutcomes(folder);
  await store.set("c", { state: "done", result: 1 });
  const [file] = await readdir(folder);
  await writeFile(join(folder, file!), '{"sta');
  assert.deepEqual(await store.get("c"), { state: "started" });
  await rm(folder, { recursive: true });
});

const parameters = { type: "object" as const, properties: {} };

/** A turn that asks for `work`, in a program that remembers `outcomes`. */
async function turn(outcomes: OutcomeStore, idempotent = false): Promise<{ runs: number; part: unknown }> {
  const { client, asked } = scripted([{ chunks: calls([["c1", "work", {}]]) }, { chunks: says("ok") }], { outcomes });
  let runs = 0;
  client.registerTool({ name: "work", description: "Works", parameters, idempotent, execute: () => ({ runs: (runs += 1) }) });
  await client.chatStream({ messages: [user("x")] }).response;
  const { output, errorText } = asked[1]!.body.messages[1]!.parts!.find((part) => part["toolCallId"] === "c1")!;
  return { runs, part: output ?? errorText };
}

test("what was done before the crash is told, not done again", async () => {
  const outcomes = memoryOutcomes();
  await outcomes.set("c1", { state: "done", result: { of: "before" } });
  assert.deepEqual(await turn(outcomes), { runs: 0, part: { of: "before" } });
  // The gateway has it now.
  assert.equal(await outcomes.get("c1"), undefined);
  await outcomes.set("c1", { state: "done", error: "broke before" });
  assert.deepEqual(await turn(outcomes), { runs: 0, part: "broke before" });
});

test("what was begun and not ended is uncertain, unless a repeat is harmless", async () => {
  const outcomes = memoryOutcomes();
  await outcomes.set("c1", { state: "started" });
  assert.deepEqual(await turn(outcomes), { runs: 0, part: "It is uncertain whether work took effect: its program stopped while it ran." });
  await outcomes.set("c1", { state: "started" });
  assert.deepEqual(await turn(outcomes, true), { runs: 1, part: { runs: 1 } });
});

test("an outcome is written down before it is told", async () => {
  const steps: string[] = [];
  const memory = memoryOutcomes();
  const outcomes: OutcomeStore = {
    get: (id) => memory.get(id),
    set: (id, outcome) => (steps.push(outcome.state), memory.set(id, outcome)),
    delete: (id) => (steps.push("told"), memory.delete(id)),
  };
  await turn(outcomes);
  assert.deepEqual(steps, ["started", "done", "told"]);
});
