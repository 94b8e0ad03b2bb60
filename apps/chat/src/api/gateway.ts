/** The one client of this page. Every request of every view goes through it. */
import { storageOutcomes, ToolyardClient } from "@toolyard/client";
import { keyNow, renewSession } from "./session.ts";

/** Sends with the key of the page, and once more with a new one if it is not known. */
async function send(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const key = keyNow();
  const response = await fetch(input, withKey(init, key));
  if (response.status !== 401) return response;
  const { key: next } = await renewSession(undefined, key).catch(() => ({ key }));
  return next === key ? response : fetch(input, withKey(init, next));
}

function withKey(init: RequestInit, key: string): RequestInit {
  const headers = new Headers(init.headers);
  if (key) headers.set("x-secret-key", key);
  return { ...init, headers };
}

export const gateway = new ToolyardClient({
  baseUrl: location.origin,
  fetch: send,
  retries: 2,
  outcomes: storageOutcomes(),
});

/** A tab has one name, also after a reload: what it began it may finish. */
export function clientId(): string {
  const kept = sessionStorage.getItem("toolyard_client");
  if (kept) return kept;
  // `randomUUID` is missing on addresses without TLS.
  const made = `web_${Array.from(crypto.getRandomValues(new Uint8Array(10)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  sessionStorage.setItem("toolyard_client", made);
  return made;
}

export const get = <Answer>(route: string, query: Record<string, string | number | undefined> = {}) =>
  gateway.request<Answer>("GET", route, { query });
export const post = <Answer>(route: string, body: unknown = {}) => gateway.request<Answer>("POST", route, { body });
export const put = <Answer>(route: string, body: unknown) => gateway.request<Answer>("PUT", route, { body });
export const patch = <Answer>(route: string, body: unknown) => gateway.request<Answer>("PATCH", route, { body });
export const remove = (route: string) => gateway.request<undefined>("DELETE", route);

/** Uploads bytes. The client itself speaks JSON only. */
export async function upload<Answer>(route: string, file: File): Promise<Answer> {
  const response = await send(route, {
    method: "POST",
    headers: { "content-type": file.type || "application/octet-stream", "x-filename": encodeURIComponent(file.name) },
    body: file,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(messageIn(text) ?? `The gateway answered ${response.status}.`);
  return JSON.parse(text) as Answer;
}

/** Starts an answer and leaves it to the stream of the space to show it. */
export async function startAnswer(body: Record<string, unknown>): Promise<void> {
  const response = await send("/api/chat", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error((await response.text()) || `The gateway answered ${response.status}.`);
  // Nobody reads here; the run goes on.
  await response.body?.cancel();
}

function messageIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}
