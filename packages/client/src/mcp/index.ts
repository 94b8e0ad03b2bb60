import { safeValidateToolDefinitions } from "../definitions.js";
import { messageOf } from "../error.js";
import type { Plugin } from "../plugin.js";
import type { ClientToolDefinition, ToolContext } from "../types.js";
import { nameTools } from "./naming.js";
import { requestSchema } from "./schema.js";
import { McpServer, type ListedTool, type McpServerConfig } from "./server.js";

export type { McpServerConfig } from "./server.js";

export interface McpPluginOptions {
  /** A plain name stands for the program `mcp-server-<name>`. */
  servers: (McpServerConfig | string)[];
  /** The plugin's name, for programs with two bridges. */
  name?: string;
  /** Told of servers that are left out, and of tools that no request could bring. */
  onWarning?: (message: string) => void;
}

const MAX_DESCRIPTION = 1024;

/**
 * A bridge to MCP servers: their tools become tools of this client, named
 * `mcp_<server>_<tool>`. The servers run beside this program, so the gateway
 * needs no way to reach them.
 */
export function mcpPlugin(options: McpPluginOptions): Plugin {
  const { name = "mcp-bridge", onWarning = (message: string) => console.warn(`toolyard: ${message}`) } = options;
  let changed: () => void = () => undefined;
  const servers = options.servers.map((given) => {
    const config = typeof given === "string" ? { name: given, command: `mcp-server-${given}` } : given;
    return new McpServer(config, () => changed());
  });
  const routes = new Map<string, { server: McpServer; tool: string }>();
  const call = (toolName: string, args: Record<string, unknown>, context: Pick<ToolContext, "signal" | "progress">) => {
    const route = routes.get(toolName);
    return route?.server.call(route.tool, args, context);
  };

  async function discover(plugin: Plugin): Promise<void> {
    const lists = await Promise.all(servers.map((server) => listOf(server, onWarning)));
    const all = lists.flatMap((tools, at) => tools.map((tool) => ({ tool, server: servers[at] as McpServer })));
    const names = await nameTools(all.map(({ tool, server }) => ({ server: server.config.name, tool: tool.name })));
    routes.clear();
    const tools: ClientToolDefinition[] = [];
    all.forEach(({ tool, server }, at) => {
      const definition = definitionOf(names[at]?.name ?? "", server.config.name, tool);
      const checked = safeValidateToolDefinitions([definition], { names: "chat" });
      if (!checked.success) return onWarning(`MCP server "${server.config.name}": ${checked.errors.join("; ")}`);
      tools.push(definition);
      routes.set(definition.name, { server, tool: tool.name });
    });
    plugin.tools = tools;
    plugin.executors = Object.fromEntries(
      tools.map((tool) => [tool.name, async (args, context) => call(tool.name, args, context)]),
    );
  }

  const plugin: Plugin = {
    name,
    version: "1.0.0",
    tools: [],
    executors: {},
    hooks: {
      async onRegister(client) {
        await discover(plugin);
        changed = () =>
          void discover(plugin)
            .then(() => client.refreshPlugin(name))
            .catch((thrown: unknown) => onWarning(`the tools of ${name} could not be read again: ${messageOf(thrown)}`));
      },
      onToolCall({ toolName, args }) {
        return call(toolName, args, { signal: new AbortController().signal, progress: () => undefined });
      },
      async onUnregister() {
        changed = () => undefined;
        await Promise.all(servers.map((server) => server.close()));
      },
    },
  };
  return plugin;
}

async function listOf(server: McpServer, onWarning: (message: string) => void): Promise<ListedTool[]> {
  try {
    return await server.list();
  } catch (thrown) {
    if (!server.config.optional) throw thrown;
    onWarning(messageOf(thrown));
    return [];
  }
}

function definitionOf(name: string, server: string, tool: ListedTool): ClientToolDefinition {
  const about = (tool.description ?? "").replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (sign) => (/[\n\t]/.test(sign) ? sign : ""));
  const definition: ClientToolDefinition = {
    name,
    description: [...(about.trim() || `${tool.name} of ${server}`)].slice(0, MAX_DESCRIPTION).join(""),
    parameters: requestSchema(tool.inputSchema),
    // The gateway asks people for such tools as it does for its own MCP servers.
    serviceId: server,
  };
  if (tool.annotations?.destructiveHint === true) definition["risk"] = "high";
  return definition;
}
