/** The messages of a chat, with the questions that are open in it. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import { Button, Loading } from "../parts/parts.tsx";
import { liveRun, type Conversation, type Message } from "./conversation.ts";
import { InputCard } from "./InputCard.tsx";
import { MessageItem, Thinking } from "./MessageItem.tsx";
import { PermissionCard } from "./PermissionCard.tsx";

/** How near to the end counts as the end, in pixels. */
const NEAR = 80;

interface TalkProps {
  state: Conversation;
  agent: string;
  /** Reads what was said before the first message that is shown. */
  loadOlder: () => Promise<void>;
  onRetry?: (message: Message) => void;
  onEdit?: (message: Message, text: string) => void;
}

export function Talk({ state, agent, loadOlder, onRetry, onEdit }: TalkProps) {
  const run = liveRun(state);
  const waits = Object.values(state.waits).filter((wait) => wait.kind !== "client" && wait.kind !== "timer" && wait.kind !== "child");
  const scroll = useFollow(state);
  const older = useOlder(scroll, state, loadOlder);
  if (!state.ready) {
    return (
      <div className="scroll">
        <div className="talk">
          <Loading what="Loading the chat" />
        </div>
      </div>
    );
  }
  const messages = state.order.flatMap((id) => state.messages[id] ?? []);
  const lastSaid = messages.findLast((message) => message.role === "user");
  const lastAnswer = messages.findLast((message) => message.role === "assistant");
  const failed = Object.values(state.runs).at(-1);
  const working = run?.status === "running" || run?.status === "queued";
  return (
    <div className="scroll" ref={scroll}>
      <div className="talk" role="log" aria-label="Conversation" aria-live="polite">
        {state.hasOlder && (
          <div className="older">
            <Button look="plain tiny" busy={older.busy} onClick={() => void older.load()}>
              Show earlier messages
            </Button>
          </div>
        )}
        {messages.map((message) => {
          const live = run !== undefined && message.runId === run.id;
          return (
            <MessageItem
              key={message.id}
              message={message}
              calls={state.calls}
              agent={agent}
              live={live}
              onRetry={message === lastAnswer && !run ? onRetry : undefined}
              onEdit={message === lastSaid && !run ? onEdit : undefined}
            />
          );
        })}
        {working && lastAnswer?.runId !== run?.id && <Thinking />}
        {waits.map((wait) => (wait.kind === "approval" ? <PermissionCard key={wait.id} wait={wait} /> : <InputCard key={wait.id} wait={wait} />))}
        {failed?.status === "failed" && !run && (
          <p className="notice wrong" role="alert">
            The run failed: {failed.error ?? "no reason was given"}
          </p>
        )}
        {failed?.status === "canceled" && !run && <p className="small soft">Stopped.</p>}
      </div>
    </div>
  );
}

/** Keeps the end in sight while it grows, unless the person looks elsewhere. */
function useFollow(state: unknown) {
  const room = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const shown = room.current;
    const look = () => {
      if (shown) follows.current = shown.scrollHeight - shown.scrollTop - shown.clientHeight < NEAR;
    };
    shown?.addEventListener("scroll", look, { passive: true });
    return () => shown?.removeEventListener("scroll", look);
  });
  useLayoutEffect(() => {
    if (follows.current && room.current) room.current.scrollTop = room.current.scrollHeight;
  }, [state]);
  return room;
}

/** Reads older messages when the person comes near the first one, and keeps in sight what was in sight. */
function useOlder(room: RefObject<HTMLDivElement | null>, state: Conversation, read: () => Promise<void>) {
  const [busy, setBusy] = useState(false);
  const held = useRef<{ height: number; top: number }>(undefined);
  const load = useCallback(async () => {
    const shown = room.current;
    if (busy || !shown) return;
    setBusy(true);
    held.current = { height: shown.scrollHeight, top: shown.scrollTop };
    await read().catch(() => (held.current = undefined));
    setBusy(false);
  }, [busy, read, room]);
  const first = state.order[0];
  useLayoutEffect(() => {
    const shown = room.current;
    if (shown && held.current) shown.scrollTop = held.current.top + shown.scrollHeight - held.current.height;
    held.current = undefined;
  }, [first, room]);
  const { hasOlder } = state;
  useEffect(() => {
    const shown = room.current;
    if (!shown || !hasOlder) return undefined;
    const look = () => shown.scrollTop < NEAR && shown.scrollHeight > shown.clientHeight + NEAR && void load();
    shown.addEventListener("scroll", look, { passive: true });
    return () => shown.removeEventListener("scroll", look);
  }, [hasOlder, load, room, state.ready]);
  return { busy, load };
}
