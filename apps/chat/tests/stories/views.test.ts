/** Every view: reachable, readable for everybody, and within the screen. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { open, PATIENCE, say, stage } from "../yard.ts";

const { gateway, browser } = await stage();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Finding {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/** What a person with a screen reader, or with other eyes, would stumble over. */
async function stumbles(page: Page): Promise<string[]> {
  // The page's own policy lets no foreign script in; this one comes from the test.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const judge = (globalThis as unknown as { axe: { run: () => Promise<{ violations: Finding[] }> } }).axe;
    return (await judge.run()).violations;
  });
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`);
}

test("no view has a serious finding, is too wide, or asks another server", { timeout: 20 * PATIENCE }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const { page: first } = await open(context, gateway);
  await say(first, 'call write_file {"path":"a.txt","text":"a"}');
  await first.locator("section.permission").waitFor();
  const chat = new URL(first.url()).pathname;
  const { runs } = await gateway.ask<{ runs: { id: string }[] }>("GET", "/api/runs");
  const storageState = await context.storageState();
  const views = ["/", chat, "/inbox", "/runs", `/runs/${runs[0]?.id}`, "/tools", "/plugins", "/agents", "/agents/assistant", "/agents/new", "/library", "/library/goals", "/audit"];
  const look = async (width: number, colorScheme: "dark" | "light") => {
    const narrow = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, storageState });
    for (const path of views) {
      const { page, faults } = await open(narrow, gateway, path);
      await page.locator("main h1, main article").first().waitFor();
      await page.waitForFunction(() => document.querySelector(".bone") === null);
      assert.deepEqual(await stumbles(page), [], `${path} at ${width}`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(over, 0, `${path} at ${width} is ${over} px too wide`);
      assert.deepEqual(faults, [], path);
      await page.close();
    }
    await narrow.close();
  };
  await Promise.all([look(360, "dark"), look(1440, "light")]);
  await context.close();
});

test("a phone has a menu that leads to every view", { timeout: 4 * PATIENCE }, async () => {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 }, hasTouch: true });
  const { page } = await open(context, gateway);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("link", { name: "Agents" }).click();
  await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
  await page.getByRole("link", { name: "calculator" }).waitFor();
  await context.close();
});

test("an agent is made from JSON, a wrong one is refused with the reason, and it answers", { timeout: 6 * PATIENCE }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const { page } = await open(context, gateway, "/agents/new");
  await page.getByRole("tab", { name: "JSON" }).click();
  const editor = page.getByLabel("Configuration");
  const config = JSON.parse(await editor.inputValue()) as Record<string, unknown>;
  await editor.fill(JSON.stringify({ ...config, nonsense: 1 }));
  await page.getByRole("alert").getByText(/nonsense/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true);
  await editor.fill(JSON.stringify(config));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "my-agent", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Try it" }).click();
  await say(page, "say I am here");
  await page.getByText("I am here", { exact: true }).waitFor();
  assert.equal(await page.getByRole("article", { name: "my-agent" }).count(), 1);
  await context.close();
});

test("a run shows its steps, its calls and its raw log", { timeout: 4 * PATIENCE }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const { page } = await open(context, gateway);
  await say(page, "call about_gateway {}");
  await page.getByText("Tool about_gateway answered").waitFor();
  await page.goto(`${gateway.url}/runs`);
  await page.getByRole("button", { name: "Completed" }).click();
  await page.getByRole("link", { name: /assistant/ }).first().click();
  await page.getByRole("list", { name: "Timeline" }).getByText("About gateway").waitFor();
  await page.getByRole("tab", { name: "Raw log" }).click();
  await page.getByText("run.completed").waitFor();
  await context.close();
});

const CLOCK = {
  id: "dev-time-plugin",
  name: "Time",
  version: "1.0.0",
  tools: [
    {
      name: "get_current_time",
      description: "Says what time it is.",
      parameters: { type: "object", properties: { timezone: { type: "string" } } },
      executorCode: "return { formatted: 'at ' + (args.timezone ?? 'UTC') }",
    },
    {
      name: "escape",
      description: "Tries to get out of the sandbox.",
      parameters: { type: "object", properties: {} },
      executorCode: `
        const tried = {};
        try { tried.cookie = typeof document === "undefined" ? "no document" : document.cookie; } catch (e) { tried.cookie = "refused"; }
        try { tried.storage = typeof localStorage === "undefined" ? "no storage" : "reached"; } catch (e) { tried.storage = "refused"; }
        try { tried.network = typeof fetch === "undefined" ? "no network" : (await fetch("/health")).status; } catch (e) { tried.network = "refused"; }
        try { tried.parent = typeof parent === "undefined" ? "no parent" : String(parent.location.href); } catch (e) { tried.parent = "refused"; }
        return tried;`,
    },
    { name: "forever", description: "Never ends.", parameters: { type: "object", properties: {} }, executorCode: "for (;;) {}", timeoutMs: 1500 },
  ],
};

test("a plugin is installed from a file, its tool runs in a sandbox, and it can be switched off and removed", { timeout: 8 * PATIENCE }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const { page, faults } = await open(context, gateway, "/plugins");
  await page.getByRole("button", { name: "Install a plugin" }).click();
  await page.getByTestId("plugin-file").setInputFiles({ name: "time.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(CLOCK)) });
  await page.getByText("Nobody signed this plugin").waitFor();
  await page.getByRole("button", { name: "Install", exact: true }).click();
  await page.getByRole("switch", { name: "Use Time" }).waitFor();

  await page.getByRole("link", { name: "New chat" }).click();
  await say(page, 'call get_current_time {"timezone":"Oslo"}');
  await page.getByText("at Oslo").first().waitFor();

  // Nothing of the page is in reach of its code.
  await page.getByRole("link", { name: "New chat" }).click();
  await say(page, "call escape {}");
  await page.getByText("Tool escape answered").waitFor();
  const said = await page.getByText("Tool escape answered").innerText();
  assert.match(said, /no document|refused/);
  for (const [name, fine] of [["storage", /no storage|refused/], ["network", /no network|refused/], ["parent", /no parent|refused/]] as const) {
    const value = new RegExp(`"${name}":"([^"]*)"`).exec(said)?.[1] ?? "";
    assert.match(value, fine, `${name} in ${said}`);
  }
  // A loop without end stops neither the page nor the run.
  await page.getByRole("link", { name: "New chat" }).click();
  await say(page, "call forever {}");
  await page.getByText(/Tool forever failed/).waitFor();

  await page.getByRole("link", { name: "Plugins" }).click();
  await page.getByRole("switch", { name: "Use Time" }).click();
  await page.getByRole("link", { name: "Tools" }).click();
  await page.getByRole("switch", { name: "confetti" }).waitFor();
  assert.equal(await page.getByRole("switch", { name: "get_current_time" }).count(), 0);
  await page.getByRole("link", { name: "Plugins" }).click();
  await page.getByRole("button", { name: "Remove Time" }).click();
  await page.getByText("No plugin in this browser").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("a tampered plugin is refused, wherever it should run", { timeout: 4 * PATIENCE }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const { page } = await open(context, gateway, "/plugins");
  const signed = { ...CLOCK, id: "tampered", curatorId: "nobody", contentHash: "0".repeat(64), signature: "AAAA" };
  await page.getByRole("button", { name: "Install a plugin" }).click();
  await page.getByTestId("plugin-file").setInputFiles({ name: "t.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(signed)) });
  await page.getByRole("button", { name: "Install", exact: true }).click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("No plugin in this browser").waitFor();
  await context.close();
});
