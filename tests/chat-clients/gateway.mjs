// The built gateway, with an agent whose model is the scripted one.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SECRET = "sk_test_secret_0123456789";
const PUBLIC = "pk_test_public_0123456789";
const JWT = "jwt-secret-of-the-tests-0123456789ab";

const still = (name, more = {}) => ({
  name, description: name, executionType: "basic", visibility: "public",
  execution: { mode: "static", output: { tool: name } }, ...more,
});
const client = (name, more = {}) => ({
  name, description: name, inputSchema: { type: "object", properties: { n: { type: "number" } } }, ...more,
});

const agent = {
  agent: { name: "assistant", system: "Be brief." },
  model: { provider: "scripted", name: "m" },
  loop: { maxSteps: 4 },
  tools: [
    still("look"), still("hidden", { visibility: "private" }), client("ask"), client("tell"),
    still("pay", { approval: "ask" }), client("paint", { approval: "ask" }),
  ],
};

const b64 = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

export class Gateway {
  static async start(upstream) {
    const gateway = new Gateway();
    gateway.folder = mkdtempSync(join(tmpdir(), "toolyard-chat-"));
    mkdirSync(join(gateway.folder, "agents"));
    writeFileSync(join(gateway.folder, "agents/assistant.json"), JSON.stringify(agent));
    writeFileSync(join(gateway.folder, "toolyard.toml"), `[providers.scripted]\nkind = "openai"\nbase_url = "${upstream.url}"\n`);
    gateway.port = await freePort();
    gateway.url = `http://127.0.0.1:${gateway.port}`;
    await gateway.run();
    return gateway;
  }

  async run() {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("TOOLYARD_")));
    this.child = spawn(process.env.TOOLYARD_BIN, ["serve", "--listen", `127.0.0.1:${this.port}`, "--config", "toolyard.toml"], {
      cwd: this.folder,
      env: { ...env, TOOLYARD_DATA: join(this.folder, "data"), TOOLYARD_SECRET_KEY: SECRET, TOOLYARD_PUBLIC_KEY: PUBLIC, TOOLYARD_JWT_SECRET: JWT },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.log ??= "";
    this.child.stderr.on("data", (piece) => (this.log += piece));
    this.ended = new Promise((done) => this.child.once("exit", done));
    for (let tries = 0; ; tries++) {
      if (this.child.exitCode !== null || tries > 3000) throw new Error(`the gateway did not start: ${this.log}`);
      try {
        const known = JSON.parse(readFileSync(join(this.folder, "data/gateway.json"), "utf8"));
        if (known.pid === this.child.pid) return;
      } catch {}
      await new Promise((on) => setTimeout(on, 10));
    }
  }

  // No goodbye.
  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  secret = { "x-secret-key": SECRET };

  user(name) {
    const body = `${b64({ alg: "HS256", typ: "JWT" })}.${b64({ sub: name, exp: Math.floor(Date.now() / 1000) + 3600 })}`;
    const signature = createHmac("sha256", JWT).update(body).digest("base64url");
    return { "x-public-key": PUBLIC, authorization: `Bearer ${body}.${signature}` };
  }

  async api(path, { method = "GET", body, headers = this.secret } = {}) {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${this.url}${path}`, { method, headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) }, ...sent });
    const text = await response.text();
    return { status: response.status, text, json: text.startsWith("{") ? JSON.parse(text) : undefined };
  }
}

const freePort = () =>
  new Promise((found) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
