// A robot with two tools. It serves the calls of one space, keeps on paper what
// it has done, and comes back by itself when the network or the gateway was away.
//
//   TOOLYARD_SECRET_KEY=sk_… npx tsx examples/robot.ts
import { ToolyardClient } from "@toolyard/client";
import { fileOutcomes } from "@toolyard/client/node";

const client = new ToolyardClient({
  baseUrl: process.env.TOOLYARD_URL ?? "http://127.0.0.1:8787",
  auth: { secretKey: process.env.TOOLYARD_SECRET_KEY ?? "" },
  outcomes: fileOutcomes(process.env.ROBOT_FOLDER ?? ".robot"),
});

const position = { x: 0, y: 0 };
client.registerTool({
  name: "move_robot",
  description: "Moves the robot to a place of the floor",
  parameters: { type: "object", properties: { x: { type: "number" }, y: { type: "number" } }, required: ["x", "y"] },
  execute: async ({ x, y }: { x: number; y: number }, { progress }) => {
    progress({ fraction: 0.5, message: "half way" });
    Object.assign(position, { x, y });
    return { ...position };
  },
});
client.registerTool({
  name: "read_battery",
  description: "Says how full the battery is",
  parameters: { type: "object", properties: {} },
  idempotent: true,
  execute: () => ({ percent: 87 }),
});

// An agent that knows the robot's tools, a person, and a space for both.
await client.putAgent({
  agent: { name: "robot-driver", system: "You drive a robot. Say where it is when you have moved it." },
  model: { provider: "demo", name: "demo" },
  tools: client.getClientToolDefinitions().map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters as never })),
});
const space = await client.spaces.create({ name: "robot" });
const driver = await client.createEntity({ agentId: "robot-driver" });
const person = await client.createEntity({ displayName: "Ada" });
for (const entity of [driver, person]) await client.spaces.addMember(space.id, entity.id);

const serving = client.serve(space.id, { clientId: "robot-1" });
client.on("tool_end", ({ toolName, result, error }) => console.log(`${toolName}: ${error ?? JSON.stringify(result)}`));

// The demo model follows commands; a real model would be asked in words.
const content = process.argv[2] ?? 'call move_robot {"x": 2, "y": 3}\ncall read_battery {}';
const { runs } = await client.spaces.post(space.id, { entityId: person.id, content });
const run = runs[0]?.runId;
if (!run) throw new Error("the agent did not answer");
const end = await client.runs.finished(run);
const messages = await client.spaces.messages(space.id);
console.log(`${end.status}: ${messages.at(-1)?.content}`);
await serving.close();
