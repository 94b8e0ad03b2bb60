/** Pictures of every view, at both widths and in both themes, for people to look at. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { listMcpTools } from "../../../packages/client/src/mcp/http.ts";
import { localMcp } from "../../../packages/client/test/local-mcp.ts";
import { Gateway, open, openBrowser, ROOT, say } from "./yard.ts";

const folder = fileURLToPath(new URL("../shots", import.meta.url));
mkdirSync(folder, { recursive: true });
const SIZES = { phone: { width: 360, height: 740 }, desk: { width: 1440, height: 900 } };
const only = process.argv[2];

const PLUGIN = {
  id: "dev-time-plugin",
  name: "Time",
  version: "1.0.0",
  tools: [{ name: "get_current_time", description: "Says what time it is.", parameters: { type: "object", properties: { timezone: { type: "string" } } }, executorCode: "return { time: new Date().toISOString() }" }],
};

const MARKDOWN = [
  "## A short report",
  "",
  "The build is **green**. Three things changed:",
  "",
  "1. `parse` reads one line at a time",
  "2. the cache has a limit",
  "3. errors name the field",
  "",
  "```rust",
  "// Reads the next number.",
  'fn next(text: &str) -> Option<u32> { text.split(",").nth(2)?.parse().ok() }',
  "```",
  "",
  "| part | before | after |",
  "|---|---|---|",
  "| parse | 12 ms | 3 ms |",
  "| write | 8 ms | 8 ms |",
].join("\n");

/** What is done before the picture is made. */
const ACTS: Record<string, (page: Page) => Promise<void>> = {
  log: async (page) => {
    await page.getByRole("tab", { name: "Raw log" }).click();
    await page.getByText("message.assistant").first().click();
  },
  services: async (page) => {
    await page.getByText("MCP services of this browser").scrollIntoViewIfNeeded();
    await page.getByRole("button", { name: "Test Cellar" }).click();
    await page.getByText("Answers").waitFor();
    await page.getByRole("heading", { name: "MCP servers of the gateway" }).scrollIntoViewIfNeeded();
  },
  "tool-form": (page) => page.getByRole("button", { name: "Run read_screen by hand" }).click(),
  "agent-tools": (page) => page.getByText("Steps of an answer").scrollIntoViewIfNeeded(),
  "agent-json": (page) => page.getByRole("tab", { name: "JSON" }).click(),
  trial: async (page) => {
    await page.getByRole("button", { name: "Try it" }).click();
    await page.getByLabel("Message").fill("call about_gateway {}");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Tool about_gateway answered").waitFor();
    await page.getByLabel("Message").scrollIntoViewIfNeeded();
  },
  "agent-new": async (page) => {
    await page.getByLabel("Name", { exact: true }).fill("two words");
    await page.getByLabel("Temperature").fill("warm");
  },
  install: async (page) => {
    await page.getByRole("button", { name: "Install a plugin" }).click();
    const buffer = Buffer.from(JSON.stringify(PLUGIN));
    await page.getByTestId("plugin-file").setInputFiles({ name: "time.json", mimeType: "application/json", buffer });
  },
};

const mcp = await localMcp();
const gateway = await Gateway.start();
const browser = await openBrowser();
try {
  const { agent } = await gateway.ask<{ agent: { id: string } }>("GET", "/api/agents/assistant");
  const { entity } = await gateway.ask<{ entity: { id: string } }>("POST", "/api/entities/agent", { agentId: agent.id, displayName: "assistant" });
  const first = await browser.newContext({ viewport: SIZES.desk });
  const { page } = await open(first, gateway);
  // The chats that the pictures show.
  await page.getByRole("button", { name: /^Answer with a source/ }).click();
  await page.getByLabel("Sources").waitFor();
  const cited = new URL(page.url()).pathname;
  await say(page, 'call show_chart {"title":"Runs per day","bars":[{"label":"Monday","value":12},{"label":"Tuesday","value":31},{"label":"Wednesday","value":24}]}');
  await page.getByText("Runs per day").first().waitFor();
  await page.getByRole("img", { name: /Monday: 12/ }).waitFor();
  await page.goto(gateway.url);
  await page.getByRole("button", { name: /^Run a tool in this page/ }).click();
  await page.locator('[data-state-of-call="done"]').waitFor();
  await page.getByRole("button", { name: "Retry" }).waitFor();
  const { runs: called } = await gateway.ask<{ runs: { id: string }[] }>("GET", `/api/smart-spaces/${page.url().split("/").at(-1)}/runs`);
  const replayed = await gateway.ask<{ runId: string }>("POST", `/api/runs/${called[0]?.id}/replay`, { step: 2 });
  await page.goto(gateway.url);
  await page.getByRole("button", { name: /^Ask before it acts/ }).click();
  await page.getByRole("heading", { name: /Allow/ }).waitFor();
  const asked = new URL(page.url()).pathname;
  const me = (await gateway.ask<{ entities: { id: string }[] }>("GET", "/api/entities?externalId=web-app")).entities[0]?.id;
  const { smartSpace } = await gateway.ask<{ smartSpace: { id: string } }>("POST", "/api/smart-spaces", { name: "A report with code and a table" });
  for (const entityId of [me, entity.id]) await gateway.ask("POST", `/api/smart-spaces/${smartSpace.id}/members`, { entityId });
  await gateway.ask("POST", `/api/smart-spaces/${smartSpace.id}/messages`, { entityId: me, content: "How did the build go?", triggerAgents: false });
  await gateway.ask("POST", `/api/smart-spaces/${smartSpace.id}/messages`, { entityId: entity.id, role: "assistant", content: MARKDOWN, triggerAgents: false });
  await gateway.ask("POST", "/api/goals", { entityId: me, description: "Answer support mail within a day", priority: 2 });
  await gateway.ask("POST", "/api/plans", { entityId: me, agentEntityId: entity.id, name: "Morning report", instruction: "Sum up what happened", cron: "0 8 * * *" });
  await gateway.ask("POST", "/api/inbox", { entityId: me, title: "The report is ready", message: "It is in your chat.", level: "info" }).catch(() => undefined);
  await gateway.ask("POST", "/api/plugins/install", JSON.parse(readFileSync(join(ROOT, "examples/plugins/time.json"), "utf8")));
  const storage = await first.storageState();
  const service = { id: "cellar", name: "Cellar", url: mcp.url, token: mcp.token, tools: await listMcpTools(mcp), listedAt: new Date().toISOString() };
  const views: Record<string, string> = {
    welcome: "/",
    cited,
    permission: asked,
    report: `/c/${smartSpace.id}`,
    inbox: "/inbox",
    runs: "/runs",
    run: `/runs/${called[0]?.id}`,
    replay: `/runs/${replayed.runId}`,
    log: `/runs/${called[0]?.id}`,
    tools: "/tools",
    services: "/tools",
    "tool-form": "/tools",
    plugins: "/plugins",
    agents: "/agents",
    agent: "/agents/assistant",
    "agent-tools": "/agents/assistant",
    "agent-json": "/agents/assistant",
    trial: "/agents/assistant",
    "agent-new": "/agents/new",
    missing: "/runs/run_01none",
    install: "/plugins",
    library: "/library",
    goals: "/library/goals",
    audit: "/audit",
  };
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const theme of ["light", "dark"] as const) {
      const context = await browser.newContext({ viewport, colorScheme: theme, storageState: storage, hasTouch: size === "phone" });
      await context.addInitScript(
        ({ plugin, held }) => {
          localStorage.setItem("toolyard_plugins", JSON.stringify([plugin]));
          localStorage.setItem("toolyard_mcp_services", JSON.stringify([held]));
        },
        { plugin: PLUGIN, held: service },
      );
      for (const [name, path] of Object.entries(views)) {
        if (only && !name.includes(only)) continue;
        const { page: shown, faults } = await open(context, gateway, path);
        await shown.locator("main h1, main article, main .permission").first().waitFor();
        await shown.waitForFunction(() => document.querySelector(".bone") === null);
        await ACTS[name]?.(shown);
        await shown.waitForTimeout(250);
        await shown.screenshot({ path: join(folder, `${name}-${size}-${theme}.png`) });
        const wide = await shown.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) console.log(`${name} ${size}: ${wide} px too wide`);
        if (faults.length > 0) console.log(name, size, faults);
        if (size === "phone" && name === "welcome") {
          await shown.getByRole("button", { name: "Menu" }).click();
          await shown.waitForTimeout(300);
          await shown.screenshot({ path: join(folder, `menu-${size}-${theme}.png`) });
        }
        await shown.close();
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
  await gateway.close();
  await mcp.close();
}
