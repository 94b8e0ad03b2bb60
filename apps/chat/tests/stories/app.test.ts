/** Stories of the web app, told by a real browser against the real gateway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { Gateway, open, PATIENCE, say, stage, type Watched } from "../yard.ts";

const { gateway, browser } = await stage();
const contexts: BrowserContext[] = [];

/** A person: a browser of their own, wide or narrow. */
async function visitor(path = "/", options: Parameters<Browser["newContext"]>[0] = {}): Promise<Watched & { context: BrowserContext }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  contexts.push(context);
  return { ...(await open(context, gateway, path)), context };
}

const story = (name: string, tell: () => Promise<void>) => test(name, { timeout: 6 * PATIENCE }, tell);
const card = (page: Page) => page.getByRole("region", { name: /Allow/ }).or(page.locator("section.permission")).first();
const done = (page: Page) => page.locator('[data-state-of-call="done"]');

story("the first start needs no key, and the page runs a tool of the agent", async () => {
  const { page, faults, context } = await visitor();
  await page.getByRole("button", { name: /^Run a tool in this page/ }).click();
  await done(page).waitFor();
  await page.getByText("Tool read_screen answered").waitFor();
  assert.match(page.url(), /\/c\/spc_/);
  await page.getByRole("button", { name: /Read screen/ }).click();
  await page.getByLabel("Output of read_screen").waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

story("u31 a citation is a numbered link to its source", async () => {
  const { page, faults, context } = await visitor();
  await page.getByRole("button", { name: /^Answer with a source/ }).click();
  const cite = page.getByRole("link", { name: /^Source 1/ });
  await cite.click();
  const source = page.getByRole("list", { name: "Sources" }).getByRole("link");
  assert.equal(await source.getAttribute("href"), "https://www.rfc-editor.org/rfc/rfc9110");
  assert.deepEqual(faults, []);
  await context.close();
});

story("a permission survives a reload, is answered in another tab, and a denied call does not run", async () => {
  const { page, context } = await visitor();
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  await card(page).waitFor();
  await page.reload();
  await card(page).getByText('"hello.txt"').waitFor();
  const inbox = await open(context, gateway, "/inbox");
  await card(inbox.page).getByRole("button", { name: "Deny" }).click();
  await page.locator('[data-state-of-call="denied"]').waitFor();
  await page.getByText("Tool write_file failed").waitFor();
  await card(page).waitFor({ state: "detached" });
  await context.close();
});

story("an allowed call runs in the page, and what is remembered is not asked again in this chat", async () => {
  const { page, context } = await visitor();
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  const saved = page.waitForEvent("download");
  await card(page).getByRole("button", { name: "For this chat" }).click();
  assert.equal((await saved).suggestedFilename(), "hello.txt");
  await page.getByText("Tool write_file answered").waitFor();
  const again = page.waitForEvent("download");
  await say(page, 'call write_file {"path":"two.txt","text":"2"}');
  assert.equal((await again).suggestedFilename(), "two.txt");
  assert.equal(await page.locator("section.permission").count(), 0);
  await context.close();
});

story("edited arguments are the ones that are used", async () => {
  const { page, context } = await visitor();
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  await card(page).getByRole("button", { name: "Edit" }).click();
  await card(page).getByLabel("Arguments to use instead").fill('{"path":"other.txt","text":"edited"}');
  const saved = page.waitForEvent("download");
  await card(page).getByRole("button", { name: "Allow with these" }).click();
  assert.equal((await saved).suggestedFilename(), "other.txt");
  await context.close();
});

story("a reload in the middle of an answer shows all of it, and so does a second tab", async () => {
  const { page, context } = await visitor();
  await say(page, "slow 60");
  await page.getByText(/word 5 /).or(page.locator(".prose")).first().waitFor();
  const second = await open(context, gateway, new URL(page.url()).pathname);
  await page.reload();
  for (const each of [page, second.page]) {
    await each.getByRole("button", { name: "Retry" }).waitFor();
    const words = (await each.locator(".answer .prose").first().innerText()).trim().split(/\s+/);
    assert.equal(words.length, 60);
  }
  await context.close();
});

story("stop ends an answer, retry gives another one, edit goes back to the question", async () => {
  const { page, context } = await visitor();
  await say(page, "slow 900");
  await page.locator(".answer .prose").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Your message").fill("say first answer");
  await page.getByRole("button", { name: "Send instead" }).click();
  await page.getByText("first answer", { exact: true }).waitFor();
  await page.locator(".talk").getByText("slow 900").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".answered").length === 1 && document.querySelector(".answered")?.textContent?.includes("first answer"));
  await page.reload();
  await page.getByText("first answer", { exact: true }).waitFor();
  assert.equal(await page.locator(".answered").count(), 1);
  await context.close();
});

story("two tabs show one chat, and a tool of the page runs once", async () => {
  const { page, context } = await visitor();
  await say(page, "say hello");
  await page.getByRole("button", { name: "Retry" }).waitFor();
  const second = await open(context, gateway, new URL(page.url()).pathname);
  await second.page.getByText("say hello").first().waitFor();
  await say(page, "call confetti {}");
  await done(page).waitFor();
  await done(second.page).waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  const { runs } = await gateway.ask<{ runs: { id: string }[] }>("GET", `/api/smart-spaces/${id}/runs`);
  const { events } = await gateway.ask<{ events: { type: string }[] }>("GET", `/api/runs/${runs[0]?.id}/events`);
  assert.equal(events.filter((event) => event.type === "tool-output-available").length, 1);
  await context.close();
});

story("a gateway that is killed in the middle of a permission goes on after its start", async () => {
  const own = await Gateway.start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  try {
    const { page } = await open(context, own);
    await page.getByRole("button", { name: /^Ask before it acts/ }).click();
    await card(page).waitFor();
    await own.kill();
    await page.getByText("The gateway does not answer").waitFor();
    await own.start();
    await page.getByText("The gateway does not answer").waitFor({ state: "detached" });
    const saved = page.waitForEvent("download");
    await card(page).getByRole("button", { name: "Allow once" }).click();
    assert.equal((await saved).suggestedFilename(), "hello.txt");
    await page.getByText("Tool write_file answered").waitFor();
  } finally {
    await context.close();
    await own.close();
  }
});

story("a deselected tool is gone from the next message, in every tab, without a reload", async () => {
  const { page, context } = await visitor();
  await say(page, "say hello");
  await page.getByRole("button", { name: "Retry" }).waitFor();
  const tools = await open(context, gateway, "/tools");
  await tools.page.getByRole("switch", { name: "write_file" }).waitFor();
  const all = Number((await tools.page.getByTestId("selected").innerText()).split(/\D/)[0]);
  assert.ok(all >= 6, String(all));
  const third = await open(context, gateway, "/tools");
  await third.page.getByTestId("selected").getByText(`${all}/${all} selected`).waitFor();
  await page.getByRole("link", { name: `${all}/${all} tools selected` }).waitFor();
  await tools.page.getByRole("switch", { name: "confetti" }).click();
  await third.page.getByTestId("selected").getByText(`${all - 1}/${all} selected`).waitFor();
  await page.getByRole("link", { name: `${all - 1}/${all} tools selected` }).waitFor();
  await say(page, "call confetti {}");
  await page.getByText(/Tool confetti failed|no tool|not found|Unknown tool/i).first().waitFor();
  await third.page.getByRole("button", { name: "Select all", exact: true }).click();
  await tools.page.getByTestId("selected").getByText(`${all}/${all} selected`).waitFor();
  await page.getByRole("link", { name: `${all}/${all} tools selected` }).waitFor();
  await say(page, "call confetti {}");
  await done(page).waitFor();
  await context.close();
});

story("a key alone is enough: new chat, permission, answer", async () => {
  const { page, context } = await visitor();
  await page.getByLabel("Message", { exact: true }).focus();
  await page.keyboard.type('call write_file {"path":"k.txt","text":"k"}');
  await page.keyboard.press("Enter");
  const allow = card(page).getByRole("button", { name: "Allow once" });
  await allow.waitFor();
  // From the composer back to the card, as a keyboard goes.
  for (let at = 0; at < 20 && !(await allow.evaluate((button) => button === document.activeElement)); at += 1) await page.keyboard.press("Shift+Tab");
  const saved = page.waitForEvent("download");
  await page.keyboard.press("Enter");
  await saved;
  await context.close();
});
