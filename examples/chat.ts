// A chat in Node.js whose tools run in this process: the time, and files of one
// folder.
//
//   TOOLYARD_SECRET_KEY=sk_… npx tsx examples/chat.ts "what time is it in Oslo?"
import { ToolyardClient } from "@toolyard/client";
import { filesystemPlugin } from "./plugins/filesystem.ts";
import { timePlugin } from "./plugins/time.ts";

const client = new ToolyardClient({
  baseUrl: process.env.TOOLYARD_URL ?? "http://127.0.0.1:8787",
  auth: { secretKey: process.env.TOOLYARD_SECRET_KEY ?? "" },
}).use(timePlugin, filesystemPlugin(process.env.CHAT_FOLDER ?? "."));

// An agent without tools of its own: all that it can do is what this program brings.
await client.putAgent({ agent: { name: "chat-example", system: "Be brief." }, model: { provider: "demo", name: "demo" } });

const stream = client.chatStream({
  agent: "chat-example",
  messages: [{ role: "user", content: process.argv[2] ?? 'call get_current_time {"timezone": "Europe/Oslo"}' }],
  onApproval: ({ toolName, args }) => {
    console.log(`[allowed: ${toolName} ${JSON.stringify(args)}]`);
    return true;
  },
});
for await (const chunk of stream) {
  if (chunk.type === "text") process.stdout.write(chunk.value);
  if (chunk.type === "tool_call") console.log(`[${chunk.value.toolName} ${JSON.stringify(chunk.value.args)}]`);
  if (chunk.type === "tool_result") console.log(`[${chunk.value.toolName} answered]`);
}
const { finishReason, rounds } = await stream.response;
console.log(`\n${finishReason} after ${rounds} round${rounds === 1 ? "" : "s"}`);
