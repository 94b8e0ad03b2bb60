import { toolCallOf, type ToolCallLike } from "./call.js";
import type { ChatOptions } from "./chat/options.js";
import { ChatStream } from "./chat/stream.js";
import { Turn } from "./chat/turn.js";
import { Door, follows, path, type Asking, type DoorOptions } from "./door.js";
import { Emitter } from "./emitter.js";
import type { ClientEvents } from "./events.js";
import { idempotencyKey } from "./native/once.js";
import { Runs } from "./native/runs.js";
import { Serving, type ServeOptions } from "./native/serve.js";
import { Spaces } from "./native/spaces.js";
import { Tools } from "./native/tools.js";
import { Waits } from "./native/waits.js";
import { memoryOutcomes, type OutcomeStore } from "./outcomes.js";
import type { Plugin } from "./plugin.js";
import type { AgentConfig } from "./protocol.js";
import { Registry } from "./registry.js";
import { ToolRunner } from "./runner.js";
import type { ClientToolDefinition, ClientToolOptions, ToolContext, ToolRegistration } from "./types.js";

export interface ToolyardClientOptions extends DoorOptions, ClientToolOptions {
  /** Where calls are written down; in memory if missing. */
  outcomes?: OutcomeStore;
}

/** An entity of the gateway. */
export interface EntityView {
  id: string;
  type: "human" | "agent" | "system";
  externalId?: string | null;
  displayName?: string | null;
  metadata?: unknown;
}

/** A program's side of a gateway: its tools and plugins, chats, spaces and runs. */
export class ToolyardClient {
  readonly spaces: Spaces;
  readonly runs: Runs;
  readonly tools: Tools;
  readonly waits: Waits;
  readonly #door: Door;
  readonly #events = new Emitter<ClientEvents>();
  readonly #registry: Registry;
  readonly #runner: ToolRunner;
  readonly #log: (line: string, ...more: unknown[]) => void;

  constructor(options: ToolyardClientOptions) {
    const { debug } = options;
    this.#log =
      typeof debug === "function" ? debug : debug ? (line, ...more) => console.debug(`[toolyard] ${line}`, ...more) : () => undefined;
    this.#door = new Door(options, (message) => {
      console.warn(`toolyard: ${message}`);
      this.#events.emit("warning", { message });
    });
    this.#registry = new Registry(this.#log);
    this.#runner = new ToolRunner(this.#registry, options.outcomes ?? memoryOutcomes(), this.#events, options.toolTimeoutMs);
    this.spaces = new Spaces(this.#door);
    this.runs = new Runs(this.#door);
    this.tools = new Tools(this.#door);
    this.waits = new Waits(this.#door);
  }

  /** Registers one tool with its code. */
  registerTool<Args = any>(tool: ToolRegistration<Args>): this {
    this.#registry.registerTool(tool);
    return this;
  }

  /** Takes a tool of `registerTool` away. */
  unregisterTool(name: string): boolean {
    return this.#registry.unregisterTool(name);
  }

  /**
   * Registers plugins, those that are required first. Their `onRegister` runs
   * in the background; `ready` and every chat wait for it.
   */
  use(...plugins: Plugin[]): this {
    this.#registry.use(plugins, this);
    return this;
  }

  /** Removes a plugin and its tools, and waits for its `onUnregister`. */
  unuse(name: string): Promise<void> {
    return this.#registry.unuse(name);
  }

  hasPlugin(name: string): boolean {
    return this.#registry.has(name);
  }

  getPluginNames(): string[] {
    return this.#registry.names;
  }

  /** The tools that the next request offers. */
  getClientToolDefinitions(): ClientToolDefinition[] {
    return this.#registry.definitions;
  }

  /** Reads a plugin's tools again, after it changed them. */
  refreshPlugin(name: string): void {
    this.#registry.refresh(name);
  }

  /** Waits until every plugin is registered; throws what went wrong. */
  ready(): Promise<void> {
    return this.#registry.ready();
  }

  /** Whether this program has code for a tool. */
  hasExecutor(name: string): boolean {
    return this.#registry.hasExecutor(name);
  }

  /** Runs a tool's executor; throws what it throws. For use in `onToolCall`. */
  async executeTool(call: ToolCallLike, options: Partial<Pick<ToolContext, "signal" | "progress">> = {}): Promise<unknown> {
    const whole = toolCallOf(call);
    await this.#registry.readyFor(whole.toolName);
    const { toolCallId, toolName } = whole;
    const signal = options.signal ?? new AbortController().signal;
    return this.#registry.execute(whole, { call: whole, toolCallId, toolName, signal, progress: options.progress ?? (() => undefined) });
  }

  /** Listens to what happens. The answer stops it. */
  on<Name extends keyof ClientEvents>(name: Name, listener: (event: ClientEvents[Name]) => void): () => void {
    return this.#events.on(name, listener);
  }

  /** Asks an agent, runs the tools that live here, and streams the answer. */
  chatStream(options: ChatOptions): ChatStream {
    const stop = new AbortController();
    follows(stop, options.signal);
    const parts = {
      door: this.#door,
      registry: this.#registry,
      runner: this.#runner,
      tools: this.tools,
      events: this.#events,
      log: this.#log,
      ready: () => this.ready(),
    };
    const turn = new Turn(parts, options, stop.signal);
    return new ChatStream(
      turn.id,
      turn.run(),
      (reason) => stop.abort(reason),
      () => this.stopChat(turn.id),
    );
  }

  /** Ends the run of a chat on the gateway. */
  async stopChat(id: string): Promise<void> {
    await this.#door.open("POST", path`/api/chat/${id}/stop`, { repeatable: true });
  }

  /** Runs the calls of a space that this program has tools for, until it is closed. */
  serve(spaceId: string, options: ServeOptions = {}): Serving {
    const parts = {
      door: this.#door,
      registry: this.#registry,
      runner: this.#runner,
      tools: this.tools,
      waits: this.waits,
      log: this.#log,
    };
    return new Serving(this.spaces.subscribe(spaceId, options), parts, options);
  }

  /** Stores an agent by its name (secret key). */
  async putAgent(config: AgentConfig): Promise<{ agentId: string; configHash: string; created: boolean }> {
    return this.#door.json("POST", "/api/agents", { body: { config }, repeatable: true });
  }

  /** Creates an entity: a person, a system, or with `agentId` one that plays an agent (secret key). */
  async createEntity(entity: {
    type?: "human" | "system";
    agentId?: string;
    externalId?: string;
    displayName?: string;
    metadata?: unknown;
  }): Promise<EntityView> {
    const route = entity.agentId === undefined ? "/api/entities" : "/api/entities/agent";
    const body = entity.agentId === undefined ? { type: "human", ...entity } : entity;
    const asking = { body, headers: idempotencyKey(), repeatable: true };
    return (await this.#door.json<{ entity: EntityView }>("POST", route, asking)).entity;
  }

  /** Any other route: `request("GET", "/api/models")`. */
  request<Answer = unknown>(method: string, route: string, asking: Asking = {}): Promise<Answer> {
    return this.#door.json<Answer>(method, route, asking);
  }
}
