// The real gateway, for tests: the built binary on a free port of this machine,
// with the demo model and a data folder of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ToolyardClient, type ToolyardClientOptions } from "../src/index.js";

const ROOT = resolve(import.meta.dirname, "../../..");
const SECRET_KEY = "sk_test_of_the_packages_0001";
const PUBLIC_KEY = "pk_test_of_the_packages_0001";
const JWT_SECRET = "a secret of the tests with 32 bytes or more";

/** The binary that `cargo build -p toolyard` makes. */
export function binary(): string {
  const target = process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target");
  const path = process.env["TOOLYARD_BIN"] ?? join(target, "debug/toolyard");
  if (!existsSync(path)) throw new Error(`${path} is missing: cargo build -p toolyard`);
  return path;
}

export class Gateway {
  url = "";
  readonly secretKey = SECRET_KEY;
  readonly publicKey = PUBLIC_KEY;
  readonly #folder: string;
  #process: ChildProcess | undefined;
  #port = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(): Promise<Gateway> {
    const gateway = new Gateway(await mkdtemp(join(tmpdir(), "toolyard-client-")));
    await gateway.up();
    return gateway;
  }

  /** Starts the process, on the port that it had before. */
  async up(): Promise<void> {
    const process_ = spawn(binary(), ["serve", "--listen", `127.0.0.1:${this.#port}`, "--data", this.#folder], {
      cwd: this.#folder,
      env: {
        ...process.env,
        TOOLYARD_AGENTS_DIR: join(ROOT, "agents"),
        TOOLYARD_SECRET_KEY: SECRET_KEY,
        TOOLYARD_PUBLIC_KEY: PUBLIC_KEY,
        TOOLYARD_JWT_SECRET: JWT_SECRET,
        TOOLYARD_LIMITS_PUBLIC_RATE: "0",
        // The gateway refuses variables that it does not know.
        TOOLYARD_BIN: undefined,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = process_;
    let said = "";
    this.url = await new Promise<string>((found, failed) => {
      const hear = (piece: Buffer) => {
        said += piece.toString();
        const url = /listens on (http:\S+)/.exec(said)?.[1];
        if (url) found(url);
      };
      process_.stdout?.on("data", hear);
      process_.stderr?.on("data", hear);
      process_.once("exit", (code) => failed(new Error(`the gateway ended with ${code}:\n${said}`)));
    });
    this.#port = Number(new URL(this.url).port);
  }

  /** kill -9. */
  async kill(): Promise<void> {
    const process_ = this.#process;
    if (!process_ || process_.exitCode !== null) return;
    const gone = new Promise((done) => process_.once("exit", done));
    process_.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** A backend's client. */
  client(options: Partial<ToolyardClientOptions> = {}): ToolyardClient {
    return new ToolyardClient({ baseUrl: this.url, auth: { secretKey: SECRET_KEY }, ...options });
  }

  /** A user's client. */
  user(name: string, options: Partial<ToolyardClientOptions> = {}): ToolyardClient {
    const auth = { publicKey: PUBLIC_KEY, token: () => token(name) };
    return new ToolyardClient({ baseUrl: this.url, auth, ...options });
  }

  /** Whether this release has a route. */
  async has(route: string): Promise<boolean> {
    const document = (await (await fetch(`${this.url}/api/openapi.json`)).json()) as { paths: Record<string, unknown> };
    return route in document.paths;
  }
}

/** A token as a backend signs it: good for an hour. */
export function token(user: string): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: user, exp: Math.floor(Date.now() / 1000) + 3600 })}`;
  return `${text}.${createHmac("sha256", JWT_SECRET).update(text).digest("base64url")}`;
}

/** A space with a person and an agent that has client tools. */
export async function robotSpace(client: ToolyardClient, name: string, tools: object[]): Promise<{ space: string; person: string }> {
  await client.putAgent({
    agent: { name, system: "Be brief." },
    model: { provider: "demo", name: "demo" },
    tools,
  } as never);
  const person = await client.createEntity({ displayName: "Ada", externalId: `ada-${name}` });
  const bot = await client.createEntity({ agentId: name });
  const space = await client.spaces.create({ name });
  await client.spaces.addMember(space.id, person.id);
  await client.spaces.addMember(space.id, bot.id);
  return { space: space.id, person: person.id };
}

/** The first value that is there, or the test's time runs out. */
export async function until<Value>(find: () => Promise<Value | undefined> | Value | undefined): Promise<Value> {
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    await new Promise((next) => setTimeout(next, 10));
  }
}
