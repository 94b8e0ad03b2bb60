import { useSession } from "../context.js";
import type { McpService, NewMcpService } from "../mcp/services.js";
import { useStore } from "../store.js";

export interface McpServices {
  services: readonly McpService[];
  /** Asks a server for its tools and keeps it. Throws why it cannot be used. */
  add(service: NewMcpService): Promise<McpService>;
  remove(id: string): void;
  setEnabled(id: string, enabled: boolean): void;
  /** Asks a server for its tools again: a test of the connection too. */
  refresh(id: string): Promise<void>;
}

/**
 * MCP servers that this browser calls itself: address and token stay in its
 * storage, and each call connects, calls and disconnects.
 */
export function useMcpServices(): McpServices {
  const { mcp } = useSession();
  const services = useStore(mcp);
  const { add, remove, setEnabled, refresh } = mcp;
  return { services, add, remove, setEnabled, refresh };
}
