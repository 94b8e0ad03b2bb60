/** One signed bundle, two sandboxes: the gateway's own and the frame of a page. The same input gives the same bytes. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import type { Page } from "playwright-core";
import { open, PATIENCE, ROOT, say, stage } from "../yard.ts";

const BINARY = process.env["TOOLYARD_BIN"] ?? join(process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target"), "debug/toolyard");
const ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham"];
/** Summer, winter, and both sides of a change of the clocks. */
const MOMENTS = ["2026-07-14T16:05:06.007Z", "2026-01-01T00:00:00.000Z", "2026-03-08T06:59:59.999Z", "2026-03-08T07:00:00.000Z"];

const text = { type: "string" };
const TIME = JSON.parse(readFileSync(join(ROOT, "examples/plugins/time.json"), "utf8")) as Record<string, unknown>;
const FORMS = {
  id: "dev-forms",
  name: "Forms",
  version: "1.0.0",
  description: "Writes the same things in many forms.",
  tools: [
    {
      name: "format_time",
      description: "Writes a moment as the time plugin does",
      parameters: { type: "object", properties: { at: text, timezone: text }, required: ["at", "timezone"] },
      executorCode: "return new Date(args.at).toLocaleString('en-US', { timeZone: args.timezone });",
    },
    {
      name: "many_forms",
      description: "Writes a moment and some words in many forms",
      parameters: { type: "object", properties: { at: text, timezone: text, words: { type: "array", items: text } }, required: ["at", "timezone", "words"] },
      // The answer is a text: not even the order of its fields can be mended on the way.
      executorCode: `
        const date = new Date(args.at), timeZone = args.timezone;
        const link = new URL('../b?q=' + encodeURIComponent(args.words.join(' ')) + '#x', 'https://example.org/a/c');
        const copy = structuredClone({ words: args.words, nested: [{ date: date.getTime() }] });
        return JSON.stringify({
          day: date.toLocaleDateString('en-US', { timeZone }),
          clock: date.toLocaleTimeString('en-US', { timeZone }),
          long: new Intl.DateTimeFormat('en-US', { timeZone, dateStyle: 'full', timeStyle: 'long' }).format(date),
          parts: new Intl.DateTimeFormat('en-US', { timeZone, year: 'numeric', month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit', hour12: false }).formatToParts(date),
          german: date.toLocaleDateString('de-DE', { timeZone, weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }),
          numbers: [1234567.891.toLocaleString('en-US'), 0.1 + 0.2, -0, 1e21, 5e-324, 2 ** 53, (255).toString(16), (1.005).toFixed(2), NaN],
          link: [link.href, link.pathname, link.searchParams.get('q')],
          bytes: Array.from(new TextEncoder().encode(args.words.join(''))).slice(0, 40),
          base64: [btoa('yard'), atob('eWFyZA==')],
          copy, sorted: [...args.words].sort(), upper: args.words.map((word) => word.toUpperCase()),
          lengths: args.words.map((word) => [word.length, [...word].length]),
          found: 'ada@example.org, bob@example.com'.match(/(?<name>\\w+)@(?<host>[\\w.]+)/u).groups,
          order: Object.keys({ b: 1, 2: 1, a: 1, 1: 1 }),
          waited: await Promise.all([1, 2].map((n) => new Promise((done) => setTimeout(() => done(n), 3 - n)))),
        });`,
    },
    {
      name: "throw_it",
      description: "Throws what it is told",
      parameters: { type: "object", properties: { words: text }, required: ["words"] },
      executorCode: "throw new TypeError(args.words);",
    },
  ],
};

interface Call {
  tool: string;
  args: Record<string, unknown>;
}
interface Event {
  type: string;
  toolCallId?: string;
  output?: unknown;
  error?: string;
}

const { gateway, browser } = await stage();
let page: Page;
let faults: string[];
let space: string;
let ann: string;

before(async () => {
  const documents = [TIME, FORMS].map(signed);
  await gateway.ask("PUT", "/api/curators/acme", { plugins: ["dev-*"] });
  const { algorithm, publicKey } = JSON.parse(readFileSync(join(gateway.folder, "acme.key.pub"), "utf8")) as Record<string, string>;
  await gateway.ask("POST", "/api/curators/acme/keys", { algorithm, publicKey });
  for (const document of documents) {
    const { plugin } = await gateway.ask<{ plugin: { verified: boolean } }>("POST", "/api/plugins/install", document);
    assert.equal(plugin.verified, true);
  }
  const echo = { name: "echo", description: "Says it again.", execution: { mode: "pass-through" } };
  const config = { agent: { name: "clock" }, model: { provider: "demo", name: "demo" }, plugins: ["dev-time-plugin", "dev-forms"], tools: [echo] };
  await gateway.ask("POST", "/api/agents", { config });
  const { entity } = await gateway.ask<{ entity: { id: string } }>("POST", "/api/entities/agent", { agentId: "clock" });
  const human = await gateway.ask<{ entity: { id: string } }>("POST", "/api/entities", { type: "human" });
  const made = await gateway.ask<{ smartSpace: { id: string } }>("POST", "/api/smart-spaces", {});
  [space, ann] = [made.smartSpace.id, human.entity.id];
  for (const entityId of [ann, entity.id]) await gateway.ask("POST", `/api/smart-spaces/${space}/members`, { entityId });

  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  ({ page, faults } = await open(context, gateway, "/plugins"));
  for (const document of documents) {
    await page.getByRole("button", { name: "Install a plugin" }).click();
    const buffer = Buffer.from(JSON.stringify(document));
    await page.getByTestId("plugin-file").setInputFiles({ name: "plugin.json", mimeType: "application/json", buffer });
    await page.getByRole("button", { name: "Install", exact: true }).click();
    await page.getByRole("switch", { name: `Use ${document["name"] as string}` }).waitFor();
  }
}, { timeout: 6 * PATIENCE });

/** A plugin with the signature of the curator. */
function signed(plugin: Record<string, unknown>): Record<string, unknown> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TOOLYARD_")));
  const cli = (...args: string[]) => execFileSync(BINARY, ["plugin", ...args], { cwd: gateway.folder, env, stdio: "pipe" });
  writeFileSync(join(gateway.folder, "in.json"), JSON.stringify(plugin));
  if (plugin === TIME) cli("keygen", "--out", "acme.key", "--curator", "acme");
  cli("sign", "in.json", "--key", "acme.key", "--out", "out.json");
  return JSON.parse(readFileSync(join(gateway.folder, "out.json"), "utf8")) as Record<string, unknown>;
}

const lines = (calls: Call[]) => calls.map(({ tool, args }) => `call ${tool} ${JSON.stringify(args)}`).join("\n");

/** The outcomes of a run's calls, in the order of the calls. */
async function outcomes(run: string, count: number): Promise<Event[]> {
  const late = Date.now() + PATIENCE;
  for (;;) {
    const { events } = await gateway.ask<{ events: Event[] }>("GET", `/api/runs/${run}/events?limit=200`);
    const asked = events.filter((event) => event.type === "tool-input-available").map((event) => event.toolCallId);
    const ended = events.filter((event) => event.type === "tool-output-available" || event.type === "tool-error");
    if (events.some((event) => /^run\.(completed|failed)$/.test(event.type))) {
      assert.deepEqual([asked.length, ended.length], [count, count], JSON.stringify(events));
      return asked.map((id) => ended.find((event) => event.toolCallId === id) as Event);
    }
    if (Date.now() > late) throw new Error(`The run does not end: ${JSON.stringify(events)}`);
    await new Promise((next) => setTimeout(next, 100));
  }
}

async function onTheGateway(calls: Call[]): Promise<Event[]> {
  const body = { entityId: ann, content: lines(calls) };
  const { runs } = await gateway.ask<{ runs: { runId: string }[] }>("POST", `/api/smart-spaces/${space}/messages`, body);
  return outcomes(runs[0]?.runId ?? "", calls.length);
}

async function inThePage(calls: Call[]): Promise<Event[]> {
  const known = new Set((await runs()).map(({ id }) => id));
  await page.getByRole("link", { name: "New chat" }).click();
  await say(page, lines(calls));
  const late = Date.now() + PATIENCE;
  for (;;) {
    const fresh = (await runs()).find(({ id }) => !known.has(id));
    if (fresh) return outcomes(fresh.id, calls.length);
    if (Date.now() > late) throw new Error("The page starts no run");
    await new Promise((next) => setTimeout(next, 100));
  }
}

const runs = async () => (await gateway.ask<{ runs: { id: string }[] }>("GET", "/api/runs")).runs;
const outputs = (events: Event[]) => events.map((event) => JSON.stringify(event.output));
const both = async (calls: Call[]) => [await onTheGateway(calls), await inThePage(calls)] as const;

test("h53 the time plugin says the same in five time zones", { timeout: 6 * PATIENCE }, async () => {
  const now = (events: Event[]) => events.map((event) => event.output as { time: string; formatted: string; timezone: string });
  const [here, there] = (await both(ZONES.map((timezone) => ({ tool: "get_current_time", args: { timezone } })))).map(now);
  assert.deepEqual([here, there].map((said) => said?.map(({ timezone }) => timezone)), [ZONES, ZONES]);
  // Two moments cannot be the same, so each side writes the other's.
  const again = (said: typeof here = []) => said.map(({ time: at, timezone }) => ({ tool: "format_time", args: { at, timezone } }));
  const formatted = (said: typeof here) => said?.map((one) => JSON.stringify(one.formatted));
  assert.deepEqual(outputs(await inThePage(again(here))), formatted(here));
  assert.deepEqual(outputs(await onTheGateway(again(there))), formatted(there));
});

test("a bundle gives the same bytes on the gateway and in Chromium", { timeout: 6 * PATIENCE }, async () => {
  const words = ["Zoë", "apple", "Éclair", "日本語", "👩‍🚀", "straße", "a+b & c"];
  const calls = MOMENTS.flatMap((at) => ZONES.map((timezone) => ({ tool: "many_forms", args: { at, timezone, words } })));
  const [here, there] = (await both(calls)).map(outputs);
  assert.deepEqual(here, there);
  // Nobody says the same for everything.
  assert.equal(new Set(here).size, calls.length);
});

test("what a bundle throws is an error with the same words on both sides", { timeout: 6 * PATIENCE }, async () => {
  const [here, there] = await both([{ tool: "throw_it", args: { words: "no paper" } }, { tool: "format_time", args: { at: MOMENTS[0], timezone: "Mars/Base" } }]);
  for (const events of [here, there]) {
    assert.deepEqual(events.map(({ type }) => type), ["tool-error", "tool-error"]);
    assert.match(JSON.stringify(events[0]), /no paper/);
    assert.match(JSON.stringify(events[1]), /Invalid time zone/);
  }
  assert.deepEqual(faults, []);
});
