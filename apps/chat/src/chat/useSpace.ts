import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { clientId, gateway, get } from "../api/gateway.ts";
import type { Frame, MessageView } from "../api/types.ts";
import { sentence, touch } from "../lib/query.ts";
import { begin, fold, liveRun, NOTHING, withOlder, type Conversation } from "./conversation.ts";

type Act =
  | { do: "forget" }
  | { do: "begin"; views: MessageView[]; hasOlder: boolean; frame: Extract<Frame, { type: "reset"; runs: unknown }> }
  | { do: "fold"; frames: Frame[] }
  | { do: "older"; views: MessageView[]; hasOlder: boolean }
  | { do: "reread"; views: MessageView[]; hasOlder: boolean };

function reduce(before: Conversation, act: Act): Conversation {
  switch (act.do) {
    case "forget":
      return NOTHING;
    case "begin":
      return begin(act.views, act.frame.runs, act.frame.waits, act.hasOlder);
    case "fold":
      return act.frames.reduce((state, frame) => fold(state, frame), before);
    case "older":
      return withOlder(before, act.views, act.hasOlder);
    case "reread": {
      // What a run of this line writes may not be stored yet, and stays.
      const stored = act.views.map((view) => view.id);
      const ofLine = (id: string) => before.runs[before.messages[id]?.runId ?? ""]?.branch === before.branch;
      const writing = before.order.filter((id) => !stored.includes(id) && ofLine(id));
      const read = begin(act.views, [], []);
      const messages = { ...read.messages, ...Object.fromEntries(Object.entries(before.messages)) };
      const first = read.oldest === undefined ? {} : { oldest: read.oldest };
      return { ...before, ...first, calls: { ...read.calls, ...before.calls }, messages, order: [...stored, ...writing], stale: false, hasOlder: act.hasOlder };
    }
  }
}

export type Link = "connecting" | "live" | "away";

export interface SpaceState {
  conversation: Conversation;
  link: Link;
  error: string | undefined;
  /** Reads what was said before the first message. */
  loadOlder: () => Promise<void>;
}

/** A tab that nobody looks at lets its stream go after this time: a browser has few for one server. */
const SLEEPS_MS = 60_000;

/** Whether the tab has not been looked at for long, and nothing happens in it. */
function useAsleep(busy: boolean): boolean {
  const [asleep, setAsleep] = useState(false);
  useEffect(() => {
    let timer: number | undefined;
    const look = () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") setAsleep(false);
      else if (!busy) timer = window.setTimeout(() => setAsleep(true), SLEEPS_MS);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [busy]);
  return asleep;
}

/** Messages that are read at once. */
const PAGE = 100;

interface Line {
  views: MessageView[];
  hasOlder: boolean;
}

/** The newest of what the space goes on with; another answer or an edit left the rest behind. */
async function currentLine(spaceId: string, beforeSeq?: number): Promise<Line> {
  const query = { branch: "current", limit: PAGE, ...(beforeSeq === undefined ? {} : { beforeSeq }) };
  const { messages } = await get<{ messages: MessageView[] }>(`/api/smart-spaces/${spaceId}/messages`, query);
  return { views: messages, hasOlder: messages.length === PAGE };
}

/** A space, live: what it holds and what is being written into it. This tab also runs the tools of the page. */
export function useSpace(spaceId: string | undefined): SpaceState {
  const [conversation, act] = useReducer(reduce, NOTHING);
  const [link, setLink] = useState<Link>("connecting");
  const [error, setError] = useState<string>();

  const asleep = useAsleep(liveRun(conversation) !== undefined);

  useEffect(() => act({ do: "forget" }), [spaceId]);

  useEffect(() => {
    setError(undefined);
    setLink("connecting");
    if (!spaceId || asleep) return undefined;
    let over = false;
    // Frames that come while the messages are read wait for them.
    let waiting: Frame[] | undefined = [];
    let batch: Frame[] = [];
    let timer: number | undefined;
    const flush = () => {
      timer = undefined;
      const frames = batch;
      batch = [];
      if (frames.length > 0) act({ do: "fold", frames });
    };
    const take = (frame: Frame) => {
      if (waiting) waiting.push(frame);
      else {
        batch.push(frame);
        // At most one drawing for each picture of the screen, also in a tab that is not seen.
        timer ??= window.setTimeout(flush, 30);
      }
      if (frame.type.startsWith("run.") || frame.type.includes("approval") || frame.type === "wait.answered") touch("waits");
    };
    const serving = gateway.serve(spaceId, { clientId: clientId(), retryMs: 500 });
    serving.subscription
      .on("open", () => setLink("live"))
      .on("reconnecting", () => setLink("away"))
      .on("error", (thrown) => setError(sentence(thrown)))
      .on("*", ({ data }) => {
        if (data.type !== "reset") return take(data);
        if (!("runs" in data)) return;
        waiting = [];
        batch = [];
        const reset = data;
        void currentLine(spaceId)
          .then(({ views: line, hasOlder }) => {
            if (over) return;
            // The snapshot and the frames after it fit together; what came later is told by frames.
            const snapshot = new Map(reset.messages.map((view) => [view.id, view]));
            const views = line.filter((view) => view.seq <= reset.lastSeq).map((view) => snapshot.get(view.id) ?? view);
            act({ do: "begin", views, hasOlder, frame: reset });
            act({ do: "fold", frames: waiting ?? [] });
            waiting = undefined;
          })
          .catch((thrown: unknown) => !over && setError(sentence(thrown)));
      });
    return () => {
      over = true;
      clearTimeout(timer);
      serving.subscription.close();
      void serving.close();
    };
  }, [spaceId, asleep]);

  const { stale } = conversation;
  useEffect(() => {
    if (!stale || !spaceId) return undefined;
    let over = false;
    void currentLine(spaceId).then((line) => !over && act({ do: "reread", ...line }), () => undefined);
    return () => void (over = true);
  }, [stale, spaceId]);

  const first = useRef({ spaceId, oldest: conversation.oldest });
  first.current = { spaceId, oldest: conversation.oldest };
  const loadOlder = useCallback(async () => {
    const { oldest } = first.current;
    if (!spaceId || oldest === undefined) return;
    const line = await currentLine(spaceId, oldest);
    // Another line or another space may be shown by now.
    if (first.current.spaceId === spaceId && first.current.oldest === oldest) act({ do: "older", ...line });
  }, [spaceId]);

  return { conversation, link, error, loadOlder };
}
