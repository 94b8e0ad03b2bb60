import assert from "node:assert/strict";
import { test } from "node:test";
import { ToolyardClient, type ClientToolDefinition, type Plugin } from "../src/index.js";

const client = (options = {}) => new ToolyardClient({ baseUrl: "http://nowhere.test", ...options });
const tool = (name: string): ClientToolDefinition => ({
  name,
  description: `Does ${name}`,
  parameters: { type: "object", properties: {} },
});
const plugin = (name: string, more: Partial<Plugin> = {}): Plugin => ({ name, version: "1.0.0", ...more });
const names = (of: ToolyardClient) => of.getClientToolDefinitions().map((each) => each.name);

test("h2_a_tool_is_registered_without_a_plugin", async () => {
  const one = client().registerTool({ ...tool("add"), execute: ({ a, b }: { a: number; b: number }) => a + b });
  assert.deepEqual(one.getClientToolDefinitions(), [tool("add")]);
  assert.equal(await one.executeTool({ toolName: "add", args: { a: 1, b: 2 } }), 3);
  assert.throws(() => one.registerTool({ ...tool("add"), execute: () => 0 }), /Tool "add" is already registered/);
  assert.throws(() => one.registerTool({ ...tool("my-tool"), execute: () => 0 }), /Invalid tool name "my-tool"/);
  assert.throws(() => one.registerTool({ ...tool("no_code") } as never), /must have an execute function/);
  assert.equal(one.unregisterTool("add"), true);
  assert.deepEqual(names(one), []);
});

test("h24_h26_h28_h31_a_plugin_brings_tools_and_chains", async () => {
  let greeted: unknown;
  const one = client();
  const given = plugin("two", { tools: [tool("a"), tool("b")], hooks: { onRegister: (who) => void (greeted = who) } });
  assert.deepEqual(one.getClientToolDefinitions(), []);
  assert.equal(one.use(given).use(plugin("none")), one);
  assert.deepEqual(one.getPluginNames(), ["two", "none"]);
  assert.ok(one.hasPlugin("two") && !one.hasPlugin("three"));
  assert.deepEqual(names(one), ["a", "b"]);
  await one.ready();
  assert.equal(greeted, one);
});

const REFUSED: [name: string, plugin: Plugin, text: RegExp][] = [
  ["without a name", plugin(""), /^Plugin must have a name$/],
  ["without a version", plugin("x", { version: "" }), /^Plugin "x" must have a version$/],
  ["registered before", plugin("old"), /^Plugin "old" is already registered$/],
  [
    "a tool that starts with a digit",
    plugin("x", { tools: [tool("1abc")] }),
    /^Plugin "x": Invalid tool name "1abc"\. Must start with a letter and contain only alphanumeric characters and underscores \(max 64 chars\)\.$/,
  ],
  ["a tool with special characters", plugin("x", { tools: [tool("my-tool")] }), /Invalid tool name "my-tool"/],
  ["a tool named as every object's key", plugin("x", { tools: [tool("constructor")] }), /Invalid tool name "constructor"/],
  ["an executor without a tool", plugin("x", { executors: { z: () => 1 } }), /^Plugin "x": Executor "z" has no matching tool definition$/],
  ["a tool of another plugin", plugin("x", { tools: [tool("t")] }), /^Plugin "x": Tool "t" conflicts with tool from plugin "old"$/],
  ["the same tool twice", plugin("x", { tools: [tool("a"), tool("a")] }), /^Plugin "x": Tool "a" is defined twice$/],
  ["a tool without a description", plugin("x", { tools: [{ ...tool("a"), description: "" }] }), /^Plugin "x": Tool "a" must have a description$/],
  ["parameters that are no object", plugin("x", { tools: [{ ...tool("a"), parameters: { type: "string" } as never }] }), /parameters must be an object schema$/],
];
for (const [name, given, text] of REFUSED) {
  test(`h29_refused: ${name}`, () => {
    const one = client().use(plugin("old", { tools: [tool("t")] }));
    assert.throws(() => one.use(given), { code: "plugin_refused", message: text });
    assert.deepEqual(one.getPluginNames(), ["old"]);
    assert.deepEqual(names(one), ["t"]);
  });
}

test("h30_unuse_removes_the_plugin_and_its_tools", async () => {
  let left = 0;
  const one = client().use(plugin("a", { tools: [tool("t")], hooks: { onUnregister: async () => void (left += 1) } }));
  await one.unuse("a");
  assert.equal(left, 1);
  assert.deepEqual([one.getPluginNames(), names(one)], [[], []]);
  await assert.rejects(one.unuse("a"), /^ToolyardError: Plugin "a" is not registered$/);
  // An upgrade: the same names are free again.
  one.use(plugin("a", { version: "2.0.0", tools: [tool("t")] }));
});

test("h32_calls_are_read_under_old_and_new_names", async () => {
  const one = client().use(plugin("p", { tools: [tool("echo")], executors: { echo: async (args) => args } }));
  const args = { a: 1 };
  assert.deepEqual(await one.executeTool({ toolCallId: "1", toolName: "echo", args }), args);
  assert.deepEqual(await one.executeTool({ id: "1", name: "echo", arguments: args }), args);
  assert.deepEqual(await one.executeTool({ id: "1", name: "echo", arguments: '{"a":1}' }), args);
  assert.deepEqual(await one.executeTool({ id: "1", function: { name: "echo", arguments: '{"a":1}' } }), args);
  assert.deepEqual(await one.executeTool({ name: "echo" }), {});
  await assert.rejects(one.executeTool({ toolName: "nobody" }), { code: "tool_not_found", message: "No executor for tool: nobody" });
  await assert.rejects(one.executeTool({}), /Tool call missing toolName/);
  await assert.rejects(one.executeTool({ name: "echo", arguments: "[1]" }), /must be an object/);
  assert.deepEqual([one.hasExecutor("echo"), one.hasExecutor("nobody"), one.hasExecutor("toString")], [true, false, false]);
});

test("h34_debug_logs_registration_execution_and_hooks", async () => {
  const lines: string[] = [];
  const one = client({ debug: (line: string) => lines.push(line) });
  one.use(plugin("p", { tools: [tool("t")], executors: { t: () => 1 }, hooks: { onRegister: () => undefined } }));
  await one.executeTool({ toolName: "t" });
  await one.unuse("p");
  assert.deepEqual(lines, [
    "plugin p@1.0.0 registered",
    "plugin p: onRegister",
    "tool t runs",
    "plugin p unregistered",
  ]);
});

test("h62_tools_that_on_register_discovers_count", async () => {
  const one = client().use({
    name: "finds",
    version: "1.0.0",
    tools: [],
    executors: { found: () => "here" },
    hooks: {
      async onRegister() {
        await new Promise((next) => setTimeout(next, 5));
        this.tools?.push(tool("found"));
      },
    },
  });
  assert.deepEqual(names(one), []);
  assert.equal(await one.executeTool({ toolName: "found" }), "here");
  assert.deepEqual(names(one), ["found"]);
});

test("a plugin whose on_register fails is gone, and the failure is told once", async () => {
  let left = false;
  const one = client()
    .use(plugin("bad", { tools: [tool("t")], hooks: { onRegister: () => Promise.reject(new Error("no server")), onUnregister: () => void (left = true) } }))
    .use(plugin("good", { tools: [tool("u")] }));
  await assert.rejects(one.ready(), /no server/);
  assert.deepEqual([one.getPluginNames(), names(one), left], [["good"], ["u"], true]);
  await one.ready();
});

test("a plugin that is taken away while it registers is not left connected", async () => {
  const steps: string[] = [];
  const one = client().use(
    plugin("slow", {
      hooks: {
        onRegister: async () => {
          await new Promise((next) => setTimeout(next, 10));
          steps.push("connected");
        },
        onUnregister: () => void steps.push("disconnected"),
      },
    }),
  );
  const ready = one.ready();
  await new Promise((next) => setTimeout(next, 1));
  await one.unuse("slow");
  await ready;
  assert.deepEqual(steps, ["connected", "disconnected"]);
});

test("hooks of a class keep their own this", async () => {
  class Hooks {
    #count = 0;
    onRegister() {
      this.#count += 1;
    }
    get count() {
      return this.#count;
    }
  }
  const hooks = new Hooks();
  await client().use(plugin("p", { hooks: hooks as never })).ready();
  assert.equal(hooks.count, 1);
});

test("h67_required_plugins_come_first_and_circles_are_refused", async () => {
  const order: string[] = [];
  const noting = (name: string, more: Partial<Plugin>) => plugin(name, { ...more, hooks: { onRegister: () => void order.push(name) } });
  const one = client();
  one.use(noting("c", { requires: ["b@^1.0.0", "a"] }), noting("b", { requires: ["a@>=1 <2"] }), noting("a", {}));
  await one.ready();
  assert.deepEqual([one.getPluginNames(), order], [["a", "b", "c"], ["a", "b", "c"]]);
  assert.throws(() => one.use(plugin("d", { requires: ["e@^1"] })), { message: 'Plugin "d" requires "e@^1", which is not registered' });
  assert.throws(() => one.use(plugin("d", { requires: ["a@^2"] })), { message: 'Plugin "d" requires "a@^2", but version 1.0.0 is registered' });
  assert.throws(() => one.use(plugin("x", { requires: ["y"] }), plugin("y", { requires: ["z"] }), plugin("z", { requires: ["x"] })), {
    message: "Plugins require each other: x -> y -> z -> x",
  });
  assert.throws(() => one.use(plugin("me", { requires: ["me"] })), /require each other: me -> me/);
  assert.throws(() => one.use(plugin("d", { requires: ["a@one"] })), /"one" is not a version range/);
  await assert.rejects(one.unuse("a"), /Plugin "a" is required by "b"/);
  assert.deepEqual(one.getPluginNames(), ["a", "b", "c"]);
});

test("of several plugins all are registered, or none", () => {
  const one = client();
  assert.throws(() => one.use(plugin("a", { tools: [tool("t")] }), plugin("b", { tools: [tool("t")] })), /conflicts with tool from plugin "a"/);
  assert.deepEqual([one.getPluginNames(), names(one)], [[], []]);
});

test("on_register may run a tool of the client", { timeout: 5000 }, async () => {
  let got: unknown;
  const one = client().registerTool({ ...tool("seven"), execute: () => 7 });
  one.use(plugin("p", { hooks: { onRegister: async (who) => void (got = await who.executeTool({ toolName: "seven" })) } }));
  await one.ready();
  assert.equal(got, 7);
});
