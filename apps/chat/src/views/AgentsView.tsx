import { ArrowLeft, Bot, MessageSquare, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { AgentEditor } from "../agents/AgentEditor.tsx";
import { TryAgent } from "../agents/TryAgent.tsx";
import { get, remove } from "../api/gateway.ts";
import type { AgentRow } from "../api/types.ts";
import { rememberAgent } from "../lib/agents.ts";
import { sentence, touch, useQuery } from "../lib/query.ts";
import { go, Link } from "../lib/router.tsx";
import { ago } from "../lib/words.ts";
import { Button, Empty, Page, SearchField, Sheet, Shown } from "../parts/parts.tsx";

export default function AgentsView({ name }: { name: string | undefined }) {
  if (name === "new") return <NewAgent />;
  return name ? <OneAgent key={name} name={name} /> : <AgentList />;
}

function AgentList() {
  const agents = useQuery("agents", () => get<{ agents: AgentRow[] }>("/api/agents", { limit: 200 }), { mark: "agents" });
  const [asked, setAsked] = useState("");
  const words = asked.trim().toLowerCase();
  const found = (rows: AgentRow[]) => rows.filter((row) => row.name.toLowerCase().includes(words));
  return (
    <Page
      title="Agents"
      lead="An agent is a stored configuration: its words, its model, its tools and what needs a yes. A change counts for new runs."
      actions={
        <Link className="button main" href="/agents/new">
          <Plus size={16} aria-hidden /> New agent
        </Link>
      }
    >
      <SearchField value={asked} onChange={setAsked} label="Search agents" />
      <Shown
        of={agents}
        empty={{
          when: (data) => found(data.agents).length === 0,
          show: (
            <Empty icon={Bot} title={words ? "No agent has this name" : "No agents yet"}>
              <p>Put JSON files into the folder of agents, or make one here.</p>
            </Empty>
          ),
        }}
      >
        {(data) => (
          <ul className="list">
            {found(data.agents).map((agent) => (
              <li key={agent.id} className="line">
                <span className="avatar" aria-hidden>
                  {agent.name.charAt(0).toUpperCase()}
                </span>
                <div className="line-body">
                  <Link className="line-title" href={`/agents/${agent.name}`}>
                    {agent.name}
                  </Link>
                  <div className="small soft">
                    changed {ago(agent.updatedAt)} · version <span className="mono">{agent.configHash.slice(0, 8)}</span>
                  </div>
                </div>
                <Button icon={MessageSquare} onClick={() => tryOut(agent.name)} aria-label={`Try it: ${agent.name}`}>
                  Try it
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </Page>
  );
}

function tryOut(name: string): void {
  rememberAgent(name);
  go("/");
}

interface Stored {
  agent: { id: string; name: string; configHash: string; config?: unknown };
}

function OneAgent({ name }: { name: string }) {
  const agent = useQuery(`agent ${name}`, () => get<Stored>(`/api/agents/${encodeURIComponent(name)}`));
  const [asked, setAsked] = useState(false);
  const [trying, setTrying] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const drop = async () => {
    try {
      await remove(`/api/agents/${encodeURIComponent(name)}`);
      touch("agents");
      go("/agents");
    } catch (thrown) {
      setWrong(sentence(thrown));
    }
  };
  return (
    <Page
      title={name}
      actions={
        <>
          <Button icon={MessageSquare} aria-expanded={trying} onClick={() => setTrying(!trying)}>
            Try it
          </Button>
          <Button look="danger" icon={Trash2} onClick={() => setAsked(true)}>
            Delete
          </Button>
        </>
      }
    >
      <BackToAgents />
      <Shown of={agent}>
        {({ agent: { config, configHash } }) => (
          <div className="beside" data-trying={trying}>
            <AgentEditor text={JSON.stringify(config ?? {}, null, 2)} onSaved={() => void agent.reload()} />
            {trying && <TryAgent name={name} version={configHash} onClose={() => setTrying(false)} />}
          </div>
        )}
      </Shown>
      <Sheet title={`Delete ${name}?`} open={asked} onClose={() => setAsked(false)}>
        <div className="stack">
          <p>Its runs and chats stay. New messages get no answer from it.</p>
          {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
          <div className="row">
            <Button look="danger" onClick={() => void drop()}>
              Delete
            </Button>
            <Button onClick={() => setAsked(false)}>Keep</Button>
          </div>
        </div>
      </Sheet>
    </Page>
  );
}

function BackToAgents() {
  return (
    <Link href="/agents" className="row small">
      <ArrowLeft size={15} aria-hidden /> All agents
    </Link>
  );
}

const SAMPLE = {
  version: "1",
  agent: { name: "my-agent", description: "What it is for.", system: "You are a careful assistant. Answer in short, plain sentences." },
  model: { provider: "demo", name: "demo" },
  loop: { maxSteps: 8 },
  tools: [],
};

function NewAgent() {
  return (
    <Page title="New agent" lead="A name, words for the model, and what it may do. The rest can come later.">
      <BackToAgents />
      <AgentEditor isNew text={JSON.stringify(SAMPLE, null, 2)} />
    </Page>
  );
}
