/** Runs the body of an async function of `args`, away from the page. */
export type RunCode = (code: string, args: unknown, how: { timeoutMs: number; signal?: AbortSignal | undefined }) => Promise<unknown>;

/** The largest arguments and results of plugin code, in characters of JSON. */
export const SANDBOX_CHARS = 1_000_000;

/**
 * The page of the frame. It has an origin of its own that is no origin, and
 * its policy allows nothing but its own script and a worker. The code runs in
 * the worker, so that a loop without end stops neither frame nor page.
 *
 * A frame that is written into a page inherits the page's policy. A page whose
 * policy allows no inline script serves this text under an address instead.
 */
export const SANDBOX_PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Plugin code</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:">
<script>
"use strict";
const work = ${JSON.stringify(`"use strict";
for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "importScripts", "indexedDB", "caches", "Worker", "BroadcastChannel", "WebTransport"]) {
  try { Object.defineProperty(self, name, { value: undefined, configurable: false, writable: false }); } catch {}
}
const tell = self.postMessage.bind(self);
onmessage = async ({ data }) => {
  onmessage = null;
  try {
    const run = new (Object.getPrototypeOf(async function () {}).constructor)("args", data.code);
    const text = JSON.stringify(await run(JSON.parse(data.args)));
    if (text !== undefined && text.length > data.limit) throw new Error("The result has more than " + data.limit + " characters");
    tell({ result: text === undefined ? "null" : text });
  } catch (thrown) {
    tell({ error: String(thrown && thrown.message || thrown) });
  }
};`)};
addEventListener("message", (event) => {
  const port = event.ports[0];
  if (!port || event.source !== parent) return;
  const worker = new Worker(URL.createObjectURL(new Blob([work], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => port.postMessage(data);
  worker.onerror = (fault) => { fault.preventDefault(); port.postMessage({ error: fault.message || "The code cannot be run" }); };
  worker.postMessage(event.data);
});
parent.postMessage("toolyard-sandbox", "*");
</script>`;

/** Runs code in a sandboxed frame of its own, which goes when the code has ended. `url`: where `SANDBOX_PAGE` is served. */
export function codeRunner({ url }: { url?: string } = {}): RunCode {
  return (code, args, how) => runIn(url, code, args, how);
}

/** Runs code in a frame that is written into this page. */
export const runInFrame: RunCode = codeRunner();

function runIn(url: string | undefined, ...[code, args, { timeoutMs, signal }]: Parameters<RunCode>): Promise<unknown> {
  const text = JSON.stringify(args ?? {});
  if (text.length > SANDBOX_CHARS) return Promise.reject(new Error(`The arguments have more than ${SANDBOX_CHARS} characters`));
  return new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    frame.tabIndex = -1;
    frame.style.display = "none";
    if (url === undefined) frame.srcdoc = SANDBOX_PAGE;
    else frame.src = url;
    const channel = new MessageChannel();
    const over = (settle: () => void) => {
      clearTimeout(timer);
      window.removeEventListener("message", ready);
      signal?.removeEventListener("abort", aborted);
      channel.port1.close();
      frame.remove();
      settle();
    };
    const timer = setTimeout(() => over(() => reject(new Error(`The code ran longer than ${timeoutMs} ms`))), timeoutMs);
    const aborted = () => over(() => reject(signal?.reason as Error));
    const ready = (event: MessageEvent) => {
      if (event.source !== frame.contentWindow || event.data !== "toolyard-sandbox") return;
      window.removeEventListener("message", ready);
      frame.contentWindow?.postMessage({ code, args: text, limit: SANDBOX_CHARS }, "*", [channel.port2]);
    };
    channel.port1.onmessage = ({ data }: MessageEvent<{ result?: string; error?: string }>) => {
      over(() => {
        if (typeof data?.error === "string") return reject(new Error(data.error));
        try {
          resolve(JSON.parse(String(data?.result)));
        } catch (thrown) {
          reject(thrown as Error);
        }
      });
    };
    window.addEventListener("message", ready);
    signal?.addEventListener("abort", aborted);
    if (signal?.aborted) return aborted();
    document.body.append(frame);
  });
}
