// A robot that dies where its environment says; crash.gateway.test.ts starts it.
import { appendFileSync } from "node:fs";
import { ToolyardClient } from "../src/index.js";
import { fileOutcomes } from "../src/node.js";

const { URL_OF_GATEWAY = "", KEY = "", SPACE = "", EFFECTS = "", OUTCOMES = "", DIE = "" } = process.env;
const die = () => process.kill(process.pid, "SIGKILL");

const client = new ToolyardClient({
  baseUrl: URL_OF_GATEWAY,
  auth: { secretKey: KEY },
  outcomes: fileOutcomes(OUTCOMES),
  async fetch(input, init) {
    const submits = String(input).endsWith("/tool-results");
    if (submits && DIE === "before telling") die();
    const response = await fetch(input, init);
    if (submits && DIE === "after telling") die();
    return response;
  },
});
client.registerTool({
  name: "move",
  description: "Moves",
  parameters: { type: "object", properties: {} },
  execute: () => {
    appendFileSync(EFFECTS, "moved\n");
    if (DIE === "while doing") die();
    return { moved: true };
  },
});
client.serve(SPACE, { clientId: "robot" });
