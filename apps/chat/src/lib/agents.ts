import { useState } from "react";
import { get } from "../api/gateway.ts";
import type { AgentRow } from "../api/types.ts";
import { chosen } from "./chosen.ts";
import { useQuery } from "./query.ts";

const KEY = "toolyard_agent";

/** Remembers an agent for the chats that begin in this tab. */
export function rememberAgent(name: string): void {
  sessionStorage.setItem(KEY, name);
}

/** The agents of the gateway, and the one to talk with. */
export function usePickedAgent(defaultAgent: string): { agents: AgentRow[]; none: boolean; agent: string; pick: (name: string) => void } {
  const listed = useQuery("agents", () => get<{ agents: AgentRow[] }>("/api/agents", { limit: 200 }), { mark: "agents" });
  const [picked, pick] = useState(() => sessionStorage.getItem(KEY) ?? defaultAgent);
  const agents = listed.data?.agents ?? [];
  return { agents, none: listed.data?.agents.length === 0, agent: chosen(agents, picked), pick };
}
