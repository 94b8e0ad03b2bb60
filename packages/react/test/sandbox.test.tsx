// @vitest-environment node
// Plugin code in a real browser: what it may do, and what it cannot reach.
import { expect, test } from "vitest";
import { SANDBOX_PAGE } from "../src/plugins/sandbox.js";
import { chromium, openPage } from "./chromium.js";

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
  const page = await openPage(PAGE, { "/sandbox.html": SANDBOX_PAGE });
  try {
    const found = JSON.parse(await page.told("/done")) as Record<string, { result?: unknown; error?: string }>;
    expect(found["answers"]).toEqual({ result: { sum: 3, zone: "1970-01-01T00:00:00.000Z" } });
    expect([found["waits"], found["nothing"], found["throws"]]).toEqual([{ result: "waited" }, { result: null }, { error: "no paper" }]);
    for (const name of ["faulty", "cookie", "page", "storage", "network", "request", "module", "script"]) {
      expect([name, typeof found[name]?.error, found[name]?.result]).toEqual([name, "string", undefined]);
    }
    expect(found["served"]).toEqual({ result: [7, "null"] });
    expect(found["loops"]).toEqual({ error: "The code ran longer than 500 ms" });
    expect(found["large"]).toEqual({ error: "The result has more than 1000000 characters" });
    expect([page.count("/reached"), found["frames"]]).toEqual([0, 0]);
  } finally {
    await page.close();
  }
});
