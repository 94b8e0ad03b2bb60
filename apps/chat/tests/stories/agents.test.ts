/** A gateway whose agents are others than the page expects, or none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, PATIENCE, say, stage } from "../yard.ts";

const { gateway, browser } = await stage();

test("without an agent the page says how to make one, and it talks with the one that there is", { timeout: 4 * PATIENCE }, async () => {
  const { agents } = await gateway.ask<{ agents: { name: string }[] }>("GET", "/api/agents");
  assert.ok(agents.length > 0);
  for (const { name } of agents) await gateway.ask("DELETE", `/api/agents/${name}`);
  const context = await browser.newContext({ viewport: { width: 360, height: 740 } });
  const { page } = await open(context, gateway);
  await page.getByRole("heading", { name: "There is no agent yet" }).waitFor();
  await page.getByRole("link", { name: "Make an agent" }).click();
  await page.getByLabel("Name", { exact: true }).waitFor();
  const config = { agent: { name: "guide", system: "Be brief." }, model: { provider: "demo", name: "demo" } };
  await gateway.ask("POST", "/api/agents", { config });
  await page.goto(gateway.url);
  await page.getByRole("heading", { name: "What should guide do?" }).waitFor();
  await say(page, "say hello from the guide");
  await page.getByText("hello from the guide", { exact: true }).last().waitFor();
  const { runs } = await gateway.ask<{ runs: { agentName: string }[] }>("GET", "/api/runs");
  assert.deepEqual(runs.map(({ agentName }) => agentName), ["guide"]);
});
