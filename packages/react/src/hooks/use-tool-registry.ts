import type { ClientToolDefinition } from "@toolyard/client";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useSession } from "../context.js";
import { useStore } from "../store.js";
import type { GatewayTool, RegistryService, RegistryTool, ToolSource } from "../tools/registry.js";

export interface UseToolRegistryOptions {
  /** Also list what this agent has on the gateway. `true` means the provider's agent, or the default one. */
  agent?: string | true | undefined;
}

export interface RegisteredTools {
  /** All tools, also those that are not selected. */
  tools: readonly RegistryTool[];
  /** The same by service, with counts. */
  services: readonly RegistryService[];
  /** What the next request offers of this page's tools. */
  definitions: readonly ClientToolDefinition[];
  /** Adds the tools of a service, or replaces them. The answer takes them away. */
  register(source: ToolSource): () => void;
  /** Runs a tool of this page by hand; throws what it throws. */
  execute(name: string, input: unknown): Promise<unknown>;
  isLoading: boolean;
  error: Error | undefined;
  /** Reads the agent's tools again. */
  refresh(): Promise<void>;
}

/** The tools that an answer may use: the page's own, those of plugins and services, and the agent's. */
export function useToolRegistry({ agent }: UseToolRegistryOptions = {}): RegisteredTools {
  const session = useSession();
  const { registry } = session;
  const view = useStore(registry);
  const [isLoading, setLoading] = useState(agent !== undefined);
  const [error, setError] = useState<Error>();
  const refresh = useCallback(async () => {
    if (agent === undefined) return;
    setLoading(true);
    try {
      const name = agent === true ? session.options.agent : agent;
      const answer = await session.client.request<{ tools: GatewayTool[] }>("GET", "/api/tools", { query: { agent: name } });
      registry.setGatewayTools(answer.tools);
      setError(undefined);
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
    } finally {
      setLoading(false);
    }
  }, [session, registry, agent]);
  useEffect(() => void refresh(), [refresh]);
  const definitions = useMemo(() => registry.definitions(), [registry, view]);
  const register = useCallback((source: ToolSource) => registry.register(source), [registry]);
  const execute = useCallback(
    async (name: string, input: unknown) => {
      const runnable = registry.runnable(name);
      if (!runnable) throw new Error(`Tool not found: ${name}`);
      const stop = new AbortController();
      return runnable.execute(input, { toolCallId: "", toolName: name, runId: "", signal: stop.signal, progress: () => undefined });
    },
    [registry],
  );
  return { ...view, definitions, register, execute, isLoading, error, refresh };
}
