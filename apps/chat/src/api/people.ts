/** Who talks here: the person at this gateway, and the agents. */
import { get, post } from "./gateway.ts";

export interface Entity {
  id: string;
  type: "human" | "agent" | "system";
  externalId?: string | null;
  displayName?: string | null;
  agentName?: string | null;
}

const ME = "web-app";
let me: Promise<Entity> | undefined;
const agents = new Map<string, Promise<Entity>>();

/** The person at this page. */
export function whoAmI(): Promise<Entity> {
  me ??= findMe().catch((thrown: unknown) => {
    me = undefined;
    throw thrown;
  });
  return me;
}

async function findMe(): Promise<Entity> {
  const found = await get<{ entities: Entity[] }>("/api/entities", { externalId: ME });
  if (found.entities[0]) return found.entities[0];
  try {
    const made = await post<{ entity: Entity }>("/api/entities", { type: "human", externalId: ME, displayName: "You" });
    return made.entity;
  } catch {
    // Another tab was quicker.
    const again = await get<{ entities: Entity[] }>("/api/entities", { externalId: ME });
    if (again.entities[0]) return again.entities[0];
    throw new Error("The gateway did not say who you are.");
  }
}

/** The entity that plays an agent in chats of this page. */
export function agentEntity(name: string): Promise<Entity> {
  const known = agents.get(name);
  if (known) return known;
  const found = findAgent(name).catch((thrown: unknown) => {
    agents.delete(name);
    throw thrown;
  });
  agents.set(name, found);
  return found;
}

async function findAgent(name: string): Promise<Entity> {
  const all = await get<{ entities: Entity[] }>("/api/entities", { type: "agent", limit: 200 });
  const found = all.entities.find((entity) => entity.agentName === name);
  if (found) return found;
  const { agent } = await get<{ agent: { id: string } }>(`/api/agents/${encodeURIComponent(name)}`);
  return (await post<{ entity: Entity }>("/api/entities/agent", { agentId: agent.id, displayName: name })).entity;
}
