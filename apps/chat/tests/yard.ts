/** A real gateway and a real browser for the stories. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** How long anything may take on a busy machine. */
export const PATIENCE = 30_000;

const BINARY = process.env["TOOLYARD_BIN"] ?? join(process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target"), "debug/toolyard");

/** A gateway of this test alone, with the sample agents. */
export class Gateway {
  readonly folder: string;
  url = "";
  secret = "";
  #child: ChildProcess | undefined;
  #port = 0;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async start(env: Record<string, string> = {}): Promise<Gateway> {
    const gateway = new Gateway(mkdtempSync(join(tmpdir(), "toolyard-app-")));
    await gateway.start(env);
    return gateway;
  }

  /** Starts, or starts again on the same address and data. */
  async start(env: Record<string, string> = {}): Promise<string> {
    if (!existsSync(BINARY)) throw new Error(`There is no gateway at ${BINARY}`);
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(TOOLYARD_|AWS_)|_API_KEY$/.test(name)));
    const args = ["serve", "--listen", `127.0.0.1:${this.#port}`, "--data", join(this.folder, "data")];
    const child = spawn(BINARY, args, { cwd: ROOT, env: { ...own, ...env }, stdio: ["ignore", "pipe", "ignore"] });
    this.#child = child;
    const said = await new Promise<string>((resolve, reject) => {
      let text = "";
      const late = setTimeout(() => reject(new Error(`The gateway did not start: ${text}`)), PATIENCE);
      child.stdout?.on("data", (piece: Buffer) => {
        text += piece.toString();
        if (!text.includes("describes every route")) return;
        clearTimeout(late);
        resolve(text);
      });
      child.once("exit", (code) => reject(new Error(`The gateway ended with ${code}: ${text}`)));
    });
    this.url = /listens on (\S+)/.exec(said)?.[1] ?? "";
    this.#port = Number(new URL(this.url).port);
    const keys = join(this.folder, "data/keys.json");
    this.secret = (JSON.parse(readFileSync(keys, "utf8")) as { secretKey: string }).secretKey;
    return said;
  }

  /** Ends at once, as a crash does. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Asks the gateway as a backend does. */
  async ask<Answer>(method: string, route: string, body?: unknown): Promise<Answer> {
    const response = await fetch(this.url + route, {
      method,
      headers: { "x-secret-key": this.secret, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as Answer;
  }
}

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/**
 * `APP_DIST=apps/chat/dist` takes the page from there instead of out of the
 * gateway, under the gateway's own rules: a change of the page needs no new gateway.
 */
const DIST = process.env["APP_DIST"];

/** To the browser, a page from the disk comes from nowhere, and from there it may not call this machine. */
const LOCAL = DIST ? ["--disable-features=LocalNetworkAccessChecks"] : [];

async function fromDisk(context: BrowserContext, gateway: Gateway): Promise<void> {
  if (!DIST) return;
  await context.route(`${gateway.url}/**`, async (route) => {
    const { pathname } = new URL(route.request().url());
    if (/^\/(api|health)\b/.test(pathname)) return route.fallback();
    const own = join(DIST, pathname);
    const path = pathname !== "/" && existsSync(own) ? own : join(DIST, "index.html");
    const { headers } = await route.fetch({ url: pathname === "/sandbox.html" ? `${gateway.url}/sandbox.html` : gateway.url });
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => /policy|frame|nosniff|opener/.test(name)));
    return route.fulfill({ path, headers: kept });
  });
}

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", ...LOCAL],
  });
}

/** One gateway and one browser for all stories of a file. They end with it. */
export async function stage(): Promise<{ gateway: Gateway; browser: Browser }> {
  const [gateway, browser] = [await Gateway.start(), await openBrowser()];
  after(async () => {
    await browser.close();
    await gateway.close();
  });
  return { gateway, browser };
}

/** What a page must never do. */
export interface Watched {
  page: Page;
  /** Requests to anybody but the gateway, faults of the policy, and errors. */
  faults: string[];
}

/** Opens a page and writes down what goes wrong in it. */
export async function open(context: BrowserContext, gateway: Gateway, path = "/"): Promise<Watched> {
  if (context.pages().length === 0) await fromDisk(context, gateway);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const faults: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(gateway.url) && !/^(data|blob|about):/.test(url)) faults.push(`asked ${url}`);
  });
  page.on("pageerror", (error) => faults.push(`error ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy/i.test(message.text())) faults.push(message.text());
  });
  await page.goto(gateway.url + path);
  return { page, faults };
}

export async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}
