import { useToolRegistry } from "@toolyard/react";
import { Unplug } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { get } from "../api/gateway.ts";
import type { AgentRow, Model } from "../api/types.ts";
import { sentence, useQuery } from "../lib/query.ts";
import { go } from "../lib/router.tsx";
import { useOffer } from "../page-tools/useOffer.ts";
import { Loading, Wrong } from "../parts/parts.tsx";
import { Composer } from "./Composer.tsx";
import { liveRun, type Message } from "./conversation.ts";
import { InputCard } from "./InputCard.tsx";
import { MessageItem, Thinking } from "./MessageItem.tsx";
import { PermissionCard } from "./PermissionCard.tsx";
import { beginChat, edit, retry, say, stop, type Attached, type Choice } from "./send.ts";
import { useSpace } from "./useSpace.ts";
import { Welcome } from "./Welcome.tsx";

/** How near to the end counts as the end, in pixels. */
const NEAR = 80;

export function ChatView({ spaceId, defaultAgent }: { spaceId: string | undefined; defaultAgent: string }) {
  const agents = useQuery("agents", () => get<{ agents: AgentRow[] }>("/api/agents", { limit: 200 }), { mark: "agents" });
  const models = useQuery("models", () => get<{ models: Model[] }>("/api/models"));
  const [picked, setPicked] = useState(() => sessionStorage.getItem("toolyard_agent") ?? defaultAgent);
  const [model, setModel] = useState(() => localStorage.getItem("toolyard_model") ?? "");
  const [wrong, setWrong] = useState<string>();
  const { conversation, link, error } = useSpace(spaceId);
  const run = liveRun(conversation);
  const last = Object.values(conversation.runs).at(-1);
  const agent = spaceId ? (run?.agent ?? last?.agent ?? picked) : picked;
  const { clientTools, picks } = useOffer();
  const { tools } = useToolRegistry({ agent });
  const choice = useMemo<Choice>(() => ({ agent, model: model || undefined, clientTools, picks }), [agent, model, clientTools, picks]);
  const latest = useRef(choice);
  latest.current = choice;

  const act = useCallback((work: Promise<unknown>) => {
    setWrong(undefined);
    work.catch((thrown: unknown) => setWrong(sentence(thrown)));
  }, []);
  const send = async (text: string, files: Attached[]) => {
    setWrong(undefined);
    if (spaceId) return say(spaceId, text, choice, files);
    go(`/c/${await beginChat(text, choice, files)}`);
    return undefined;
  };
  const onRetry = useCallback((message: Message) => spaceId && act(retry(spaceId, message.id, latest.current)), [spaceId, act]);
  const onEdit = useCallback((message: Message, text: string) => spaceId && act(edit(spaceId, message.id, text, latest.current)), [spaceId, act]);

  const available = models.data?.models.filter((row) => row.available) ?? [];
  const demo = models.data !== undefined && available.every((row) => row.provider === "demo");
  const composer = (
    <Composer
      agents={agents.data?.agents ?? []}
      agent={agent}
      onAgent={spaceId ? undefined : (name) => {
        sessionStorage.setItem("toolyard_agent", name);
        setPicked(name);
      }}
      models={available}
      model={available.some((row) => row.id === model) ? model : ""}
      onModel={(id) => {
        localStorage.setItem("toolyard_model", id);
        setModel(id);
      }}
      busy={run !== undefined}
      tools={{ selected: tools.filter((tool) => tool.selected).length, all: tools.length }}
      onSend={send}
      onStop={run ? () => act(stop(run.id)) : undefined}
    />
  );

  if (!spaceId) {
    return (
      <>
        <div className="scroll">
          <Welcome agent={agent} demo={demo} onSay={(text, title) => act(beginChat(text, choice, [], title).then((id) => go(`/c/${id}`)))} />
        </div>
        {wrong && <Told what={wrong} />}
        {composer}
      </>
    );
  }
  if (error) return <Wrong what={error} onAgain={() => location.reload()} />;
  return (
    <>
      <Talk key={spaceId} state={conversation} agent={agent} onRetry={onRetry} onEdit={onEdit} />
      {link === "away" && (
        <p className="composer small soft row" role="status">
          <Unplug size={16} aria-hidden /> The gateway does not answer. Trying again…
        </p>
      )}
      {wrong && <Told what={wrong} />}
      {composer}
    </>
  );
}

function Told({ what }: { what: string }) {
  return (
    <div className="composer">
      <p className="notice wrong" role="alert">
        {what}
      </p>
    </div>
  );
}

interface TalkProps {
  state: ReturnType<typeof useSpace>["conversation"];
  agent: string;
  onRetry: (message: Message) => void;
  onEdit: (message: Message, text: string) => void;
}

function Talk({ state, agent, onRetry, onEdit }: TalkProps) {
  const run = liveRun(state);
  const waits = Object.values(state.waits).filter((wait) => wait.kind !== "client" && wait.kind !== "timer" && wait.kind !== "child");
  const scroll = useFollow(state);
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
