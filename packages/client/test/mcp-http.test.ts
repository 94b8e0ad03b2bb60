// MCP servers that a page calls itself: one connection for each question.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ToolyardError } from "../src/index.js";
import { callMcpTool, listMcpTools } from "../src/mcp/http.js";
import { localMcp } from "./local-mcp.js";

const until = async (done: () => boolean) => {
  for (let tries = 0; !done() && tries < 600; tries += 1) await new Promise((next) => setTimeout(next, 50));
  assert.ok(done());
};

test("c10_each_question_connects_asks_and_disconnects", async () => {
  const mcp = await localMcp();
  const { url, token, seen } = mcp;
  try {
    const [tool] = await listMcpTools({ url, token });
    assert.equal(tool?.name, "count_bottles");
    assert.deepEqual(tool?.parameters.required, ["shelf"]);
    assert.equal(await callMcpTool({ url, token }, "count_bottles", { shelf: 2 }), "24 bottles");
    assert.equal(await callMcpTool({ url, token }, "count_bottles", { shelf: 3 }), "36 bottles");
    assert.deepEqual(seen.calls, [2, 3]);
    assert.equal(seen.opened, 3);
    await until(() => seen.closed === 3);
  } finally {
    await mcp.close();
  }
});

test("c10_what_goes_wrong_is_said", async () => {
  const mcp = await localMcp();
  const { url, token } = mcp;
  const fails = (work: Promise<unknown>, says: RegExp) =>
    assert.rejects(work, (thrown) => thrown instanceof ToolyardError && says.test(thrown.message));
  try {
    await fails(listMcpTools({ url }), /wants another token/);
    await fails(callMcpTool({ url, token }, "no_such_tool", {}), /no_such_tool/);
    await fails(listMcpTools({ url: "http://127.0.0.1:1/mcp" }), /cannot be reached/);
    await assert.rejects(callMcpTool({ url, token }, "count_bottles", { shelf: 1 }, { signal: AbortSignal.abort(new Error("left")) }), /left/);
  } finally {
    await mcp.close();
  }
  const silent = createServer(() => undefined);
  const chatty = createServer((_, response) => response.writeHead(200, { "content-type": "application/json" }).end('"hello"'));
  for (const server of [silent, chatty]) await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const at = (server: typeof silent) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await fails(listMcpTools({ url: at(silent), timeoutMs: 200 }), /did not answer within 200 ms/);
  await fails(listMcpTools({ url: at(chatty) }), /not MCP/);
  for (const server of [silent, chatty]) {
    server.closeAllConnections();
    server.close();
  }
});
