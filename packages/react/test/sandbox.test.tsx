// @vitest-environment node
// Plugin code in a real browser: what it may do, and what it cannot reach.
import { build } from "esbuild";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SANDBOX_PAGE } from "../src/plugins/sandbox.js";

const chromium = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));

/** Each body of a function, and what came of it. */
const CODES: Record<string, string> = {
  answers: "return { sum: args.a + args.b, zone: new Date(0).toISOString() };",
  waits: "await new Promise((next) => setTimeout(next, 5)); return 'waited';",
  nothing: "args.a = 1;",
  throws: "throw new Error('no paper');",
  faulty: "return (;",
  cookie: "return document.cookie;",
  page: "return String(parent.location);",
  storage: "return localStorage.length;",
  network: "return (await fetch(args.url)).status;",
  request: "const r = new XMLHttpRequest(); r.open('GET', args.url, false); r.send(); return r.status;",
  module: "return (await import(args.url)).default;",
  script: "importScripts(args.url); return 'loaded';",
  loops: "for (;;) {}",
  large: "return 'x'.repeat(2_000_000);",
};

const PAGE = `
import { codeRunner, runInFrame } from "./src/plugins/sandbox.ts";
const codes = ${JSON.stringify(CODES)};
const found = {};
document.cookie = "secret=cookie";
localStorage.setItem("secret", "stored");
for (const [name, code] of Object.entries(codes)) {
  const args = { a: 1, b: 2, url: location.origin + "/reached" };
  const how = { timeoutMs: name === "loops" ? 500 : 10000 };
  found[name] = await runInFrame(code, args, how).then((result) => ({ result }), (error) => ({ error: error.message }));
}
found.served = await codeRunner({ url: "/sandbox.html" })("return [args.a, self.origin]", { a: 7 }, { timeoutMs: 10000 }).then((result) => ({ result }), (error) => ({ error: error.message }));
found.frames = document.querySelectorAll("iframe").length;
await fetch("/done", { method: "POST", body: JSON.stringify(found) });
`;

test.skipIf(!chromium)("h54 plugin code reaches neither the page nor its storage nor the network, and is stopped", async () => {
  const root = join(import.meta.dirname, "..");
  const bundle = await build({ stdin: { contents: PAGE, resolveDir: root }, bundle: true, write: false, format: "esm" });
  const folder = await mkdtemp(join(tmpdir(), "toolyard-sandbox-"));
  let reached = 0;
  let tell: (found: Record<string, { result?: unknown; error?: string }>) => void = () => undefined;
  const told = new Promise<Record<string, { result?: unknown; error?: string }>>((resolve) => (tell = resolve));
  const server = createServer((request, response) => {
    if (request.url === "/reached") reached += 1;
    if (request.url !== "/done") {
      const script = request.url === "/page.js";
      response.setHeader("content-type", script ? "text/javascript" : "text/html");
      if (request.url === "/sandbox.html") return void response.end(SANDBOX_PAGE);
      return void response.end(script ? bundle.outputFiles[0]?.text : '<!doctype html><body><script type="module" src="/page.js"></script>');
    }
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      response.end();
      tell(JSON.parse(body) as never);
    });
  });
  await new Promise<void>((up) => server.listen(0, "127.0.0.1", up));
  const { port } = server.address() as AddressInfo;
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", `--user-data-dir=${folder}`];
  const browser = spawn(chromium ?? "", [...flags, `http://127.0.0.1:${port}/`], { stdio: "ignore" });
  try {
    const found = await told;
    expect(found["answers"]).toEqual({ result: { sum: 3, zone: "1970-01-01T00:00:00.000Z" } });
    expect([found["waits"], found["nothing"], found["throws"]]).toEqual([{ result: "waited" }, { result: null }, { error: "no paper" }]);
    for (const name of ["faulty", "cookie", "page", "storage", "network", "request", "module", "script"]) {
      expect([name, typeof found[name]?.error, found[name]?.result]).toEqual([name, "string", undefined]);
    }
    expect(found["served"]).toEqual({ result: [7, "null"] });
    expect(found["loops"]).toEqual({ error: "The code ran longer than 500 ms" });
    expect(found["large"]).toEqual({ error: "The result has more than 1000000 characters" });
    expect([reached, found["frames"]]).toEqual([0, 0]);
  } finally {
    const gone = new Promise((done) => browser.once("exit", done));
    browser.kill();
    await gone;
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
});
