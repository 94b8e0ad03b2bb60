/** What a person does in a chat: begin it, speak, change their mind, stop. */
import type { ClientToolDefinition } from "@toolyard/client";
import { gateway, post, put, startAnswer } from "../api/gateway.ts";
import { agentEntity, whoAmI } from "../api/people.ts";
import { touch } from "../lib/query.ts";

export interface Choice {
  agent: string;
  model?: string | undefined;
  /** Tools of this page that the agent may call. */
  clientTools: ClientToolDefinition[];
  /** Tools by their key that were switched off or on. */
  picks: Record<string, boolean>;
}

export interface Attached {
  id: string;
  name: string;
  mediaType: string;
}

/** What tabs were last told to offer, so that it is not told with each message. */
const told = new Map<string, string>();

async function tellPicks(spaceId: string, picks: Record<string, boolean>, entityId: string): Promise<void> {
  const text = JSON.stringify(picks);
  if ((told.get(spaceId) ?? "{}") === text) return;
  await put(`/api/smart-spaces/${spaceId}/tool-selection`, { entityId, tools: picks });
  told.set(spaceId, text);
}

/** A title out of the first words. */
export function titleOf(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 57)}…` : line || "New chat";
}

/** Begins a chat and says the first thing. Gives the space. */
export async function beginChat(text: string, choice: Choice, files: Attached[], title = titleOf(text)): Promise<string> {
  const [me, agent] = await Promise.all([whoAmI(), agentEntity(choice.agent)]);
  const space = await gateway.spaces.create({ name: title });
  await gateway.spaces.addMember(space.id, me.id, "admin");
  await gateway.spaces.addMember(space.id, agent.id);
  await say(space.id, text, choice, files);
  touch("spaces");
  return space.id;
}

export async function say(spaceId: string, text: string, choice: Choice, files: Attached[] = []): Promise<void> {
  const me = await whoAmI();
  await tellPicks(spaceId, choice.picks, me.id);
  const attached = files.map(({ id, name, mediaType }) => ({ type: "file", fileId: id, name, mediaType }));
  await gateway.spaces.post(spaceId, {
    parts: [...attached, ...(text ? [{ type: "text", text }] : [])],
    entityId: me.id,
    ...(choice.model ? { model: choice.model } : {}),
    ...(choice.clientTools.length > 0 ? { clientTools: choice.clientTools } : {}),
  });
}

async function again(spaceId: string, choice: Choice, more: Record<string, unknown>): Promise<void> {
  const me = await whoAmI();
  await tellPicks(spaceId, choice.picks, me.id);
  await startAnswer({
    id: spaceId,
    agent: choice.agent,
    entityId: me.id,
    ...(choice.model ? { model: choice.model } : {}),
    ...(choice.clientTools.length > 0 ? { clientTools: choice.clientTools } : {}),
    ...more,
  });
}

/** Another answer to the same message. */
export function retry(spaceId: string, messageId: string, choice: Choice): Promise<void> {
  return again(spaceId, choice, { trigger: "regenerate-message", messageId, messages: [] });
}

/** Another message in the place of one that was said. */
export function edit(spaceId: string, messageId: string, text: string, choice: Choice): Promise<void> {
  const message = { id: messageId, role: "user", parts: [{ type: "text", text }] };
  return again(spaceId, choice, { trigger: "submit-message", messageId, messages: [message] });
}

export async function stop(runId: string): Promise<void> {
  await post(`/api/runs/${runId}/cancel`, { reason: "Stopped by the person" });
}
