import type { ProgressReport } from "./types.js";

/** The gateway takes some hundred reports of one call: not each is sent. */
const REPORT_MS = 500;

/** Sends reports one after the other with a pause; of those that come meanwhile only the last. */
export function reporter(send: (report: ProgressReport) => Promise<unknown>): (report: ProgressReport) => void {
  let last: ProgressReport | undefined;
  let busy = false;
  const next = async () => {
    busy = true;
    for (let report = last; report; report = last) {
      last = undefined;
      await send(report).catch(() => undefined);
      // A report that waits must not keep a program alive.
      await new Promise<void>((resolve) => (setTimeout(resolve, REPORT_MS) as { unref?: () => void }).unref?.());
    }
    busy = false;
  };
  return (report) => {
    last = report;
    if (!busy) void next();
  };
}
