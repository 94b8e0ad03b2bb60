/** The key of this page. It comes from the gateway, or from the person. */

const STORED = "toolyard_session";

export interface Session {
  key: string;
  defaultAgent: string;
  mode: "development" | "production";
}

/** The gateway gives this page no key by itself. */
export class NeedsKey extends Error {}

let current: Session | undefined;
let asking: Promise<Session> | undefined;

/** The key that requests carry now. */
export function keyNow(): string {
  return current?.key ?? "";
}

function stored(): Session | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(STORED) ?? "null") as Session | null;
    return kept && typeof kept.key === "string" ? kept : undefined;
  } catch {
    return undefined;
  }
}

function keep(session: Session): Session {
  current = session;
  localStorage.setItem(STORED, JSON.stringify(session));
  return session;
}

/** The code of an address that the gateway printed. It is good once, so it leaves the address. */
function takeCode(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? undefined;
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

async function ask(code?: string): Promise<Session> {
  const response = await fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(code ? { code } : {}),
  });
  if (response.status === 401) throw new NeedsKey("This page needs a key.");
  if (!response.ok) throw new Error(`The gateway answered ${response.status}.`);
  return keep((await response.json()) as Session);
}

/** The session of this browser, made if there is none. */
export async function openSession(): Promise<Session> {
  const code = takeCode();
  current = code ? undefined : stored();
  return current ?? renewSession(code);
}

/** Another key, because the gateway does not know the one that was used. */
export async function renewSession(code?: string, refused?: string): Promise<Session> {
  // Another request, or another tab, was quicker.
  const kept = stored();
  if (refused !== undefined && kept && kept.key !== refused) return (current = kept);
  asking ??= ask(code).finally(() => (asking = undefined));
  return asking;
}

/** Uses a key that somebody typed, if the gateway takes it. */
export async function enterKey(key: string): Promise<Session> {
  const response = await fetch("/api/tools", { headers: { "x-secret-key": key } });
  if (response.status === 401) throw new Error("The gateway does not know this key.");
  if (!response.ok) throw new Error(`The gateway answered ${response.status}.`);
  const { agent } = (await response.json()) as { agent: string };
  return keep({ key, defaultAgent: agent, mode: "production" });
}

export function leaveSession(): void {
  localStorage.removeItem(STORED);
  current = undefined;
}
