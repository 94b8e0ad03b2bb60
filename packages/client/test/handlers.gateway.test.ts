// Tools of a platform's pages, handled by classes, beside those of an SDK.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ToolHandlers, ToolyardError, type PageToolHandler, type ToolCall, type ToolContext } from "../src/index.js";
import { Gateway } from "./gateway.js";
import { user } from "./script.js";

let gateway: Gateway;
before(async () => {
  gateway = await Gateway.start();
});
after(() => gateway.stop());

class Confetti implements PageToolHandler {
  readonly tools = ["confetti"];
  thrown = 0;
  handle(call: ToolCall): unknown {
    this.thrown += Number(call.args["pieces"] ?? 1);
    return { thrown: this.thrown };
  }
}

class Settings implements PageToolHandler {
  readonly tools = ["setSlippageSettings", "showTokenChart"];
  async handle({ toolName, args }: ToolCall): Promise<unknown> {
    return { done: toolName, ...args };
  }
}

test("h8_a_handler_is_found_by_the_name_of_its_tool", async () => {
  const settings = new Settings();
  const handlers = new ToolHandlers([new Confetti()]).register(settings);
  assert.equal(handlers.find("showTokenChart"), settings);
  assert.equal(handlers.find("show"), undefined);
  // Calls have several shapes: of the AI SDK, of vendors, of older clients.
  for (const call of [
    { toolCallId: "c", toolName: "showTokenChart", input: { token: "x" } },
    { id: "c", name: "showTokenChart", arguments: '{"token":"x"}' },
  ]) {
    assert.deepEqual(await handlers.dispatch(call, undefined), { done: "showTokenChart", token: "x" });
  }
  assert.throws(() => handlers.register({ tools: ["other", "confetti"], handle: () => 1 }), ToolyardError);
  assert.equal(handlers.find("other"), undefined, "nothing of a refused handler is kept");
});

test("h9_a_tool_without_a_handler_is_answered_in_words", async () => {
  assert.equal(await new ToolHandlers().dispatch({ toolName: "dance" }, undefined), "Tool: dance not found");
});

test("h7_h8_tools_of_the_page_run_beside_those_of_an_sdk", { timeout: 60_000 }, async () => {
  const client = gateway.client();
  const schema = { type: "object", properties: { pieces: { type: "number" } } };
  await client.putAgent({
    agent: { name: "party", system: "Be brief." },
    model: { provider: "demo", name: "demo" },
    tools: [{ name: "confetti", description: "Throws confetti", inputSchema: schema, category: "ui" }],
  } as never);
  client.registerTool({ name: "double_it", description: "Doubles", parameters: { type: "object", properties: { n: { type: "number" } } }, execute: ({ n }: { n: number }) => n * 2 });
  const confetti = new Confetti();
  const handlers = new ToolHandlers<ToolContext>([confetti]);
  const messages = [user('call confetti {"pieces": 7}\ncall double_it {"n": 21}')];
  const { toolResults } = await client.chatStream({ agent: "party", messages, onToolCall: handlers.onToolCall }).response;
  assert.deepEqual(toolResults.map(({ toolName, result }) => [toolName, result]), [["confetti", { thrown: 7 }], ["double_it", 42]]);
  assert.equal(confetti.thrown, 7);
});
