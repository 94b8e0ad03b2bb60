import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ResultSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { messageOf, ToolyardError } from "../error.js";
import { isFields, type Fields } from "../json.js";
import type { ToolContext } from "../types.js";
import { VERSION } from "../version.js";
import { valueOf } from "./result.js";

/** A server that this program starts, or one behind an address. */
export interface McpServerConfig {
  /** Part of its tools' names. */
  name: string;
  /** The program, without a shell. */
  command?: string;
  args?: string[];
  /** Its variables, beside the harmless ones of this process. */
  env?: Record<string, string>;
  cwd?: string;
  /** Or the address of its streamable HTTP endpoint. */
  url?: string;
  headers?: Record<string, string>;
  /** The server's own names of the tools to offer; missing means all. */
  tools?: string[];
  /** Without it the bridge still works. */
  optional?: boolean;
  /** Milliseconds to start and list its tools: 30000. */
  startTimeoutMs?: number;
  /** Milliseconds of silence in a call: 60000. */
  timeoutMs?: number;
}

/** A tool as its server describes it. */
export interface ListedTool {
  name: string;
  description?: string;
  inputSchema?: unknown;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean };
}

/** Pages of a list that are read at most. */
const PAGES = 100;

/** One server: connected when it is needed, and again when it was lost. */
export class McpServer {
  readonly config: McpServerConfig;
  readonly #onChange: () => void;
  #client: Promise<Client> | undefined;
  #said = "";

  constructor(config: McpServerConfig, onChange: () => void) {
    this.config = config;
    this.#onChange = onChange;
    if (!config.command === !config.url) {
      throw new ToolyardError("plugin_refused", `MCP server "${config.name}" needs a command or a url`);
    }
  }

  /** All tools of the server, page by page. */
  async list(): Promise<ListedTool[]> {
    const client = await this.#connected();
    const found: ListedTool[] = [];
    let cursor: unknown;
    for (let page = 0; page < PAGES; page += 1) {
      const params = typeof cursor === "string" ? { cursor } : {};
      const answer: Fields = await client.request({ method: "tools/list", params }, ResultSchema, {
        timeout: this.config.startTimeoutMs ?? 30_000,
      });
      const tools = Array.isArray(answer["tools"]) ? answer["tools"] : [];
      for (const tool of tools) if (isFields(tool) && typeof tool["name"] === "string") found.push(tool as unknown as ListedTool);
      cursor = answer["nextCursor"];
      if (typeof cursor !== "string" || cursor === "") break;
    }
    const { tools } = this.config;
    return tools ? found.filter((tool) => tools.includes(tool.name)) : found;
  }

  /** Calls a tool by the server's own name for it. */
  async call(tool: string, args: Fields, { signal, progress }: Pick<ToolContext, "signal" | "progress">): Promise<unknown> {
    const client = await this.#connected();
    const answer = await client.request({ method: "tools/call", params: { name: tool, arguments: args } }, ResultSchema, {
      signal,
      timeout: this.config.timeoutMs ?? 60_000,
      resetTimeoutOnProgress: true,
      onprogress: ({ progress: done, total, message }) =>
        progress({ ...(total ? { fraction: done / total } : {}), ...(message === undefined ? {} : { message }) }),
    });
    return valueOf(answer);
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    await client?.close();
  }

  #connected(): Promise<Client> {
    return (this.#client ??= this.#connect());
  }

  async #connect(): Promise<Client> {
    const client = new Client({ name: "toolyard-client", version: VERSION });
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => this.#onChange());
    // The next call starts it again. A call that was under way is not repeated.
    client.onclose = () => (this.#client = undefined);
    try {
      await client.connect(await this.#transport(), { timeout: this.config.startTimeoutMs ?? 30_000 });
      return client;
    } catch (thrown) {
      this.#client = undefined;
      await client.close().catch(() => undefined);
      const said = this.#said.trim().slice(-500);
      const why = messageOf(thrown) + (said ? `\n${said}` : "");
      throw new ToolyardError("network", `MCP server "${this.config.name}" cannot be reached: ${why}`, { cause: thrown });
    }
  }

  async #transport(): Promise<Transport> {
    const { url, command = "", args = [], env, cwd, headers } = this.config;
    if (url !== undefined) {
      const init = headers ? { requestInit: { headers } } : {};
      // Its optional fields are typed more loosely than ours.
      return new StreamableHTTPClientTransport(new URL(url), init) as Transport;
    }
    // Browsers have no processes: they never come here.
    const { StdioClientTransport, getDefaultEnvironment } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const transport = new StdioClientTransport({
      command,
      args,
      env: { ...getDefaultEnvironment(), ...env },
      stderr: "pipe",
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#said = "";
    transport.stderr?.on("data", (piece: Uint8Array) => {
      this.#said = (this.#said + new TextDecoder().decode(piece)).slice(-4096);
    });
    return transport;
  }
}
