import { readStorage } from "../tools/selection.js";

const KEY = "toolyard_spaces";
/** Conversations that a browser remembers. */
const KEPT = 200;

/**
 * Which space a conversation lies in. The gateway tells it with the first
 * answer; a page that is reloaded later finds its old messages by it.
 */
export function spaceOf(gatewayUrl: string, chatId: string): string | undefined {
  return chatId.startsWith("spc_") ? chatId : Object.fromEntries(entries())[name(gatewayUrl, chatId)];
}

export function rememberSpace(gatewayUrl: string, chatId: string, spaceId: string | undefined): void {
  if (chatId.startsWith("spc_")) return;
  const key = name(gatewayUrl, chatId);
  const others = entries().filter(([each]) => each !== key);
  const all = spaceId === undefined ? others : [...others, [key, spaceId]];
  try {
    localStorage.setItem(KEY, JSON.stringify(all.slice(-KEPT)));
  } catch {
    // Full or forbidden: old messages come when the first answer has.
  }
}

function name(gatewayUrl: string, chatId: string): string {
  return `${gatewayUrl} ${chatId}`;
}

function entries(): [string, string][] {
  try {
    const value: unknown = JSON.parse(readStorage(KEY) ?? "[]");
    return Array.isArray(value) ? value.filter((each) => Array.isArray(each) && typeof each[0] === "string" && typeof each[1] === "string") : [];
  } catch {
    return [];
  }
}
