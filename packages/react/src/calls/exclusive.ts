/** How long the holder of a name has to say so. */
const ANSWER_MS = 200;
const CHANNEL = "toolyard-calls";

interface Said {
  say: "ask" | "held" | "free";
  name: string;
  from: string;
}

/**
 * Works while no other tab of this browser works under the same name. Tabs
 * that vanish let go.
 */
export function exclusively<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  if (typeof navigator !== "undefined" && navigator.locks) {
    return navigator.locks.request(`toolyard:${name}`, work) as Promise<Value>;
  }
  // Pages without TLS have no locks, but they can talk to each other.
  return typeof BroadcastChannel === "undefined" ? work() : byChannel(name, work);
}

async function byChannel<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
  const from = randomName();
  const channel = new BroadcastChannel(CHANNEL);
  let holding = false;
  let asking = false;
  let refused = false;
  let wake: (() => void) | undefined;
  channel.onmessage = ({ data }: MessageEvent<Said>) => {
    if (data.name !== name || data.from === from) return;
    if (data.say === "held") refused = true;
    if (data.say === "free") wake?.();
    // Of two that ask at once, the one with the smaller name goes first.
    if (data.say === "ask" && (holding || (asking && from < data.from))) {
      channel.postMessage({ say: "held", name, from } satisfies Said);
    }
  };
  try {
    for (;;) {
      asking = true;
      refused = false;
      channel.postMessage({ say: "ask", name, from } satisfies Said);
      await new Promise((next) => setTimeout(next, ANSWER_MS));
      asking = false;
      if (!refused) break;
      // A holder that vanished says nothing: ask again after a while.
      await new Promise<void>((next) => {
        const timer = setTimeout(next, ANSWER_MS * 5);
        wake = () => {
          clearTimeout(timer);
          next();
        };
      });
    }
    holding = true;
    return await work();
  } finally {
    if (holding) channel.postMessage({ say: "free", name, from } satisfies Said);
    holding = false;
    channel.close();
  }
}

/** A name that nobody else has. */
export function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
}
