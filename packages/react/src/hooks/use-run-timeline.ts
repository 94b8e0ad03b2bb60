import type { Frame } from "@toolyard/client";
import { useEffect, useState } from "react";
import { useSession } from "../context.js";
import { emptyTimeline, timelineWith, type Timeline } from "../timeline.js";

/** A run as it goes: steps, calls with their places, waits, tokens, cost. */
export function useRunTimeline(runId: string | undefined): Timeline & { error: Error | undefined } {
  const { client } = useSession();
  const [timeline, setTimeline] = useState<Timeline>(emptyTimeline);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    setTimeline(emptyTimeline);
    setError(undefined);
    if (runId === undefined) return undefined;
    let over = false;
    const subscription = client.runs
      .subscribe(runId)
      .on("*", ({ data }: { data: Frame }) => {
        if (over) return;
        setTimeline((before) => timelineWith(before, data));
        if (data.type === "run.completed" || data.type === "run.failed" || data.type === "run.canceled") subscription.close();
      })
      .on("error", (failure) => !over && setError(failure));
    return () => {
      over = true;
      subscription.close();
    };
  }, [client, runId]);
  return { ...timeline, error };
}
