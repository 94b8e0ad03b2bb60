import { toolCallOf, type ToolCall, type ToolCallLike } from "./call.js";
import type { ChatResponse } from "./chat/response.js";
import type { ToolyardClient } from "./client.js";
import { ToolyardError } from "./error.js";
import { checkExecutors, checkPlugin, checkRequirements, checkTool, checkTools, inOrder, refuse, type Plugin, type PluginHooks } from "./plugin.js";
import { requirement } from "./range.js";
import type { ChatRequest, ClientToolDefinition, ToolBehaviour, ToolContext, ToolExecutor, ToolRegistration } from "./types.js";

interface Tool {
  /** The plugin, or nothing for a tool that was registered alone. */
  owner: Plugin | undefined;
  definition: ClientToolDefinition;
  executor: ToolExecutor | undefined;
  behaviour: ToolBehaviour;
}

/** The plugins and tools of a client, in the order of their registration. */
export class Registry {
  readonly #plugins = new Map<string, Plugin>();
  readonly #tools = new Map<string, Tool>();
  readonly #log: (line: string, ...more: unknown[]) => void;
  readonly #welcomed = new WeakMap<Plugin, Promise<void>>();
  #settled: Promise<void> = Promise.resolve();
  #failures: unknown[] = [];

  constructor(log: (line: string, ...more: unknown[]) => void) {
    this.#log = log;
  }

  /**
   * Registers plugins. Faults that show at once are thrown; `onRegister` runs
   * in the background, one plugin after the other, and `ready` waits for it.
   */
  use(plugins: readonly Plugin[], client: ToolyardClient): void {
    plugins.forEach(checkPlugin);
    const added: Plugin[] = [];
    try {
      for (const plugin of inOrder(plugins)) {
        if (this.#plugins.has(plugin.name)) throw refuse(`Plugin "${plugin.name}" is already registered`);
        checkRequirements(plugin, (name) => this.#plugins.get(name)?.version);
        this.#refuseConflicts(plugin);
        this.#plugins.set(plugin.name, plugin);
        this.#collect(plugin);
        added.push(plugin);
      }
    } catch (thrown) {
      // All of them, or none.
      added.forEach((plugin) => this.#remove(plugin));
      throw thrown;
    }
    for (const plugin of added) {
      this.#log(`plugin ${plugin.name}@${plugin.version} registered`);
      if (!plugin.hooks?.onRegister) continue;
      this.#settled = this.#settled.then(() => this.#welcome(plugin, client));
      this.#welcomed.set(plugin, this.#settled);
    }
  }

  async #welcome(plugin: Plugin, client: ToolyardClient): Promise<void> {
    if (this.#plugins.get(plugin.name) !== plugin) return;
    try {
      this.#log(`plugin ${plugin.name}: onRegister`);
      await plugin.hooks?.onRegister?.call(self(plugin), client);
      this.refresh(plugin.name);
    } catch (thrown) {
      this.#log(`plugin ${plugin.name} failed to register`, thrown);
      this.#remove(plugin);
      this.#failures.push(thrown);
      await this.#farewell(plugin);
    }
  }

  /** Reads the tools of a plugin again, which it may have changed. */
  refresh(name: string): void {
    const plugin = this.#plugins.get(name);
    if (!plugin) return;
    checkTools(plugin);
    checkExecutors(plugin);
    this.#refuseConflicts(plugin);
    this.#collect(plugin);
  }

  /** Waits for every `onRegister`, whatever became of it. */
  async settled(): Promise<void> {
    for (let before; before !== this.#settled; ) await (before = this.#settled);
  }

  /** Waits for the plugin of a tool; for all, if nobody has brought the tool yet. */
  async readyFor(name: string): Promise<void> {
    const tool = this.#tools.get(name);
    if (!tool) await this.settled();
    else if (tool.owner) await this.#welcomed.get(tool.owner);
  }

  /** The same as `settled`; what failed is thrown, once. */
  async ready(): Promise<void> {
    await this.settled();
    const [first] = this.#failures;
    if (this.#failures.length === 0) return;
    this.#failures = [];
    throw first;
  }

  registerTool({ name, description, parameters, execute, ...rest }: ToolRegistration): void {
    const { timeoutMs, idempotent, ...more } = rest;
    const definition = { name, description, parameters, ...more };
    checkTool(definition);
    if (typeof execute !== "function") throw refuse(`Tool "${name}" must have an execute function`);
    if (this.#tools.has(name)) throw refuse(`Tool "${name}" is already registered`);
    const behaviour: ToolBehaviour = {};
    if (timeoutMs !== undefined) behaviour.timeoutMs = timeoutMs;
    if (idempotent !== undefined) behaviour.idempotent = idempotent;
    this.#tools.set(name, { owner: undefined, definition, executor: execute, behaviour });
    this.#log(`tool ${name} registered`);
  }

  unregisterTool(name: string): boolean {
    return this.#tools.get(name)?.owner === undefined && this.#tools.delete(name);
  }

  async unuse(name: string): Promise<void> {
    const plugin = this.#plugins.get(name);
    if (!plugin) throw refuse(`Plugin "${name}" is not registered`);
    for (const other of this.#plugins.values()) {
      if (other !== plugin && other.requires?.some((text) => requirement(text).name === name)) {
        throw refuse(`Plugin "${name}" is required by "${other.name}"`);
      }
    }
    this.#remove(plugin);
    this.#log(`plugin ${name} unregistered`);
    // A connection that is still being made must not outlive its plugin.
    await this.#settled;
    await plugin.hooks?.onUnregister?.call(self(plugin));
  }

  has(name: string): boolean {
    return this.#plugins.has(name);
  }

  get names(): string[] {
    return [...this.#plugins.keys()];
  }

  get definitions(): ClientToolDefinition[] {
    return [...this.#tools.values()].map((tool) => tool.definition);
  }

  /** Whether this process has code for a tool. */
  hasExecutor(name: string): boolean {
    return this.#tools.get(name)?.executor !== undefined;
  }

  behaviour(name: string): ToolBehaviour {
    return this.#tools.get(name)?.behaviour ?? {};
  }

  /** Runs a tool's own executor. */
  async execute(like: ToolCallLike, context: ToolContext): Promise<unknown> {
    const call = toolCallOf(like);
    const executor = this.#tools.get(call.toolName)?.executor;
    if (!executor) throw new ToolyardError("tool_not_found", `No executor for tool: ${call.toolName}`);
    this.#log(`tool ${call.toolName} runs`, call.args);
    return executor(call.args, context);
  }

  /** Asks the plugins' `onToolCall`, in order, until one knows the call. */
  async askHooks(call: ToolCall): Promise<unknown> {
    for (const [plugin, hook] of this.#hooks("onToolCall")) {
      const answer = await hook.call(self(plugin), call);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  get hasToolHooks(): boolean {
    return this.#hooks("onToolCall").length > 0;
  }

  async beforeRequest(request: ChatRequest): Promise<ChatRequest> {
    for (const [plugin, hook] of this.#hooks("beforeRequest")) {
      this.#log(`plugin ${plugin.name}: beforeRequest`);
      // A hook that changes the request in place and answers nothing means that.
      request = (await hook.call(self(plugin), request)) ?? request;
    }
    return request;
  }

  async afterResponse(response: ChatResponse): Promise<void> {
    for (const [plugin, hook] of this.#hooks("afterResponse")) {
      this.#log(`plugin ${plugin.name}: afterResponse`);
      await hook.call(self(plugin), response);
    }
  }

  #hooks<Name extends keyof PluginHooks>(name: Name): [Plugin, NonNullable<PluginHooks[Name]>][] {
    const found: [Plugin, NonNullable<PluginHooks[Name]>][] = [];
    for (const plugin of this.#plugins.values()) {
      const hook = plugin.hooks?.[name];
      if (hook) found.push([plugin, hook as NonNullable<PluginHooks[Name]>]);
    }
    return found;
  }

  #refuseConflicts(plugin: Plugin): void {
    for (const { name } of plugin.tools ?? []) {
      const taken = this.#tools.get(name);
      if (!taken || taken.owner === plugin) continue;
      const other = taken.owner ? `tool from plugin "${taken.owner.name}"` : "a registered tool";
      throw refuse(`Plugin "${plugin.name}": Tool "${name}" conflicts with ${other}`);
    }
  }

  #collect(plugin: Plugin): void {
    const now = new Set(plugin.tools?.map((tool) => tool.name));
    for (const [name, tool] of this.#tools) if (tool.owner === plugin && !now.has(name)) this.#tools.delete(name);
    for (const definition of plugin.tools ?? []) {
      const { name } = definition;
      const executor = own(plugin.executors, name);
      this.#tools.set(name, { owner: plugin, definition, executor, behaviour: own(plugin.behaviour, name) ?? {} });
    }
  }

  #remove(plugin: Plugin): void {
    this.#plugins.delete(plugin.name);
    for (const [name, tool] of this.#tools) if (tool.owner === plugin) this.#tools.delete(name);
  }

  async #farewell(plugin: Plugin): Promise<void> {
    try {
      await plugin.hooks?.onUnregister?.call(self(plugin));
    } catch (thrown) {
      this.#log(`plugin ${plugin.name}: onUnregister failed`, thrown);
    }
  }
}

function own<Value>(table: Record<string, Value> | undefined, name: string): Value | undefined {
  return table && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** `this` of a hook: its plugin, unless the hooks are an object of a class. */
function self(plugin: Plugin): Plugin {
  const { hooks } = plugin;
  return hooks && Object.getPrototypeOf(hooks) !== Object.prototype ? (hooks as unknown as Plugin) : plugin;
}
