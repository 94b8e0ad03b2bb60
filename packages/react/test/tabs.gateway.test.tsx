// @vitest-environment node
// Two tabs of a real browser at the real gateway. Frames of one origin share
// locks and storage as tabs do.
import { expect, inject, test } from "vitest";
import { robotSpace, token } from "../../client/test/gateway.js";
import { chromium, openPage } from "./chromium.js";
import { backend, fresh, PUBLIC_KEY } from "./page.js";

/** The outer page opens two tabs; each serves the calls of the space. */
const script = (space: string, name: string, idempotent: boolean) => `
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { ToolyardChatProvider, useAutoToolHandler } from "./src/index.ts";

const tell = (path, body = "") => fetch(path, { method: "POST", body });

const tools = {
  quick: { description: "", parameters: { type: "object", properties: {} }, execute: async () => { await tell("/ran"); return { tab: location.hash }; } },
  endless: { description: "", parameters: { type: "object", properties: {} }, idempotent: ${idempotent}, execute: async () => {
    const first = sessionStorage.getItem("begun") === null;
    if (first) sessionStorage.setItem("begun", location.hash);
    await tell(first ? "/begun" : "/again", location.hash);
    sessionStorage.setItem("told", "yes");
    return first ? new Promise(() => undefined) : { again: true };
  } },
};

function Tab() {
  const { isConnected } = useAutoToolHandler({ smartSpaceId: ${JSON.stringify(space)}, tools });
  useEffect(() => { if (isConnected) parent.postMessage("open", "*"); }, [isConnected]);
  return null;
}

if (location.hash) {
  createRoot(document.body).render(
    <StrictMode>
      <ToolyardChatProvider gatewayUrl=${JSON.stringify(inject("gatewayUrl"))} publicKey=${JSON.stringify(PUBLIC_KEY)} jwt=${JSON.stringify(token(name))}>
        <Tab />
      </ToolyardChatProvider>
    </StrictMode>,
  );
} else {
  const open = new Set();
  addEventListener("message", ({ data, source }) => {
    if (data === "open") open.add(source);
    if (open.size === 2) void tell("/open", String(navigator.locks !== undefined));
  });
  const frames = ["#a", "#b"].map((hash) => document.body.appendChild(Object.assign(document.createElement("iframe"), { src: "/tab" + hash })));
  // The tab that begins the endless call is closed.
  const look = setInterval(() => {
    const begun = frames.find((frame) => frame.contentWindow.location.hash === sessionStorage.getItem("begun"));
    if (!begun || sessionStorage.getItem("told") === null) return;
    clearInterval(look);
    begun.remove();
  }, 20);
}
`;

async function open(idempotent: boolean) {
  const word = fresh("tabs");
  const client = backend();
  const { space, person } = await robotSpace(client as never, word, [{ name: "quick", description: "Quick" }, { name: "endless", description: "Endless" }]);
  const page = await openPage(script(space, `ada-${word}`, idempotent));
  const ask = async (content: string) => (await client.spaces.post(space, { entityId: person, content })).runs[0]!.runId!;
  const ended = async (run: string) => {
    await client.runs.finished(run);
    const events = await client.runs.events(run);
    return events.flatMap((frame) => (frame.type === "tool-output-available" || frame.type === "tool-error" ? [frame.output ?? frame.error] : []));
  };
  return { page, ask, ended };
}

test.skipIf(!chromium)("g43 of two tabs of a browser one runs the call, and a tab that is closed leaves it to the other", async () => {
  const { page, ask, ended } = await open(true);
  try {
    expect(await page.told("/open")).toBe("true");
    const [result] = await ended(await ask("call quick {}"));
    expect(result).toMatchObject({ tab: expect.stringMatching(/^#[ab]$/) as string });
    expect(page.count("/ran")).toBe(1);
    const run = await ask("call endless {}");
    const first = await page.told("/begun");
    expect(await ended(run)).toEqual([{ again: true }]);
    expect(await page.told("/again")).not.toBe(first);
    expect([page.count("/begun"), page.count("/again")]).toEqual([1, 1]);
  } finally {
    await page.close();
  }
});

test.skipIf(!chromium)("g43 a tool whose tab was closed in the middle is not run again unless it says that it may be", async () => {
  const { page, ask, ended } = await open(false);
  try {
    await page.told("/open");
    const run = await ask("call endless {}");
    await page.told("/begun");
    expect(await ended(run)).toEqual(["It is uncertain whether endless took effect: its page was closed while it ran."]);
    expect([page.count("/begun"), page.count("/again")]).toEqual([1, 0]);
  } finally {
    await page.close();
  }
});
