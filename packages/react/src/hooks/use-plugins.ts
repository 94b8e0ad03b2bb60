import { useCallback, useEffect, useState } from "react";
import { useSession } from "../context.js";
import type { BrowserPlugin } from "../plugins/store.js";
import { useStore } from "../store.js";

/** A plugin of the gateway. */
export interface GatewayPlugin {
  id: string;
  installed: {
    id: string;
    version: string;
    /** Their names. */
    tools: readonly string[];
    /** Enough curators signed it, and all of that still holds. */
    verified: boolean;
    curators: readonly string[];
    /** It may run now; `why` says why not. */
    usable: boolean;
    why?: string;
    /** For people, if nobody signed it. */
    warning?: string;
    installedAt: string;
  } | null;
  /** The newest first; for backends. */
  versions: readonly { version: string; state: string; note: string }[];
}

export interface Plugins {
  /** Plugins of this browser. Their code runs in a sandbox. */
  installed: readonly BrowserPlugin[];
  /** Installs into this browser. Throws what is wrong with the plugin. */
  install(plugin: BrowserPlugin): void;
  uninstall(id: string): void;
  setEnabled(id: string, enabled: boolean): void;
  hasExecutor(name: string): boolean;
  /** Runs a plugin's tool; `undefined` if no plugin has it. */
  execute(name: string, args: unknown): Promise<unknown>;
  /** Plugins of the gateway, and who vouches for them. */
  available: readonly GatewayPlugin[];
  isLoading: boolean;
  error: Error | undefined;
  refresh(): Promise<void>;
}

/** The plugins of this browser, and those of the gateway. */
export function usePlugins(): Plugins {
  const { plugins, client } = useSession();
  const installed = useStore(plugins);
  const [available, setAvailable] = useState<readonly GatewayPlugin[]>([]);
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<Error>();
  const refresh = useCallback(async () => {
    setLoading(true);
    try {
      setAvailable((await client.request<{ plugins: GatewayPlugin[] }>("GET", "/api/plugins", { query: { limit: 200 } })).plugins);
      setError(undefined);
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
    } finally {
      setLoading(false);
    }
  }, [client]);
  useEffect(() => void refresh(), [refresh]);
  const { install, uninstall, setEnabled, hasExecutor, executeClientTool: execute } = plugins;
  return { installed, install, uninstall, setEnabled, hasExecutor, execute, available, isLoading, error, refresh };
}
