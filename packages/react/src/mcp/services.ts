import type { McpEndpoint, McpTool } from "@toolyard/client/mcp-http";
import { Store } from "../store.js";
import type { ToolRegistry } from "../tools/registry.js";
import { onStorage, readStorage, writeStorage } from "../tools/selection.js";
import type { PageTools } from "../tools/tool.js";

/** Where the browser keeps its MCP services, with their tokens. */
export const MCP_SERVICES_KEY = "toolyard_mcp_services";

/** An MCP server that this browser calls itself. The gateway never learns its address or token. */
export interface McpService {
  /** The service's part of a tool's key; letters, digits and hyphens. */
  id: string;
  name: string;
  url: string;
  token?: string;
  /** Switched off by its user: kept, but not offered. */
  enabled?: boolean;
  /** As the server listed them last. */
  tools: McpTool[];
  /** When they were listed. */
  listedAt?: string;
}

/** What a person says of a service. */
export interface NewMcpService {
  name: string;
  url: string;
  token?: string | undefined;
}

/** Only pages that have a service need it. */
const speaker = () => import("@toolyard/client/mcp-http");

const RESERVED = new Set(["page", "gateway"]);

/**
 * The MCP services of this browser, in step with its storage. A call connects,
 * calls and disconnects with what the storage says at that moment.
 */
export class McpServiceStore {
  readonly #registry: ToolRegistry;
  readonly #store = new Store<readonly McpService[]>([]);
  #offered: (() => void)[] = [];
  #text: string | null = null;
  #followers = 0;
  #off: (() => void) | undefined;

  constructor(registry: ToolRegistry) {
    this.#registry = registry;
    this.#read(readStorage(MCP_SERVICES_KEY));
  }

  readonly get = (): readonly McpService[] => this.#store.get();
  readonly subscribe = (listener: () => void): (() => void) => this.#store.subscribe(listener);

  /** Follows the storage, so that what another tab adds is there. */
  follow(): () => void {
    if (this.#followers++ === 0) {
      this.#off = onStorage(MCP_SERVICES_KEY, (text) => this.#read(text));
      this.#read(readStorage(MCP_SERVICES_KEY));
    }
    return () => {
      if (--this.#followers === 0) this.#off?.();
    };
  }

  /** Asks a server for its tools, and keeps it if it answers. */
  readonly add = async ({ name, url, token }: NewMcpService): Promise<McpService> => {
    const title = name.trim();
    if (title === "") throw new Error("The service needs a name");
    if (!/^https?:\/\//i.test(url.trim()) || !URL.canParse(url.trim())) throw new Error("The address must begin with http:// or https://");
    const endpoint = { url: url.trim(), ...(token ? { token } : {}) };
    const tools = await (await speaker()).listMcpTools(endpoint);
    const service = { id: this.#freeId(title), name: title, ...endpoint, tools, listedAt: new Date().toISOString() };
    this.#write([...this.get(), service]);
    return service;
  };

  /** Asks a server for its tools again. */
  readonly refresh = async (id: string): Promise<void> => {
    const service = this.get().find((each) => each.id === id);
    if (!service) return;
    const tools = await (await speaker()).listMcpTools(endpointOf(service));
    this.#change(id, { tools, listedAt: new Date().toISOString() });
  };

  readonly remove = (id: string): void => this.#write(this.get().filter((each) => each.id !== id));
  readonly setEnabled = (id: string, enabled: boolean): void => this.#change(id, { enabled });

  #change(id: string, change: Partial<McpService>): void {
    this.#write(this.get().map((each) => (each.id === id ? { ...each, ...change } : each)));
  }

  #freeId(name: string): string {
    const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40) || "mcp";
    const taken = (id: string) => RESERVED.has(id) || this.get().some((each) => each.id === id);
    let id = plain;
    for (let at = 2; taken(id); at += 1) id = `${plain}-${at}`;
    return id;
  }

  #write(services: readonly McpService[]): void {
    const text = JSON.stringify(services);
    this.#read(text);
    writeStorage(MCP_SERVICES_KEY, text);
  }

  #read(text: string | null): void {
    if (text === this.#text) return;
    this.#text = text;
    const services = parse(text);
    this.#store.set(services);
    this.#offered.forEach((takeAway) => takeAway());
    this.#offered = services
      .filter((service) => service.enabled !== false)
      .map((service) => this.#registry.register({ serviceId: service.id, title: service.name, tools: this.#pageTools(service) }));
  }

  #pageTools({ id, tools }: McpService): PageTools {
    const entries = tools.map(({ name, description, parameters, isDestructive }) => {
      const execute: PageTools[string] = async (input: unknown, { signal, progress }) => {
        const service = this.get().find((each) => each.id === id);
        if (!service) throw new Error("Service configuration not found");
        const { callMcpTool } = await speaker();
        return (await callMcpTool(endpointOf(service), name, input, { signal, progress })) ?? null;
      };
      return [name, { description, parameters, execute, serviceId: id, ...(isDestructive ? { risk: "high" as const } : {}) }];
    });
    return Object.fromEntries(entries) as PageTools;
  }
}

function endpointOf({ url, token }: McpService): McpEndpoint {
  return { url, token };
}

/** What cannot be read counts as nothing; a faulty service is passed over alone. */
function parse(text: string | null): McpService[] {
  try {
    const value: unknown = text === null ? [] : JSON.parse(text);
    return Array.isArray(value) ? value.filter(isService) : [];
  } catch {
    return [];
  }
}

function isService(value: unknown): value is McpService {
  const { id, name, url, tools } = (value ?? {}) as Partial<McpService>;
  if (typeof id !== "string" || typeof name !== "string" || typeof url !== "string" || !Array.isArray(tools)) return false;
  return tools.every((tool) => typeof tool?.name === "string" && typeof tool.description === "string" && tool.parameters?.type === "object");
}
