/**
 * Runs code of plugins in a frame of its own. The frame's page comes from the
 * gateway with a policy that lets nothing out; it has no origin, so it reaches
 * neither this page nor its storage.
 */
import { SANDBOX_CHARS, type RunCode } from "@toolyard/react";

const READY = "toolyard-sandbox";

export const runInRoom: RunCode = (code, args, { timeoutMs, signal }) => {
  const text = JSON.stringify(args ?? {});
  if (text.length > SANDBOX_CHARS) return Promise.reject(new Error(`The arguments have more than ${SANDBOX_CHARS} characters`));
  return new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    frame.title = "Plugin code";
    frame.tabIndex = -1;
    frame.hidden = true;
    frame.src = "/sandbox.html";
    const channel = new MessageChannel();
    const over = (settle: () => void) => {
      clearTimeout(timer);
      removeEventListener("message", ready);
      signal?.removeEventListener("abort", aborted);
      channel.port1.close();
      frame.remove();
      settle();
    };
    const timer = setTimeout(() => over(() => reject(new Error(`The code ran longer than ${timeoutMs} ms`))), timeoutMs);
    const aborted = () => over(() => reject(signal?.reason as Error));
    const ready = (event: MessageEvent) => {
      if (event.source !== frame.contentWindow || event.data !== READY) return;
      removeEventListener("message", ready);
      frame.contentWindow?.postMessage({ code, args: text, limit: SANDBOX_CHARS }, "*", [channel.port2]);
    };
    channel.port1.onmessage = ({ data }: MessageEvent<{ result?: string; error?: string }>) => {
      over(() => {
        if (typeof data?.error === "string") return reject(new Error(data.error));
        try {
          return resolve(JSON.parse(String(data?.result)));
        } catch (thrown) {
          return reject(thrown as Error);
        }
      });
    };
    addEventListener("message", ready);
    signal?.addEventListener("abort", aborted);
    document.body.append(frame);
    if (signal?.aborted) aborted();
  });
};
