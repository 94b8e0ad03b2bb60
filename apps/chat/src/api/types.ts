/** What the gateway's lists hold, as far as this page shows it. */
import type { Frame, MessageView, RunView, WaitView } from "@toolyard/client";

export type { Frame, MessageView, RunView, WaitView };
export type Risk = "low" | "medium" | "high";

export interface Space {
  id: string;
  name?: string | null;
  lastSeq: number;
  createdAt: string;
}

export interface Model {
  id: string;
  name: string;
  provider: string;
  available: boolean;
}

export interface Tool {
  key: string;
  name: string;
  description: string;
  serviceId?: string;
  inputSchema?: Schema;
  place: string;
  executionTarget: "server" | "client" | "external";
  riskLevel: Risk;
  category?: string;
  deprecated?: string;
  approval?: "allow" | "ask" | "deny";
  uses?: { calls: number; failures: number };
}

export interface ToolList {
  agent: string;
  tools: Tool[];
  missing: { serviceId: string; needsLogin: boolean }[];
}

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  default?: unknown;
  items?: Schema;
}

export interface AgentRow {
  id: string;
  name: string;
  configHash: string;
  updatedAt: string;
}

export interface McpServer {
  name: string;
  transport: string;
  state: string;
  why?: string;
  tools: number;
  program?: string;
  protocol_version?: string;
  protocolVersion?: string;
}

export interface InstalledPlugin {
  id: string;
  version: string;
  tools: { name: string; description?: string }[];
  verified: boolean;
  curators: string[];
  /** Nobody switched it off. */
  enabled: boolean;
  usable: boolean;
  why?: string;
  warning?: string;
  installedAt: string;
}

export interface PluginRow {
  id: string;
  installed: InstalledPlugin | null;
  versions: { version: string; state: string }[];
}

/** The question of an approval. */
export interface Question {
  args?: Record<string, unknown>;
  argsHash?: string;
  description?: string;
  key?: string;
  risk?: Risk;
  toolName?: string;
  serviceId?: string;
}
