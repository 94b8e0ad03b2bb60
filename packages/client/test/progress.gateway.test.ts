import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Gateway, robotSpace } from "./gateway.js";

let gateway: Gateway;
before(async () => {
  gateway = await Gateway.start();
});
after(() => gateway.stop());

test("h66_a_tool_of_a_chat_says_how_far_it_is", { timeout: 60_000 }, async () => {
  const client = gateway.client();
  let seen: Record<string, unknown> = {};
  client.registerTool({
    name: "paint",
    description: "Paints",
    parameters: { type: "object", properties: {} },
    execute: async (_input, { progress, call }) => {
      progress({ fraction: 0.5, message: "half", preliminary: { walls: 2 } });
      // Another reader of the same run hears it while the tool works.
      const open = (await client.waits.pendingCalls()).find((wait) => wait.toolCallId === call.toolCallId);
      for await (const { type, data } of client.runs.subscribe(open!.runId)) {
        if (type !== "tool.progress") continue;
        seen = data as unknown as Record<string, unknown>;
        break;
      }
      return { walls: 4 };
    },
  });
  const stream = client.chatStream({ messages: [{ role: "user", content: "call paint {}" }] });
  const response = await stream.response;
  assert.equal(response.finishReason, "stop");
  const { fraction, message, preliminary } = seen;
  assert.deepEqual({ fraction, message, preliminary }, { fraction: 0.5, message: "half", preliminary: { walls: 2 } });
});

test("h66_a_long_tool_says_how_far_it_is", { timeout: 20_000 }, async (t) => {
  const client = gateway.client();
  const { space, person } = await robotSpace(client, "h66", [{ name: "paint", description: "Paints" }]);
  const heard: object[] = [];
  client.on("tool_progress", ({ toolCallId: _, ...report }) => heard.push(report));
  const serving = client.serve(space, {
    tools: {
      paint: async (_input: never, { progress }) => {
        progress({ fraction: 0.5, message: "half", preliminary: { walls: 2 } });
        await new Promise((next) => setTimeout(next, 200));
        return { walls: 4 };
      },
    },
  });
  const run = (await client.spaces.post(space, { entityId: person, content: "call paint {}" })).runs[0]!.runId!;
  assert.equal((await client.runs.finished(run)).status, "completed");
  await serving.close();
  // Here it is heard in any case, and a gateway without progress does no harm.
  assert.deepEqual(heard, [{ toolName: "paint", fraction: 0.5, message: "half", preliminary: { walls: 2 } }]);
  if (!(await gateway.has("/api/runs/{run}/tool-progress"))) return t.skip("this gateway takes no progress yet");
  const told = (await client.runs.events(run)).find((frame) => frame.type === "tool.progress");
  const { fraction, message, preliminary } = told as unknown as Record<string, unknown>;
  assert.deepEqual({ fraction, message, preliminary }, { fraction: 0.5, message: "half", preliminary: { walls: 2 } });
});
