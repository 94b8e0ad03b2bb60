import type { ResultBody, ResultsTaken } from "@toolyard/client";
import { useCallback, useState } from "react";
import { useSession } from "../context.js";

/** A result of a call, under its space. */
export interface SpaceResult extends ResultBody {
  runId: string;
  toolCallId: string;
}

export interface ToolResults {
  /** Hands in a result under a space; without one, under the provider's `defaultSpaceId` or the run. */
  submit(spaceId: string, result: SpaceResult): Promise<ResultsTaken>;
  submit(result: SpaceResult): Promise<ResultsTaken>;
  /** Hands in a result under its run. */
  submitToRun(runId: string, result: { callId: string } & ResultBody): Promise<ResultsTaken>;
  isSubmitting: boolean;
}

/** Hands in results by hand, for example after a dialog. The first result of a call counts. */
export function useToolResult(): ToolResults {
  const session = useSession();
  const [open, setOpen] = useState(0);
  const track = useCallback(async <Value>(work: () => Promise<Value>): Promise<Value> => {
    setOpen((count) => count + 1);
    try {
      return await work();
    } finally {
      setOpen((count) => count - 1);
    }
  }, []);
  const submitToRun = useCallback(
    (runId: string, result: { callId: string } & ResultBody) =>
      track(async () => {
        const taken = await session.client.tools.submitRunResult(runId, { source: "client", ...result });
        session.submitted(result.callId, result);
        return taken;
      }),
    [session, track],
  );
  const submit = useCallback(
    (...given: [string, SpaceResult] | [SpaceResult]) =>
      track(async () => {
        const [spaceId, result] = given.length === 2 ? given : [session.options.defaultSpaceId, given[0]];
        const { toolCallId, ...rest } = result;
        const { runId, ...body } = rest;
        const taken =
          spaceId === undefined
            ? await session.client.tools.submitRunResult(runId, { source: "client", callId: toolCallId, ...body })
            : await session.client.tools.submitResult(spaceId, { source: "client", ...result });
        session.submitted(toolCallId, body);
        return taken;
      }),
    [session, track],
  );
  return { submit, submitToRun, isSubmitting: open > 0 };
}
