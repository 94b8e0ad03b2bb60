/**
 * MCP servers behind an address, without the MCP packages: small enough for a
 * page, and free of code that a strict content security policy forbids. Each
 * function connects, asks and disconnects; nothing stays open in between.
 */
import { ToolyardError } from "../error.js";
import { isFields, parseJson, type Fields } from "../json.js";
import { eventsOf } from "../sse.js";
import type { FunctionParameters, ProgressReport } from "../types.js";
import { VERSION } from "../version.js";
import { valueOf } from "./result.js";
import { requestSchema } from "./schema.js";

/** Where a server is, and what it wants to see. */
export interface McpEndpoint {
  /** Its streamable HTTP endpoint. */
  url: string;
  /** Sent as a bearer token. */
  token?: string | undefined;
  headers?: Record<string, string> | undefined;
  /** Milliseconds for all of it: 60000. */
  timeoutMs?: number | undefined;
}

/** A tool, with a schema that a request may bring. */
export interface McpTool {
  name: string;
  description: string;
  parameters: FunctionParameters;
  /** The server says that it destroys something. */
  isDestructive: boolean;
}

interface Asking {
  signal?: AbortSignal | undefined;
  progress?: ((report: ProgressReport) => void) | undefined;
}

const PROTOCOL = "2025-06-18";
/** Pages of a list that are read at most. */
const PAGES = 100;
const TIMEOUT_MS = 60_000;

/** All tools of a server. */
export function listMcpTools(endpoint: McpEndpoint, asking: Asking = {}): Promise<McpTool[]> {
  return connected(endpoint, asking, async (session) => {
    const found: McpTool[] = [];
    let cursor: unknown;
    for (let page = 0; page < PAGES; page += 1) {
      const answer = await session.ask("tools/list", typeof cursor === "string" ? { cursor } : {});
      const tools = Array.isArray(answer["tools"]) ? answer["tools"] : [];
      for (const tool of tools) if (isFields(tool) && typeof tool["name"] === "string") found.push(toolOf(tool));
      cursor = answer["nextCursor"];
      if (typeof cursor !== "string" || cursor === "") break;
    }
    return found;
  });
}

/** Calls a tool by the server's own name for it. What the server calls an error is thrown. */
export function callMcpTool(endpoint: McpEndpoint, tool: string, args: unknown, asking: Asking = {}): Promise<unknown> {
  return connected(endpoint, asking, async (session) => {
    const params: Fields = { name: tool, arguments: args ?? {} };
    if (asking.progress) params["_meta"] = { progressToken: 1 };
    return valueOf(await session.ask("tools/call", params));
  });
}

function toolOf(tool: Fields): McpTool {
  const name = String(tool["name"]);
  const about = typeof tool["description"] === "string" ? tool["description"].trim() : "";
  const hints = isFields(tool["annotations"]) ? tool["annotations"] : {};
  return {
    name,
    description: (about || name).slice(0, 1024),
    parameters: requestSchema(tool["inputSchema"]),
    isDestructive: hints["destructiveHint"] === true,
  };
}

async function connected<Value>(endpoint: McpEndpoint, asking: Asking, work: (session: McpSession) => Promise<Value>): Promise<Value> {
  const { timeoutMs = TIMEOUT_MS } = endpoint;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new ToolyardError("network", `The MCP server did not answer within ${timeoutMs} ms`)), timeoutMs);
  const signal = asking.signal ? AbortSignal.any([asking.signal, late.signal]) : late.signal;
  const session = new McpSession(endpoint, signal, asking.progress);
  try {
    await session.open();
    return await work(session);
  } finally {
    clearTimeout(timer);
    session.close();
  }
}

class McpSession {
  readonly #endpoint: McpEndpoint;
  readonly #signal: AbortSignal;
  readonly #progress: Asking["progress"];
  #id: string | undefined;
  #version: string | undefined;
  #asked = 0;

  constructor(endpoint: McpEndpoint, signal: AbortSignal, progress: Asking["progress"]) {
    this.#endpoint = endpoint;
    this.#signal = signal;
    this.#progress = progress;
  }

  async open(): Promise<void> {
    const clientInfo = { name: "toolyard", version: VERSION };
    const answer = await this.ask("initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo });
    this.#version = typeof answer["protocolVersion"] === "string" ? answer["protocolVersion"] : PROTOCOL;
    const told = await this.#send({ jsonrpc: "2.0", method: "notifications/initialized" });
    await told.body?.cancel();
  }

  async ask(method: string, params: Fields): Promise<Fields> {
    this.#asked += 1;
    const id = this.#asked;
    const response = await this.#send({ jsonrpc: "2.0", id, method, params });
    this.#id ??= response.headers.get("mcp-session-id") ?? undefined;
    const answer = await this.#answerTo(id, response);
    const error = answer["error"];
    if (isFields(error)) throw new ToolyardError("http_error", String(error["message"] ?? "The MCP server refused"));
    return isFields(answer["result"]) ? answer["result"] : {};
  }

  /** Ends the session, if the server has one. Nobody waits for it. */
  close(): void {
    if (this.#id === undefined) return;
    void fetch(this.#endpoint.url, { method: "DELETE", headers: this.#headers(), keepalive: true }).catch(() => undefined);
  }

  #headers(): Record<string, string> {
    const { token, headers } = this.#endpoint;
    return {
      ...headers,
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(this.#id === undefined ? {} : { "mcp-session-id": this.#id }),
      ...(this.#version === undefined ? {} : { "mcp-protocol-version": this.#version }),
    };
  }

  async #send(message: Fields): Promise<Response> {
    const headers = { ...this.#headers(), "content-type": "application/json", accept: "application/json, text/event-stream" };
    let response: Response;
    try {
      response = await fetch(this.#endpoint.url, { method: "POST", headers, body: JSON.stringify(message), signal: this.#signal });
    } catch (thrown) {
      this.#signal.throwIfAborted();
      // A browser does not say which of these it is.
      const why = `The MCP server at ${originOf(this.#endpoint.url)} cannot be reached: it does not run, does not allow this page (CORS), or this page may not call it`;
      throw new ToolyardError("network", why, { cause: thrown });
    }
    if (response.ok) return response;
    const text = (await response.text().catch(() => "")).slice(0, 300);
    if (response.status === 401 || response.status === 403) throw new ToolyardError("http_error", "The MCP server wants another token");
    throw new ToolyardError("network", `The MCP server answered ${response.status}${text ? `: ${text}` : ""}`);
  }

  async #answerTo(id: number, response: Response): Promise<Fields> {
    if (!response.headers.get("content-type")?.includes("text/event-stream")) {
      const answer = parseJson(await response.text());
      // Servers of an older protocol answer in a batch.
      const found = (Array.isArray(answer) ? answer : [answer]).find((each) => isFields(each) && each["id"] === id);
      if (isFields(found)) return found;
      throw new ToolyardError("network", "The MCP server answered something that is not MCP");
    }
    if (!response.body) throw new ToolyardError("stream_cut", "The MCP server answered nothing");
    for await (const { data } of eventsOf(response.body, { signal: this.#signal })) {
      const message = parseJson(data);
      if (!isFields(message)) continue;
      if (message["id"] === id && !("method" in message)) return message;
      if (message["method"] === "notifications/progress") this.#tell(message["params"]);
    }
    this.#signal.throwIfAborted();
    throw new ToolyardError("stream_cut", "The MCP server ended before its answer");
  }

  #tell(params: unknown): void {
    if (!isFields(params) || !this.#progress) return;
    const { progress, total, message } = params;
    const fraction = typeof progress === "number" && typeof total === "number" && total > 0 ? { fraction: progress / total } : {};
    this.#progress({ ...fraction, ...(typeof message === "string" ? { message } : {}) });
  }
}

function originOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}
