import { path, type Door } from "../door.js";
import type { MessageView, RunView, Speaker } from "../protocol.js";
import type { ClientToolDefinition } from "../types.js";
import { idempotencyKey } from "./once.js";
import { Subscription, type SubscribeOptions } from "./subscription.js";

/** A conversation. */
export interface SpaceView {
  id: string;
  name?: string | null;
  description?: string | null;
  showAgentReasoning: boolean;
  lastSeq: number;
  createdAt: string;
}

/** A message to post. */
export interface NewMessage {
  content?: string;
  parts?: unknown[];
  /** Who speaks; only with a secret key. */
  entityId?: string;
  role?: Speaker;
  metadata?: unknown;
  triggerAgents?: boolean;
  model?: string;
  selectedToolCategories?: string[];
  /** Tools that the sender executes, for the runs that this message starts. */
  clientTools?: ClientToolDefinition[];
}

/** What a message did to the agents of its space. */
export interface MessagePosted {
  message: MessageView;
  runs: { runId: string | null; agentEntityId: string; disposition: string }[];
}

/** Conversations: `client.spaces`. */
export class Spaces {
  readonly #door: Door;

  constructor(door: Door) {
    this.#door = door;
  }

  async create(space: { name?: string; description?: string; showAgentReasoning?: boolean } = {}): Promise<SpaceView> {
    const asking = { body: space, headers: idempotencyKey(), repeatable: true };
    return (await this.#door.json<{ smartSpace: SpaceView }>("POST", "/api/smart-spaces", asking)).smartSpace;
  }

  async get(spaceId: string): Promise<SpaceView> {
    return (await this.#door.json<{ smartSpace: SpaceView }>("GET", path`/api/smart-spaces/${spaceId}`)).smartSpace;
  }

  async list(query: { limit?: number; before?: string; entityId?: string } = {}): Promise<SpaceView[]> {
    return (await this.#door.json<{ smartSpaces: SpaceView[] }>("GET", "/api/smart-spaces", { query })).smartSpaces;
  }

  async addMember(spaceId: string, entityId: string, role?: "member" | "admin"): Promise<void> {
    const asking = { body: { entityId, role }, headers: idempotencyKey(), repeatable: true };
    await this.#door.json("POST", path`/api/smart-spaces/${spaceId}/members`, asking);
  }

  /**
   * Messages in the space's order. `branch: "current"` gives only the line that
   * the space goes on with, without what edits and other answers left behind.
   */
  async messages(
    spaceId: string,
    query: { limit?: number; afterSeq?: number; beforeSeq?: number; branch?: "current" } = {},
  ): Promise<MessageView[]> {
    const found = await this.#door.json<{ messages: MessageView[] }>("GET", path`/api/smart-spaces/${spaceId}/messages`, { query });
    return found.messages;
  }

  /** Posts a message, once, also if the answer gets lost and it is sent again. */
  async post(spaceId: string, message: NewMessage | string): Promise<MessagePosted> {
    const body = typeof message === "string" ? { content: message } : message;
    const asking = { body, headers: idempotencyKey(), repeatable: true };
    return this.#door.json("POST", path`/api/smart-spaces/${spaceId}/messages`, asking);
  }

  async runs(spaceId: string, query: { limit?: number; status?: string } = {}): Promise<RunView[]> {
    return (await this.#door.json<{ runs: RunView[] }>("GET", path`/api/smart-spaces/${spaceId}/runs`, { query })).runs;
  }

  /**
   * Follows a space. It begins now, with the calls that wait for a client, and
   * comes back by itself when the connection breaks.
   */
  subscribe(spaceId: string, options: SubscribeOptions = {}): Subscription {
    return new Subscription(this.#door, path`/api/smart-spaces/${spaceId}/stream`, options);
  }
}
