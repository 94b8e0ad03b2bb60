// A real browser with a page of the tests: the page tells the test what it finds.
import { build } from "esbuild";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const known = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const chromium = known.find((path) => path && existsSync(path));

export interface OpenPage {
  /** What the page tells under a path, the first time. */
  told(path: string): Promise<string>;
  /** How often the page asked for a path. */
  count(path: string): number;
  close(): Promise<void>;
}

/** Opens a page with a script in the browser, on the React of the project. `files` are served beside it. */
export async function openPage(script: string, files: Record<string, string> = {}): Promise<OpenPage> {
  const packages = process.env["REACT_FOLDER"] ?? "";
  const alias = Object.fromEntries(["react", "react-dom"].map((name) => [name, join(packages, name)]));
  const resolveDir = join(import.meta.dirname, "..");
  const bundle = await build({
    stdin: { contents: script, resolveDir, loader: "tsx" },
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    alias,
    define: { "process.env.NODE_ENV": '"development"' },
    logLevel: "silent",
  });
  const served: Record<string, string> = { "/page.js": bundle.outputFiles[0]?.text ?? "", ...files };
  const counts = new Map<string, number>();
  const heard = new Map<string, string>();
  const waiting = new Map<string, (body: string) => void>();
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    counts.set(path, (counts.get(path) ?? 0) + 1);
    response.setHeader("content-type", path.endsWith(".js") ? "text/javascript" : "text/html");
    if (request.method !== "POST") {
      return void response.end(served[path] ?? '<!doctype html><meta charset="utf-8"><body><script type="module" src="/page.js"></script>');
    }
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      response.end();
      if (!heard.has(path)) heard.set(path, body);
      waiting.get(path)?.(body);
    });
  });
  await new Promise<void>((up) => server.listen(0, "127.0.0.1", up));
  const { port } = server.address() as AddressInfo;
  const folder = await mkdtemp(join(tmpdir(), "toolyard-page-"));
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", `--user-data-dir=${folder}`];
  const browser = spawn(chromium ?? "", [...flags, `http://127.0.0.1:${port}/`], { stdio: "ignore" });
  return {
    told: (path) => new Promise((resolve) => (heard.has(path) ? resolve(heard.get(path) ?? "") : void waiting.set(path, resolve))),
    count: (path) => counts.get(path) ?? 0,
    async close() {
      const gone = new Promise((done) => (browser.exitCode === null ? browser.once("exit", done) : done(undefined)));
      browser.kill();
      await gone;
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}
