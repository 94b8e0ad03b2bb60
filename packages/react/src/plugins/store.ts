import { isToolName, type ClientToolDefinition, type FunctionParameters, type Risk } from "@toolyard/client";
import { Store } from "../store.js";
import type { ToolRegistry } from "../tools/registry.js";
import { onStorage, readStorage, writeStorage } from "../tools/selection.js";
import type { PageTools } from "../tools/tool.js";
import type { RunCode } from "./sandbox.js";

/** Where the browser keeps its plugins. */
export const PLUGINS_KEY = "toolyard_plugins";

/** A tool of a plugin, with its code. */
export interface BrowserPluginTool {
  name: string;
  description: string;
  parameters: FunctionParameters;
  /** The body of an async function of `args`. */
  executorCode: string;
  risk?: Risk;
  timeoutMs?: number;
}

/** A plugin that this browser holds. More fields of its document are kept as they are. */
export interface BrowserPlugin {
  id: string;
  name: string;
  version: string;
  description?: string;
  tools: BrowserPluginTool[];
  signature?: string;
  sourceUrl?: string;
  installedAt?: string;
  /** Switched off by its user: installed, but not offered. */
  enabled?: boolean;
  [more: string]: unknown;
}

/** How long plugin code runs, unless its tool says otherwise. */
const CODE_MS = 10_000;

/**
 * The plugins of this browser, in step with its storage. Their code runs in a
 * sandbox, never in the page, and is never sent to the gateway.
 */
export class PluginStore {
  readonly #registry: ToolRegistry;
  readonly #runCode: RunCode;
  readonly #store = new Store<readonly BrowserPlugin[]>([]);
  #offered: (() => void)[] = [];
  #text: string | null = null;
  #followers = 0;
  #off: (() => void) | undefined;

  constructor(registry: ToolRegistry, runCode: RunCode) {
    this.#registry = registry;
    this.#runCode = runCode;
    this.#read(readStorage(PLUGINS_KEY));
  }

  readonly get = (): readonly BrowserPlugin[] => this.#store.get();
  readonly subscribe = (listener: () => void): (() => void) => this.#store.subscribe(listener);

  /** Follows the storage, so that what another tab or the console installs is there. */
  follow(): () => void {
    if (this.#followers++ === 0) {
      this.#off = onStorage(PLUGINS_KEY, (text) => this.#read(text));
      this.#read(readStorage(PLUGINS_KEY));
    }
    return () => {
      if (--this.#followers === 0) this.#off?.();
    };
  }

  /** Installs a plugin, in the place of another version of it. */
  readonly install = (plugin: BrowserPlugin): void => {
    const { id, name, tools } = plugin ?? {};
    if (!id || !name || !Array.isArray(tools) || tools.length === 0) throw new Error("Invalid plugin: missing required fields");
    const others = this.get().filter((each) => each.id !== id);
    const taken = new Set(others.flatMap((each) => each.tools.map((tool) => tool.name)));
    for (const tool of tools) {
      if (!isToolName(tool?.name) || typeof tool.executorCode !== "string" || tool.parameters?.type !== "object") {
        throw new Error(`Invalid plugin: tool ${String(tool?.name)} needs a name, parameters and executorCode`);
      }
      if (taken.has(tool.name)) throw new Error(`Tool name conflict: ${tool.name} already exists`);
      taken.add(tool.name);
    }
    this.#write([...others, { ...plugin, installedAt: new Date().toISOString() }]);
  };

  readonly uninstall = (id: string): void => this.#write(this.get().filter((each) => each.id !== id));

  readonly setEnabled = (id: string, enabled: boolean): void => {
    this.#write(this.get().map((each) => (each.id === id ? { ...each, enabled } : each)));
  };

  /** A copy of what is installed. */
  readonly getInstalledPlugins = (): BrowserPlugin[] => structuredClone(this.get()) as BrowserPlugin[];

  /** What the gateway gets to know: never the code. */
  readonly getClientToolDefinitions = (): ClientToolDefinition[] => {
    return this.#tools().map(({ name, description, parameters }) => ({ name, description, parameters }));
  };

  readonly hasExecutor = (name: string): boolean => this.#tools().some((tool) => tool.name === name);

  /** Runs a plugin's tool; `undefined` if no plugin has it. */
  readonly executeClientTool = async (name: string, args: unknown): Promise<unknown> => {
    const tool = this.#tools().find((each) => each.name === name);
    return tool && this.#runCode(tool.executorCode, args, { timeoutMs: tool.timeoutMs ?? CODE_MS });
  };

  #tools(): BrowserPluginTool[] {
    return this.get().flatMap((plugin) => (plugin.enabled === false ? [] : plugin.tools));
  }

  #write(plugins: readonly BrowserPlugin[]): void {
    const text = JSON.stringify(plugins);
    this.#read(text);
    writeStorage(PLUGINS_KEY, text);
  }

  #read(text: string | null): void {
    if (text === this.#text) return;
    this.#text = text;
    const plugins = parse(text);
    this.#store.set(plugins);
    this.#offered.forEach((takeAway) => takeAway());
    this.#offered = plugins
      .filter((plugin) => plugin.enabled !== false)
      .map((plugin) => this.#registry.register({ serviceId: plugin.id, title: plugin.name, tools: this.#pageTools(plugin) }));
  }

  #pageTools(plugin: BrowserPlugin): PageTools {
    const entries = plugin.tools.map(({ name, description, parameters, executorCode, risk, timeoutMs = CODE_MS }) => {
      const execute = async (input: unknown, { signal }: { signal: AbortSignal }) => {
        return (await this.#runCode(executorCode, input, { timeoutMs, signal })) ?? null;
      };
      return [name, { description, parameters, execute, timeoutMs: timeoutMs + 1000, ...(risk === undefined ? {} : { risk }) }];
    });
    return Object.fromEntries(entries) as PageTools;
  }
}

/** What cannot be read counts as nothing; a faulty plugin is passed over alone. */
function parse(text: string | null): BrowserPlugin[] {
  try {
    const value: unknown = text === null ? [] : JSON.parse(text);
    return Array.isArray(value) ? value.filter(isPlugin) : [];
  } catch {
    return [];
  }
}

function isPlugin(value: unknown): value is BrowserPlugin {
  const { id, name, tools } = (value ?? {}) as Partial<BrowserPlugin>;
  if (typeof id !== "string" || typeof name !== "string" || !Array.isArray(tools)) return false;
  return tools.every((tool) => typeof tool?.name === "string" && typeof tool.executorCode === "string" && tool.parameters?.type === "object");
}
