// The programs, as a person starts them, against the real gateway.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Gateway } from "../../packages/client/test/gateway.ts";

let gateway: Gateway;
let folder: string;
before(async () => {
  gateway = await Gateway.start();
  folder = await mkdtemp(join(tmpdir(), "toolyard-programs-"));
});
after(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

function run(program: string, args: string[] = []): Promise<{ code: number | null; said: string }> {
  const env = { ...process.env, TOOLYARD_URL: gateway.url, TOOLYARD_SECRET_KEY: gateway.secretKey, ROBOT_FOLDER: folder, CHAT_FOLDER: folder };
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "..", program), ...args], { env });
  let said = "";
  child.stdout.on("data", (piece: Buffer) => (said += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
  return new Promise((done) => child.once("exit", (code) => done({ code, said })));
}

test("g45_the_robot_moves_and_says_so", { timeout: 30_000 }, async () => {
  const { code, said } = await run("robot.ts");
  assert.equal(code, 0, said);
  assert.match(said, /move_robot: \{"x":2,"y":3\}/);
  assert.match(said, /read_battery: \{"percent":87\}/);
  assert.match(said, /completed: [^]*87/);
});

test("h41_the_chat_runs_its_tools_here", { timeout: 30_000 }, async (t) => {
  if (!(await gateway.has("/api/chat"))) return t.skip("this gateway has no /api/chat yet");
  const { code, said } = await run("chat.ts");
  assert.equal(code, 0, said);
  assert.match(said, /\[get_current_time \{"timezone":"Europe\/Oslo"\}\]\n\[get_current_time answered\]/);
  assert.match(said, /Europe\/Oslo[^]*stop after 1 round/);
});
