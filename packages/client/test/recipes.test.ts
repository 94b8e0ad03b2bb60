// The five recipes of `onToolCall` (row H42), as an application would write them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatOptions, ToolyardClient } from "../src/index.js";
import { calls, says, scripted, user } from "./script.js";

const parameters = { type: "object" as const, properties: {} };

/** What the model reads of a call of `tool` with this `onToolCall`. */
async function answer(tool: string, onToolCall: (client: ToolyardClient) => NonNullable<ChatOptions["onToolCall"]>): Promise<unknown> {
  const { client, asked } = scripted([{ chunks: calls([["c1", tool, { n: 2 }]]) }, { chunks: says("ok") }]);
  for (const name of [tool, "other"]) {
    client.registerTool({ name, description: name, parameters, execute: ({ n }: { n: number }) => ({ doubled: n * 2 }) });
  }
  await client.chatStream({ messages: [user("go")], onToolCall: onToolCall(client) }).response;
  return asked[1]!.body.messages[1]!.parts!.find((part) => part["toolCallId"] === "c1")!["output"];
}

test("h42_confirmation_dialog", async () => {
  const confirm = (yes: boolean) => async () => yes;
  const recipe = (dialog: () => Promise<boolean>) => (client: ToolyardClient) => async (call: Parameters<ToolyardClient["executeTool"]>[0]) => {
    if (!(await dialog())) return { cancelled: true };
    return client.executeTool(call);
  };
  assert.deepEqual(await answer("double", recipe(confirm(false))), { cancelled: true });
  assert.deepEqual(await answer("double", recipe(confirm(true))), { doubled: 4 });
});

test("h42_analytics_wrapper", async () => {
  const tracked: unknown[] = [];
  const result = await answer("double", (client) => (call) => {
    tracked.push({ name: call.toolName, args: call.args });
    return client.executeTool(call);
  });
  assert.deepEqual([tracked, result], [[{ name: "double", args: { n: 2 } }], { doubled: 4 }]);
});

test("h42_permission_gate", async () => {
  const may = new Set(["other"]);
  const result = await answer("double", (client) => async (call) => {
    if (!may.has(call.toolName)) return { error: "Permission denied for this tool" };
    return client.executeTool(call);
  });
  assert.deepEqual(result, { error: "Permission denied for this tool" });
});

test("h42_dispatch_by_prefix", async () => {
  const mcp = { callTool: async (name: string) => `mcp ran ${name}` };
  const recipe = (client: ToolyardClient) => async (call: { toolName: string }) =>
    call.toolName.startsWith("mcp_") ? mcp.callTool(call.toolName) : client.executeTool(call as never);
  assert.equal(await answer("mcp_files_read", recipe), "mcp ran mcp_files_read");
  assert.deepEqual(await answer("double", recipe), { doubled: 4 });
});

test("h42_progress_status_around_the_call", async () => {
  const status: (string | null)[] = [];
  const result = await answer("double", (client) => async (call) => {
    status.push(`Running ${call.toolName}...`);
    try {
      return await client.executeTool(call);
    } finally {
      status.push(null);
    }
  });
  assert.deepEqual([status, result], [["Running double...", null], { doubled: 4 }]);
});
