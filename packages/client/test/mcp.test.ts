// The bridge, with other people's servers (scripts/setup-mcp-servers).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { safeValidateToolDefinitions, ToolyardClient } from "../src/index.js";
import { mcpPlugin } from "../src/mcp/index.js";
import { nameTools } from "../src/mcp/naming.js";
import { valueOf } from "../src/mcp/result.js";
import { requestSchema } from "../src/mcp/schema.js";
import { calls, says, scripted, user } from "./script.js";

const place = process.env["TOOLYARD_MCP_SERVERS"] ?? resolve(import.meta.dirname, "../../../target/mcp-servers");
const program = (name: string) => join(place, "node/node_modules/.bin", `mcp-server-${name}`);
const skip = existsSync(program("everything")) ? false : "the MCP servers are not installed: scripts/setup-mcp-servers";
const client = () => new ToolyardClient({ baseUrl: "http://nowhere.test" });

test("h62_names_are_qualified_clean_and_stable", async () => {
  const long = "x".repeat(80);
  const tools = [
    { server: "my-files", tool: "read.file" },
    { server: "a", tool: "b_c" },
    { server: "a", tool: "b-c" },
    { server: "a", tool: long },
    { server: "a", tool: `${long}y` },
  ];
  const names = (await nameTools(tools)).map((each) => each.name);
  assert.deepEqual(names.slice(0, 2), ["mcp_my_files_read_file", "mcp_a_b_c"]);
  assert.match(names[2]!, /^mcp_a_b_c_[0-9a-f]{8}$/);
  for (const name of names) assert.match(name, /^[A-Za-z][A-Za-z0-9_]{0,63}$/);
  assert.equal(new Set(names).size, 5);
  assert.deepEqual((await nameTools(tools.slice(3))).map((each) => each.name), names.slice(3), "others do not change a name");
});

test("row3_schemas_of_servers_become_schemas_of_requests", () => {
  const wide = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`p${n}`, { type: "string" }]));
  const deep = { type: "object", properties: { a: { type: "object", properties: { b: { type: "object", properties: { c: { type: "array", items: { type: "object", properties: { d: { type: "array", items: {} } } } } } } } } } };
  const given = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { who: { $ref: "#/$defs/Person" }, deep, wide: { type: "object", properties: wide, required: ["p29"], additionalProperties: false } },
    required: ["who"],
    $defs: { Person: { type: "object", properties: { name: { type: "string" }, friend: { $ref: "#/$defs/Person" } } } },
  };
  const parameters = requestSchema(given);
  assert.deepEqual(safeValidateToolDefinitions([{ name: "t", description: "d", parameters }]).success, true);
  const who = parameters.properties["who"]!;
  assert.deepEqual(who.properties?.["name"], { type: "string" });
  const kept = parameters.properties["wide"]!;
  assert.equal(Object.keys(kept.properties!).length, 20);
  assert.ok("p29" in kept.properties! && !("additionalProperties" in kept));
  assert.deepEqual(requestSchema(undefined), { type: "object", properties: {} });
});

test("answers of servers become values", () => {
  assert.equal(valueOf({ content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }), "a\nb");
  assert.deepEqual(valueOf({ content: [{ type: "text", text: "{}" }], structuredContent: { a: 1 } }), { a: 1 });
  const image = { content: [{ type: "image", data: "AA==", mimeType: "image/png" }, { type: "of-the-future" }] };
  assert.deepEqual(valueOf(image), image);
  assert.throws(() => valueOf({ isError: true, content: [{ type: "text", text: "no such file" }] }), /^Error: no such file$/);
});

test("h61_h62_h63_a_filesystem_over_stdio", { skip, timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolyard-bridge-"));
  await writeFile(join(folder, "note.txt"), "hello from disk");
  const { client: one, asked } = scripted([
    { chunks: calls([["c1", "mcp_files_read_text_file", { path: join(folder, "note.txt") }], ["c2", "mcp_files_read_text_file", { path: join(folder, "none") }]]) },
    { chunks: says("read") },
  ]);
  one.use(mcpPlugin({ servers: [{ name: "files", command: program("filesystem"), args: [folder] }] }));
  // The chat waits for the servers.
  const response = await one.chatStream({ messages: [user("read it")] }).response;
  const offered = asked[0]!.body.clientTools!;
  assert.ok(offered.length > 8 && offered.every((tool) => tool.name.startsWith("mcp_files_") && tool["serviceId"] === "files"));
  assert.equal(safeValidateToolDefinitions(offered, { names: "chat" }).success, true);
  const [first, second] = response.toolResults;
  assert.match(JSON.stringify(first?.result), /hello from disk/);
  assert.match(second?.error ?? "", /ENOENT|no such file/i);
  assert.deepEqual([one.hasPlugin("mcp-bridge"), one.getPluginNames()], [true, ["mcp-bridge"]]);
  await one.unuse("mcp-bridge");
  assert.deepEqual(one.getClientToolDefinitions(), []);
  await rm(folder, { recursive: true });
});

test("h62_a_foreign_call_is_passed_on", async () => {
  const hook = mcpPlugin({ servers: [] }).hooks!.onToolCall!;
  assert.equal(hook.call({ name: "x", version: "1" }, { toolName: "mcp_of_another" } as never), undefined);
});

test("h61_h63_several_servers_over_stdio_and_http_start_side_by_side", { skip, timeout: 60_000 }, async () => {
  const port = await freePort();
  const http = spawn(program("everything"), ["streamableHttp"], { env: { ...process.env, PORT: String(port) }, stdio: "ignore" });
  try {
    await until(async () => fetch(`http://127.0.0.1:${port}/mcp`).then(() => true, () => false));
    const one = client();
    one.use(
      mcpPlugin({
        servers: [
          { name: "here", command: program("everything"), tools: ["echo", "get-sum"] },
          { name: "there", url: `http://127.0.0.1:${port}/mcp`, tools: ["echo"] },
          { name: "memory", command: program("memory"), env: { MEMORY_FILE_PATH: join(tmpdir(), `toolyard-memory-${process.pid}.json`) } },
        ],
      }),
    );
    await one.ready();
    const names = one.getClientToolDefinitions().map((tool) => tool.name);
    assert.deepEqual(names.slice(0, 3), ["mcp_here_echo", "mcp_here_get_sum", "mcp_there_echo"]);
    assert.ok(names.includes("mcp_memory_create_entities"));
    assert.match(String(await one.executeTool({ toolName: "mcp_here_echo", args: { message: "a" } })), /a/);
    assert.match(String(await one.executeTool({ toolName: "mcp_there_echo", args: { message: "b" } })), /b/);
    assert.match(String(await one.executeTool({ toolName: "mcp_here_get_sum", args: { a: 2, b: 3 } })), /5/);
    await one.unuse("mcp-bridge");
  } finally {
    http.kill();
  }
});

test("h63_a_server_that_cannot_start_is_told_with_its_last_words", { timeout: 60_000 }, async () => {
  const broken = { name: "broken", command: process.execPath, args: ["-e", "console.error('no licence'); process.exit(3)"] };
  const one = client().use(mcpPlugin({ servers: [broken] }));
  await assert.rejects(one.ready(), /MCP server "broken" cannot be reached: [^]*no licence/);
  assert.deepEqual(one.getPluginNames(), []);
  const warnings: string[] = [];
  one.use(mcpPlugin({ servers: [{ ...broken, optional: true }], onWarning: (message) => warnings.push(message) }));
  await one.ready();
  assert.deepEqual([one.getPluginNames(), warnings.length], [["mcp-bridge"], 1]);
  assert.throws(() => mcpPlugin({ servers: [{ name: "neither" }] }), /needs a command or a url/);
});

async function freePort(): Promise<number> {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => found(port));
    });
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((next) => setTimeout(next, 50));
}
