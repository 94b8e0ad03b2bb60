import { useToolRegistry } from "@toolyard/react";
import { Bot, Unplug } from "lucide-react";
import { useCallback, useMemo, useRef, useState } from "react";
import { get } from "../api/gateway.ts";
import type { Model } from "../api/types.ts";
import { rememberAgent, usePickedAgent } from "../lib/agents.ts";
import { sentence, useQuery } from "../lib/query.ts";
import { go, Link } from "../lib/router.tsx";
import { useOffer } from "../page-tools/useOffer.ts";
import { Empty, Wrong } from "../parts/parts.tsx";
import { Composer } from "./Composer.tsx";
import { liveRun, type Message } from "./conversation.ts";
import { beginChat, edit, retry, say, stop, type Attached, type Choice } from "./send.ts";
import { Talk } from "./Talk.tsx";
import { useSpace } from "./useSpace.ts";
import { Welcome } from "./Welcome.tsx";

export function ChatView({ spaceId, defaultAgent }: { spaceId: string | undefined; defaultAgent: string }) {
  const { agents, none, agent: picked, pick } = usePickedAgent(defaultAgent);
  const models = useQuery("models", () => get<{ models: Model[] }>("/api/models"));
  const [model, setModel] = useState(() => localStorage.getItem("toolyard_model") ?? "");
  const [wrong, setWrong] = useState<string>();
  const { conversation, link, error, loadOlder } = useSpace(spaceId);
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
      agents={agents}
      agent={agent}
      onAgent={spaceId ? undefined : (name) => {
        rememberAgent(name);
        pick(name);
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

  if (!spaceId && none) {
    return (
      <div className="scroll">
        <Empty icon={Bot} title="There is no agent yet">
          <p>An agent is a name, a model and its tools.</p>
          <Link className="button main" href="/agents/new">
            Make an agent
          </Link>
        </Empty>
      </div>
    );
  }
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
      <Talk key={spaceId} state={conversation} agent={agent} loadOlder={loadOlder} onRetry={onRetry} onEdit={onEdit} />
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
