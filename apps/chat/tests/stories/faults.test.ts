/** Stories of what goes wrong in the middle: the gateway dies, the page is reloaded. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { Gateway, open, openBrowser, PATIENCE, say } from "../yard.ts";

let browser: Browser;

before(async () => {
  browser = await openBrowser();
}, { timeout: 4 * PATIENCE });

after(() => browser?.close());

/** A gateway that may die, and a page at it. */
function story(name: string, tell: (gateway: Gateway, page: Page, context: BrowserContext) => Promise<void>) {
  test(name, { timeout: 6 * PATIENCE }, async () => {
    const gateway = await Gateway.start();
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
    try {
      const { page } = await open(context, gateway);
      await tell(gateway, page, context);
    } finally {
      await context.close();
      await gateway.close();
    }
  });
}

const allow = (page: Page) => page.locator("section.permission").getByRole("button", { name: "Allow once" });
const words = async (page: Page) => (await page.locator(".answer .prose").first().innerText()).trim().split(/\s+/);

/** Counts files that the page gives to the person: each is one execution of `write_file`. */
function downloads(context: BrowserContext): { count: number } {
  const seen = { count: 0 };
  const listen = (page: Page) => page.on("download", () => (seen.count += 1));
  context.pages().forEach(listen);
  context.on("page", listen);
  return seen;
}

async function ended(gateway: Gateway, page: Page): Promise<string[]> {
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  const { runs } = await gateway.ask<{ runs: { id: string }[] }>("GET", `/api/smart-spaces/${id}/runs`);
  assert.equal(runs.length, 1);
  const { events } = await gateway.ask<{ events: { type: string }[] }>("GET", `/api/runs/${runs[0]?.id}/events`);
  return events.map((event) => event.type);
}

story("a gateway that is killed in the middle of an answer says all of it after its start, once", async (gateway, page) => {
  await say(page, "slow 60");
  await page.locator(".answer .prose").first().waitFor();
  await gateway.kill();
  await page.getByText("The gateway does not answer").waitFor();
  await gateway.start();
  await page.getByText("The gateway does not answer").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Retry" }).waitFor();
  assert.equal((await words(page)).length, 60);
  assert.equal(await page.locator(".answer .prose").count(), 1);
  const types = await ended(gateway, page);
  assert.equal(types.filter((type) => type === "message.assistant").length, 1);
  assert.equal(types.at(-1), "run.completed");
});

story("a gateway that is killed before it hears of a tool's end hears of it later, and the tool ran once", async (gateway, page, context) => {
  const files = downloads(context);
  let kills = 0;
  // The tool has run; its result is on the way when the gateway dies.
  await context.route("**/tool-results", async (route) => {
    if (kills > 0) return route.fallback();
    kills += 1;
    await gateway.kill();
    return route.abort();
  });
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  await allow(page).click();
  await page.getByText("The gateway does not answer").waitFor();
  await gateway.start();
  await page.getByText("Tool write_file answered").waitFor();
  assert.equal(kills, 1);
  assert.equal(files.count, 1);
  const types = await ended(gateway, page);
  assert.equal(types.filter((type) => type === "tool-output-available").length, 1);
});

story("a page that is reloaded before it told of a tool's end tells it then, and the tool ran once", async (gateway, page, context) => {
  const files = downloads(context);
  let cuts = 0;
  await context.route("**/tool-results", async (route) => {
    if (cuts > 0) return route.fallback();
    cuts += 1;
    void page.reload().catch(() => undefined);
    return route.abort();
  });
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  await allow(page).click();
  await page.getByText("Tool write_file answered").waitFor();
  assert.equal(cuts, 1);
  assert.equal(files.count, 1);
  const types = await ended(gateway, page);
  assert.equal(types.filter((type) => type === "tool-output-available").length, 1);
});
