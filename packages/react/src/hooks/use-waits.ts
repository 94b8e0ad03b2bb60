import type { WaitAnswer, WaitKind, WaitView } from "@toolyard/client";
import { useCallback, useMemo } from "react";
import { useSession } from "../context.js";
import { useStore } from "../store.js";

export interface UseWaitsOptions {
  spaceId?: string | undefined;
  runId?: string | undefined;
  kind?: WaitKind | undefined;
}

export interface Waits {
  /** What runs wait for, the oldest first. */
  waits: readonly WaitView[];
  isLoading: boolean;
  error: Error | undefined;
  /** Answers an approval, an input or a login. Chats that show it go on. */
  answer(waitId: string, answer: WaitAnswer): Promise<void>;
  refresh(): Promise<void>;
}

/** The open waits that this user may answer, over all spaces or of one. */
export function useWaits({ spaceId, runId, kind }: UseWaitsOptions = {}): Waits {
  const session = useSession();
  const { waits, isLoading, error } = useStore(session.ledger);
  const shown = useMemo(
    () =>
      waits.filter(
        (wait) =>
          (spaceId === undefined || wait.smartSpaceId === spaceId) &&
          (runId === undefined || wait.runId === runId || wait.rootRunId === runId) &&
          (kind === undefined || wait.kind === kind),
      ),
    [waits, spaceId, runId, kind],
  );
  const answer = useCallback((waitId: string, given: WaitAnswer) => session.answer(waitId, given), [session]);
  return { waits: shown, isLoading, error, answer, refresh: session.ledger.refresh };
}
