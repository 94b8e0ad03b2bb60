import { useCallback, useEffect, useRef, useState } from "react";

export interface Answer<Data> {
  data: Data | undefined;
  error: string | undefined;
  loading: boolean;
  reload: () => Promise<void>;
}

/** What went wrong, in a sentence. */
export function sentence(thrown: unknown): string {
  return thrown instanceof Error && thrown.message ? thrown.message : "Something went wrong.";
}

const marks = new Map<string, Set<() => void>>();

/** Says that something changed: views that show it read it again. */
export function touch(mark: string): void {
  marks.get(mark)?.forEach((reload) => reload());
}

/**
 * Reads something and keeps it while it is read again. `mark` names it for
 * `touch`; a new `key` forgets what was there.
 */
export function useQuery<Data>(key: string, read: () => Promise<Data>, options: { mark?: string; everyMs?: number } = {}): Answer<Data> {
  const [state, setState] = useState<{ key: string; data?: Data; error?: string; loading: boolean }>({ key, loading: true });
  const latest = useRef(read);
  latest.current = read;
  const turn = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const data = await latest.current();
      if (mine === turn.current) setState({ key, data, loading: false });
    } catch (thrown) {
      if (mine !== turn.current) return;
      setState((before) => ({ ...(before.key === key && before.data !== undefined ? { data: before.data } : {}), key, error: sentence(thrown), loading: false }));
    }
  }, [key]);

  useEffect(() => {
    void reload();
    return () => void (turn.current += 1);
  }, [reload]);

  const { mark, everyMs } = options;
  useEffect(() => {
    if (!mark) return undefined;
    const set = marks.get(mark) ?? new Set();
    marks.set(mark, set);
    const again = () => void reload();
    set.add(again);
    return () => void set.delete(again);
  }, [mark, reload]);

  useEffect(() => {
    if (!everyMs) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);

  const same = state.key === key;
  return { data: same ? state.data : undefined, error: same ? state.error : undefined, loading: same ? state.loading : true, reload };
}
