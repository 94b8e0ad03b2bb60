/** Stories of those who build: runs again, agents, services of their own. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { localMcp } from "../../../../packages/client/test/local-mcp.ts";
import { open, PATIENCE, ROOT, say, stage } from "../yard.ts";

const { gateway, browser } = await stage();

function story(name: string, path: string, tell: (page: Page, context: BrowserContext) => Promise<void>) {
  test(name, { timeout: 6 * PATIENCE }, async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
    try {
      await tell((await open(context, gateway, path)).page, context);
    } finally {
      await context.close();
    }
  });
}

story("a run is replayed from its second step: the tool before it does not run again", "/", async (page, context) => {
  let calls = 0;
  await context.route("**/tool-results", (route) => {
    calls += 1;
    return route.fallback();
  });
  await page.getByRole("button", { name: /^Run a tool in this page/ }).click();
  await page.getByText("Tool read_screen answered").waitFor();
  const chat = page.url();
  const { runs } = await gateway.ask<{ runs: { id: string }[] }>("GET", `/api/smart-spaces/${chat.split("/").at(-1)}/runs`);
  const before = runs[0]?.id ?? "";
  await page.goto(`${gateway.url}/runs/${before}`);
  await page.getByRole("button", { name: "Replay from step 2" }).click();
  await page.getByText("Replay of another run from its step 2").waitFor();
  assert.notEqual(new URL(page.url()).pathname, `/runs/${before}`);
  const timeline = page.getByRole("list", { name: "Timeline" });
  await timeline.getByText("Completed").waitFor();
  assert.equal(await timeline.getByText("Taken over").count(), 2);
  assert.equal(calls, 1);
  // The chat goes on with the new answer, alone.
  await page.getByRole("link", { name: "Open its chat" }).click();
  await page.getByText("Tool read_screen answered").waitFor();
  assert.equal(await page.locator(".answered").count(), 1);
});

story("an agent is changed in its form, faults stand at their fields, and it is tried in place", "/agents/new", async (page) => {
  await page.getByLabel("Name", { exact: true }).fill("not a name");
  const name = page.getByLabel("Name", { exact: true });
  assert.equal(await name.getAttribute("aria-invalid"), "true");
  await page.getByText(/This begins with a letter or digit/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true);
  await name.fill("night-watch");
  await page.getByLabel("Instructions").fill("Watch.");
  await page.getByLabel("Steps of an answer").fill("many");
  await page.getByText("This must be a whole number.").waitFor();
  await page.getByLabel("Steps of an answer").fill("3");
  await page.getByLabel("Ask before").selectOption("low");
  await page.getByRole("switch", { name: "Has the prebuilt tools" }).click();
  // What the schema cannot know the gateway says, at the field too.
  await page.getByLabel("Provider").fill("nobody");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText(/model/).first().waitFor();
  await page.getByLabel("Provider").fill("demo");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "night-watch", level: 1 }).waitFor();
  const { agent } = await gateway.ask<{ agent: { config: Record<string, unknown> } }>("GET", "/api/agents/night-watch");
  assert.deepEqual(
    [agent.config["prebuilt"], agent.config["permissions"], (agent.config["loop"] as { maxSteps: number }).maxSteps],
    ["all", { askFrom: "low" }, 3],
  );
  await page.getByRole("button", { name: "Try it" }).click();
  await say(page, "say I am here");
  const trial = page.getByRole("region", { name: "Try night-watch" });
  await trial.getByText("I am here", { exact: true }).waitFor();
  assert.match(page.url(), /\/agents\/night-watch$/);
  // Both views are views of one draft.
  await page.getByRole("tab", { name: "JSON" }).click();
  assert.match(await page.getByLabel("Configuration").inputValue(), /"system": "Watch\."/);
});

story("c10 a service that only this browser reaches is called by it: connect, call, disconnect", "/tools", async (page, context) => {
  const mcp = await localMcp();
  try {
    await page.getByRole("button", { name: "Add a service" }).click();
    await page.getByLabel("Name").fill("Cellar");
    await page.getByLabel("Address").fill(mcp.url);
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByRole("alert").getByText("wants another token").waitFor();
    await page.getByLabel("Token").fill(mcp.token);
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByRole("switch", { name: "count_bottles" }).waitFor();
    // Another tab has it too, and a reload keeps it.
    const second = await open(context, gateway, "/tools");
    await second.page.getByRole("switch", { name: "count_bottles" }).waitFor();
    await page.goto(gateway.url);
    await say(page, 'call count_bottles {"shelf":3}');
    await page.getByText(/Tool count_bottles answered.*36 bottles/).waitFor();
    assert.deepEqual(mcp.seen.calls, [3]);
    await second.page.getByRole("button", { name: "Test Cellar" }).click();
    await second.page.getByText("Answers").waitFor();
    // One session to list, one for the call, one for the test; none stays open.
    assert.equal(mcp.seen.opened, 3);
    for (let tries = 0; mcp.seen.closed < 3 && tries < 300; tries += 1) await new Promise((next) => setTimeout(next, 100));
    assert.equal(mcp.seen.closed, 3);
    // The gateway knows neither the address nor the token.
    const { runs } = await gateway.ask<{ runs: { id: string }[] }>("GET", "/api/runs");
    const log = JSON.stringify(await gateway.ask("GET", `/api/runs/${runs[0]?.id}/events`));
    assert.ok(log.includes("36 bottles") && !log.includes(mcp.token) && !log.includes(mcp.url));
    await second.page.getByRole("button", { name: "Remove Cellar" }).click();
    await second.page.getByRole("switch", { name: "count_bottles" }).waitFor({ state: "detached" });
  } finally {
    await mcp.close();
  }
});

story("c10 a page calls no service that the operator did not name", "/tools", async (page) => {
  await page.getByRole("button", { name: "Add a service" }).click();
  await page.getByLabel("Name").fill("Far");
  await page.getByLabel("Address").fill("https://mcp.example/mcp");
  await page.getByRole("button", { name: "Connect" }).click();
  await page.getByRole("alert").getByText("cannot be reached").waitFor();
});

story("h55 a plugin of the gateway is switched off and on", "/plugins", async (page) => {
  const plugin = JSON.parse(readFileSync(join(ROOT, "examples/plugins/time.json"), "utf8")) as { id: string };
  await gateway.ask("POST", "/api/plugins/install", plugin);
  await page.reload();
  const power = page.getByRole("switch", { name: `Use ${plugin.id} on the gateway` });
  const enabled = async () => (await gateway.ask<{ plugin: { installed: { enabled: boolean } } }>("GET", `/api/plugins/${plugin.id}`)).plugin.installed.enabled;
  for (const on of [false, true]) {
    await power.click();
    await page.locator(`button[role="switch"][aria-label="Use ${plugin.id} on the gateway"][aria-checked="${on}"]`).waitFor();
    assert.equal(await enabled(), on);
  }
});

story("a long chat shows its end first, and more when the person looks for it", "/", async (page) => {
  await say(page, "say hello");
  await page.getByRole("button", { name: "Retry" }).waitFor();
  const id = page.url().split("/").at(-1);
  const me = (await gateway.ask<{ entities: { id: string }[] }>("GET", "/api/entities?externalId=web-app")).entities[0]?.id;
  for (let at = 1; at <= 130; at += 1) {
    await gateway.ask("POST", `/api/smart-spaces/${id}/messages`, { entityId: me, content: `note ${at}.`, triggerAgents: false });
  }
  await page.reload();
  await page.getByText("note 130.", { exact: true }).waitFor();
  assert.equal(await page.getByText("note 1.", { exact: true }).count(), 0);
  await page.getByRole("button", { name: "Show earlier messages" }).click();
  await page.getByText("note 1.", { exact: true }).waitFor({ state: "attached" });
  await page.getByText("hello", { exact: true }).first().waitFor({ state: "attached" });
  assert.equal(await page.getByRole("button", { name: "Show earlier messages" }).count(), 0);
  assert.equal(await page.getByText("note 77.", { exact: true }).count(), 1);
});

story("what is always allowed is not asked again, also not in another chat after a reload", "/", async (page) => {
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  const first = page.waitForEvent("download");
  await page.locator("section.permission").getByRole("button", { name: "Always" }).click();
  await first;
  await page.getByText("Tool write_file answered").waitFor();
  await page.goto(gateway.url);
  const second = page.waitForEvent("download");
  await say(page, 'call write_file {"path":"again.txt","text":"2"}');
  assert.equal((await second).suggestedFilename(), "again.txt");
  await page.getByText("Tool write_file answered").waitFor();
  assert.equal(await page.locator("section.permission").count(), 0);
});
