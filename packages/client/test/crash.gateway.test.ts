// A robot is killed with -9 around its work, and started again.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Gateway, robotSpace } from "./gateway.js";

let gateway: Gateway;
before(async () => {
  gateway = await Gateway.start();
});
after(() => gateway.stop());

const CASES = [
  ["before telling", { output: { moved: true } }],
  ["after telling", { output: { moved: true } }],
  ["while doing", { error: "It is uncertain whether move took effect: its program stopped while it ran." }],
] as const;
for (const [moment, expected] of CASES) {
  test(`killed ${moment}: the robot has moved once, and the run goes on`, { timeout: 40_000 }, async () => {
    const client = gateway.client();
    const name = `crash-${moment.replace(/ /g, "-")}`;
    const { space, person } = await robotSpace(client, name, [{ name: "move", description: "Moves" }]);
    const folder = await mkdtemp(join(tmpdir(), "toolyard-crash-"));
    const env = { ...process.env, URL_OF_GATEWAY: gateway.url, KEY: gateway.secretKey, SPACE: space, EFFECTS: join(folder, "effects"), OUTCOMES: join(folder, "outcomes") };
    const start = (DIE: string) => {
      return spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "crash-worker.ts")], { env: { ...env, DIE }, stdio: "inherit" });
    };
    const run = (await client.spaces.post(space, { entityId: person, content: "call move {}" })).runs[0]!.runId!;
    const first = start(moment);
    const signal = await new Promise((gone) => first.once("exit", (_, by) => gone(by)));
    assert.equal(signal, "SIGKILL");
    const second = start("");
    try {
      assert.equal((await client.runs.finished(run)).status, "completed");
    } finally {
      second.kill();
    }
    assert.equal(await readFile(env.EFFECTS, "utf8"), "moved\n");
    const end = (await client.runs.events(run)).find((frame) => frame.type === "tool-output-available" || frame.type === "tool-error");
    const { output, error } = end as { output?: unknown; error?: unknown };
    assert.deepEqual({ ...(output === undefined ? {} : { output }), ...(error === undefined ? {} : { error }) }, expected);
  });
}
