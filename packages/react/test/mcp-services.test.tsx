// MCP services of the browser (C7, C10): kept in its storage, called by the page.
import { act, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { localMcp, type LocalMcp } from "../../client/test/local-mcp.js";
import { MCP_SERVICES_KEY, useMcpServices, useToolRegistry } from "../src/index.js";
import { fresh, show } from "./page.js";

let mcp: LocalMcp;

beforeEach(async () => {
  mcp = await localMcp();
});

afterEach(() => mcp.close());

const open = () => show(fresh("ada"), () => ({ ...useToolRegistry(), ...useMcpServices() }), { strict: true });

test("c7 a service is added, its tool is offered with its service, runs here, and is gone when it is removed", async () => {
  const page = open();
  await act(async () => {
    await page.now.add({ name: "Wine Cellar", url: mcp.url, token: mcp.token });
  });
  expect(JSON.parse(localStorage.getItem(MCP_SERVICES_KEY) ?? "[]")).toMatchObject([{ id: "wine-cellar", url: mcp.url, token: mcp.token }]);
  expect(page.now.definitions).toMatchObject([{ name: "count_bottles", serviceId: "wine-cellar" }]);
  expect(JSON.stringify(page.now.definitions)).not.toContain(mcp.token);
  expect(await page.now.execute("count_bottles", { shelf: 2 })).toBe("24 bottles");
  act(() => page.now.setEnabled("wine-cellar", false));
  expect(page.now.definitions).toEqual([]);
  act(() => page.now.setEnabled("wine-cellar", true));
  await waitFor(() => expect(page.now.definitions).toHaveLength(1));
  act(() => page.now.remove("wine-cellar"));
  expect(page.now.definitions).toEqual([]);
});

test("c10 two services may share a name and a tool's name, and each call goes to its own", async () => {
  const other = await localMcp();
  try {
    const page = open();
    for (const each of [mcp, other]) {
      await act(async () => {
        await page.now.add({ name: "Cellar", url: each.url, token: each.token });
      });
    }
    expect(page.now.services.map(({ id }) => id)).toEqual(["cellar", "cellar-2"]);
    const [first, second] = page.now.definitions.map(({ name }) => name);
    expect(first).not.toBe(second);
    await page.now.execute(first ?? "", { shelf: 1 });
    await page.now.execute(second ?? "", { shelf: 9 });
    expect([mcp.seen.calls, other.seen.calls]).toEqual([[1], [9]]);
  } finally {
    await other.close();
  }
});

test("c10 a service that does not answer is not kept, and storage that nobody can read counts as empty", async () => {
  localStorage.setItem(MCP_SERVICES_KEY, "{broken");
  const page = open();
  expect(page.now.services).toEqual([]);
  await expect(page.now.add({ name: "Cellar", url: mcp.url, token: "wrong" })).rejects.toThrow("wants another token");
  await expect(page.now.add({ name: "Cellar", url: "ftp://cellar" })).rejects.toThrow("must begin with http");
  expect(page.now.services).toEqual([]);
});
