import type { ClientToolDefinition, FunctionParameters, Risk } from "@toolyard/client";
import { Store } from "../store.js";
import { riskOf } from "./risk.js";
import { selectionKey, type SelectionStore } from "./selection.js";
import { definitionOf, runnableOf, type PageTools, type Runnable } from "./tool.js";

/** Where tools of the page come from: the page itself, a plugin, an MCP service. */
export interface ToolSource {
  serviceId: string;
  /** Sources with one id take each other's place; the service's id if missing. */
  id?: string;
  /** For people; the id if missing. */
  title?: string;
  tools: PageTools;
}

/** A tool that the page may offer. */
export interface RegistryTool {
  /** `<serviceId>:<toolName>`, its name in a selection. */
  key: string;
  serviceId: string;
  /** As its service calls it. */
  toolName: string;
  /** As the model calls it: with its service in front if two services share a name. */
  name: string;
  description: string;
  /** Missing if the gateway does not show it to users. */
  parameters: FunctionParameters | undefined;
  riskLevel: Risk;
  selected: boolean;
  /** Who brings it: this page, or the agent on the gateway. */
  from: "page" | "gateway";
  /** `executionTarget` and `place` of a tool of the gateway. */
  place: string;
}

/** The tools of one service, with counts. */
export interface RegistryService {
  serviceId: string;
  title: string;
  tools: readonly RegistryTool[];
  selected: number;
}

export interface RegistryView {
  tools: readonly RegistryTool[];
  services: readonly RegistryService[];
}

/** A tool that an agent has on the gateway, as `GET /api/tools` tells it. */
export interface GatewayTool {
  /** `<service>:<tool>`, or its name. */
  key: string;
  name: string;
  description: string;
  serviceId?: string;
  inputSchema?: FunctionParameters;
  place: string;
  executionTarget: "server" | "client" | "external";
  riskLevel: Risk;
  visibility: "private" | "public";
  category?: string;
  deprecated?: string;
  approval?: "allow" | "ask" | "deny";
  connected?: boolean;
}

/** The service of an agent's tools that come from no MCP server. */
export const GATEWAY_SERVICE = "gateway";

/** The service of the tools that the page itself brings. */
export const PAGE_SERVICE = "page";

interface Offered {
  source: ToolSource;
  toolName: string;
  entry: RegistryTool;
}

/** The tools of this page: what is offered with a request, and who runs a call. */
export class ToolRegistry {
  readonly #sources = new Map<string, ToolSource>();
  readonly #selection: SelectionStore;
  readonly #view = new Store<RegistryView>({ tools: [], services: [] });
  #offered: Offered[] = [];
  #gateway: readonly GatewayTool[] = [];
  #text = "";

  constructor(selection: SelectionStore) {
    this.#selection = selection;
  }

  readonly get = (): RegistryView => this.#view.get();

  readonly subscribe = (listener: () => void): (() => void) => {
    const offs = [this.#view.subscribe(listener), this.#selection.subscribe(() => this.#list())];
    this.#list();
    return () => offs.forEach((off) => off());
  };

  /** Adds a source, or puts it in the place of the one with its id. The answer takes it away. */
  register(source: ToolSource): () => void {
    const id = source.id ?? source.serviceId;
    this.#sources.set(id, source);
    this.#list();
    return () => {
      if (this.#sources.get(id) !== source) return;
      this.#sources.delete(id);
      this.#list();
    };
  }

  /** What the next request offers. */
  definitions(): ClientToolDefinition[] {
    this.#list();
    return this.#offered.flatMap(({ source, toolName, entry }) => {
      const tool = source.tools[toolName];
      if (!entry.selected || !tool || typeof tool === "function") return [];
      const definition = definitionOf(entry.name, tool);
      // The gateway judges a tool with a service as one of an MCP server.
      return [entry.serviceId === PAGE_SERVICE ? definition : { ...definition, serviceId: entry.serviceId }];
    });
  }

  /** Takes what an agent has on the gateway, so that people may deselect it. */
  setGatewayTools(tools: readonly GatewayTool[]): void {
    this.#gateway = tools;
    this.#list();
  }

  /** The agent's tools that people deselected, also those that nobody has listed here. */
  excluded(): string[] {
    const own = new Set(this.#offered.map(({ entry }) => entry.key));
    const services = new Set([PAGE_SERVICE, ...[...this.#sources.values()].map((source) => source.serviceId)]);
    return Object.entries(this.#selection.get()).flatMap(([key, selected]) => {
      const service = key.slice(0, Math.max(key.indexOf(":"), 0));
      if (selected || own.has(key) || services.has(service)) return [];
      return [service === GATEWAY_SERVICE ? key.slice(service.length + 1) : key];
    });
  }

  /** Whoever runs a call. A tool that was called before it was deselected still runs. */
  runnable(name: string): Runnable | undefined {
    const offered = this.#offered.find(({ entry }) => entry.name === name);
    if (offered) return runnableOf(offered.source.tools, offered.toolName);
    for (const { tools } of [...this.#sources.values()].reverse()) {
      if (typeof tools[name] !== "function") continue;
      const found = runnableOf(tools, name);
      if (found) return found;
    }
    return undefined;
  }

  #list(): void {
    const taken = new Set<string>();
    this.#offered = [];
    for (const source of this.#sources.values()) {
      for (const [toolName, tool] of Object.entries(source.tools)) {
        if (typeof tool === "function") continue;
        const serviceId = tool.serviceId ?? source.serviceId;
        const key = selectionKey(serviceId, toolName);
        const before = this.#offered.find(({ entry }) => entry.key === key);
        // The same tool of the same service again: the later one counts.
        this.#offered = this.#offered.filter((each) => each !== before);
        const name = before?.entry.name ?? freeName(taken, serviceId, toolName);
        taken.add(name);
        const { description, parameters, risk } = tool;
        const selected = this.#selection.isSelected(key);
        const entry = { key, serviceId, toolName, name, description, parameters, riskLevel: riskOf(toolName, risk), selected, from: "page" as const, place: "page" };
        this.#offered.push({ source, toolName, entry });
      }
    }
    const tools = [...this.#offered.map(({ entry }) => entry), ...this.#gatewayEntries()];
    // Components hear of it only if something is different.
    const text = JSON.stringify(tools);
    if (text === this.#text) return;
    this.#text = text;
    this.#view.set({ tools, services: this.#services(tools) });
  }

  #gatewayEntries(): RegistryTool[] {
    return this.#gateway.map(({ key: own, name, description, serviceId = GATEWAY_SERVICE, inputSchema, riskLevel, place }) => {
      const toolName = own.includes(":") ? own.slice(own.indexOf(":") + 1) : own;
      const key = selectionKey(serviceId, toolName);
      const selected = this.#selection.isSelected(key);
      return { key, serviceId, toolName, name, description, parameters: inputSchema, riskLevel, selected, from: "gateway", place };
    });
  }

  #services(tools: readonly RegistryTool[]): RegistryService[] {
    const titles = new Map([...this.#sources.values()].map(({ serviceId, title }) => [serviceId, title ?? serviceId]));
    titles.set(GATEWAY_SERVICE, "Gateway");
    const ids = [...new Set(tools.map((tool) => tool.serviceId))];
    return ids.map((serviceId) => {
      const own = tools.filter((tool) => tool.serviceId === serviceId);
      const title = titles.get(serviceId) ?? serviceId;
      return { serviceId, title, tools: own, selected: own.filter((tool) => tool.selected).length };
    });
  }
}

/** A name that no other tool of the page has; the gateway takes 64 letters, digits and underscores. */
function freeName(taken: ReadonlySet<string>, serviceId: string, toolName: string): string {
  const plain = toolName.replace(/[^A-Za-z0-9_]/g, "_").replace(/^(?=[^A-Za-z])/, "t").slice(0, 64);
  if (!taken.has(plain)) return plain;
  const long = `${serviceId}_${plain}`.replace(/[^A-Za-z0-9_]/g, "_").replace(/^(?=[^A-Za-z])/, "s").slice(0, 60);
  for (let at = 1; ; at += 1) {
    const name = at === 1 ? long : `${long}_${at}`;
    if (!taken.has(name)) return name;
  }
}
