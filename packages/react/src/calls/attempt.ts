import type { ProgressReport } from "@toolyard/client";
import type { Runnable } from "../tools/tool.js";
import type { PageCall } from "./page-calls.js";

/** A result, or why there is none. */
export interface Outcome {
  result?: unknown;
  error?: string;
}

/** The gateway takes some hundred reports of one call: not each is sent. */
const REPORT_MS = 500;

/** Runs a tool's code once. `undefined` means that the result comes later, by hand. */
export async function attempt(
  call: PageCall & { runId: string },
  { execute, timeoutMs }: Runnable,
  report: (report: ProgressReport) => void,
): Promise<Outcome | undefined> {
  const { toolCallId, toolName, runId, input } = call;
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Outcome>((resolve) => {
    if (!timeoutMs) return;
    timer = setTimeout(() => {
      const error = `Tool ${toolName} timed out after ${timeoutMs} ms`;
      stop.abort(new Error(error));
      resolve({ error });
    }, timeoutMs);
  });
  const own = async (): Promise<Outcome | undefined> => {
    const context = { toolCallId, toolName, runId, signal: stop.signal, progress: seldom(report) };
    const answer = await execute(input ?? {}, context);
    return answer === undefined ? undefined : { result: plain(answer) };
  };
  try {
    return await Promise.race([own(), late]);
  } catch (thrown) {
    return { error: sentence(thrown) };
  } finally {
    clearTimeout(timer);
  }
}

/** The sentence of anything that was thrown. */
export function sentence(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return typeof thrown === "string" ? thrown : (JSON.stringify(thrown) ?? String(thrown));
}

/** The value as it will travel. What JSON cannot hold is the tool's failure. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? null : JSON.parse(text);
}

/** Tells the first report, and of those that come too soon after one the last. */
function seldom(tell: (report: ProgressReport) => void): (report: ProgressReport) => void {
  let next: ProgressReport | undefined;
  let resting = false;
  const send = (report: ProgressReport) => {
    tell(report);
    resting = true;
    setTimeout(() => {
      resting = false;
      const held = next;
      next = undefined;
      if (held) send(held);
    }, REPORT_MS);
  };
  return (report) => {
    if (resting) next = report;
    else send(report);
  };
}
