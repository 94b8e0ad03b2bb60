import type { ToolCall } from "./call.js";
import type { ChatResponse } from "./chat/response.js";
import type { ToolyardClient } from "./client.js";
import { isToolName } from "./definitions.js";
import { ToolyardError } from "./error.js";
import { inRange, requirement } from "./range.js";
import type { ChatRequest, ClientToolDefinition, ToolBehaviour, ToolExecutor } from "./types.js";

/** Points in the life of a plugin. Each may be async. */
export interface PluginHooks {
  /** The plugin is registered. Tools that it adds to `this.tools` here count. */
  onRegister?(this: Plugin, client: ToolyardClient): void | Promise<void>;
  /** Before each request; the answer is what is sent. */
  beforeRequest?(this: Plugin, request: ChatRequest): ChatRequest | Promise<ChatRequest>;
  /** After each response. */
  afterResponse?(this: Plugin, response: ChatResponse): void | Promise<void>;
  /** A tool shall run. `undefined` means "not mine". */
  onToolCall?(this: Plugin, call: ToolCall): Promise<unknown> | undefined;
  /** The plugin leaves. */
  onUnregister?(this: Plugin): void | Promise<void>;
}

/** A bundle of tools, their code, and hooks. */
export interface Plugin {
  name: string;
  version: string;
  tools?: ClientToolDefinition[];
  /** By tool name. */
  executors?: Record<string, ToolExecutor>;
  /** How tools behave in this process, by name. */
  behaviour?: Record<string, ToolBehaviour>;
  hooks?: PluginHooks;
  /** Plugins that must be there: `name@range`. */
  requires?: string[];
}

/** A plugin or a tool that cannot be registered. */
export function refuse(message: string): ToolyardError {
  return new ToolyardError("plugin_refused", message);
}

/** Checks what a plugin says of itself. */
export function checkPlugin(plugin: Plugin): void {
  if (!plugin.name) throw refuse("Plugin must have a name");
  if (!plugin.version) throw refuse(`Plugin "${plugin.name}" must have a version`);
  checkTools(plugin);
  // What `onRegister` discovers may bring the tools of executors that are here already.
  if (!plugin.hooks?.onRegister) checkExecutors(plugin);
}

/** Checks the tools that a plugin has now. */
export function checkTools({ name: plugin, tools = [] }: Plugin): void {
  const seen = new Set<string>();
  for (const tool of tools) {
    checkTool(tool, `Plugin "${plugin}": `);
    if (seen.has(tool.name)) throw refuse(`Plugin "${plugin}": Tool "${tool.name}" is defined twice`);
    seen.add(tool.name);
  }
}

/** Checks one tool. `owner` begins the sentence about it. */
export function checkTool({ name, description, parameters }: ClientToolDefinition, owner = ""): void {
  if (!isToolName(name)) {
    throw refuse(
      `${owner}Invalid tool name "${name}". Must start with a letter and contain only ` +
        "alphanumeric characters and underscores (max 64 chars).",
    );
  }
  if (!description) throw refuse(`${owner}Tool "${name}" must have a description`);
  if (parameters?.type !== "object") throw refuse(`${owner}Tool "${name}" parameters must be an object schema`);
}

/** Checks that each executor has its tool. */
export function checkExecutors({ name: plugin, tools = [], executors = {} }: Plugin): void {
  for (const name of Object.keys(executors)) {
    if (!tools.some((tool) => tool.name === name)) {
      throw refuse(`Plugin "${plugin}": Executor "${name}" has no matching tool definition`);
    }
  }
}

/** Checks that what a plugin requires is there, in a version that it can use. */
export function checkRequirements(plugin: Plugin, versionOf: (name: string) => string | undefined): void {
  for (const text of plugin.requires ?? []) {
    const { name, range } = requirement(text);
    const version = versionOf(name);
    if (version === undefined) throw refuse(`Plugin "${plugin.name}" requires "${text}", which is not registered`);
    if (!inRange(version, range)) {
      throw refuse(`Plugin "${plugin.name}" requires "${text}", but version ${version} is registered`);
    }
  }
}

/** Puts plugins behind those that they require. A circle is refused. */
export function inOrder(plugins: readonly Plugin[]): Plugin[] {
  const ordered: Plugin[] = [];
  const path: string[] = [];
  const visit = (plugin: Plugin) => {
    if (ordered.includes(plugin)) return;
    if (path.includes(plugin.name)) {
      const circle = [...path.slice(path.indexOf(plugin.name)), plugin.name];
      throw refuse(`Plugins require each other: ${circle.join(" -> ")}`);
    }
    path.push(plugin.name);
    for (const text of plugin.requires ?? []) {
      const needed = plugins.find((other) => other.name === requirement(text).name);
      if (needed) visit(needed);
    }
    path.pop();
    ordered.push(plugin);
  };
  plugins.forEach(visit);
  return ordered;
}
