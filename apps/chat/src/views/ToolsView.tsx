import { useToolRegistry, useToolSelection, type RegistryService, type RegistryTool } from "@toolyard/react";
import { Globe, LaptopMinimal, Play, Puzzle, RefreshCw, Server, Wrench, type LucideIcon } from "lucide-react";
import { useState } from "react";
import { get, post } from "../api/gateway.ts";
import type { McpServer } from "../api/types.ts";
import { usePickedAgent } from "../lib/agents.ts";
import { sentence, useQuery } from "../lib/query.ts";
import { human, plural } from "../lib/words.ts";
import { Button, Empty, Loading, Page, RiskBadge, SearchField, Sheet, Shown, Switch, Wrong } from "../parts/parts.tsx";
import { McpServices } from "./McpServices.tsx";
import { RunTool } from "./RunTool.tsx";

function iconOf(service: RegistryService): LucideIcon {
  if (service.serviceId === "page") return LaptopMinimal;
  if (service.serviceId === "gateway") return Server;
  return service.tools.some((tool) => tool.from === "gateway") ? Globe : Puzzle;
}

export default function ToolsView({ defaultAgent }: { defaultAgent: string }) {
  const { agents, agent, pick } = usePickedAgent(defaultAgent);
  const { services, tools, isLoading, error, refresh } = useToolRegistry({ agent });
  const { select } = useToolSelection();
  const [asked, setAsked] = useState("");
  const [tried, setTried] = useState<RegistryTool>();
  const words = asked.trim().toLowerCase();
  const matches = (tool: RegistryTool) => `${tool.toolName} ${tool.description}`.toLowerCase().includes(words);
  const shown = services.map((service) => ({ ...service, found: service.tools.filter(matches) })).filter((service) => service.found.length > 0);
  const selected = tools.filter((tool) => tool.selected).length;
  const all = (on: boolean) => services.forEach((service) => select(service.serviceId, service.tools.map((tool) => tool.toolName), on));
  return (
    <Page title="Tools" lead="What an agent may use in your chats. A change counts from the next message on, in every tab.">
      <div className="filters">
        <SearchField value={asked} onChange={setAsked} label="Search tools" />
        <select className="field" aria-label="Agent" value={agent} onChange={(event) => pick(event.target.value)}>
          {(agents.length > 0 ? agents : [{ id: agent, name: agent }]).map((row) => (
            <option key={row.id}>{row.name}</option>
          ))}
        </select>
      </div>
      <div className="row wrap">
        <span className="badge accent" role="status" data-testid="selected">
          {selected}/{tools.length} selected
        </span>
        <span className="grow" />
        <Button onClick={() => all(true)}>Select all</Button>
        <Button onClick={() => all(false)}>Deselect all</Button>
      </div>
      {error && shown.length === 0 ? (
        <Wrong what={error.message} onAgain={() => void refresh()} />
      ) : isLoading && tools.length === 0 ? (
        <Loading />
      ) : shown.length === 0 ? (
        <Empty icon={Wrench} title={words ? "No tool is like this" : "This agent has no tools"} />
      ) : (
        shown.map((service) => {
          const Icon = iconOf(service);
          const every = service.selected === service.tools.length;
          return (
            <section key={service.serviceId} className="card" aria-label={service.title}>
              <header className="service-head">
                <Icon size={18} aria-hidden />
                <h2 className="grow">{service.title}</h2>
                <span className="small soft">
                  {service.selected}/{service.tools.length} selected
                </span>
                <Switch checked={every} label={`All tools of ${service.title}`} onChange={(on) => select(service.serviceId, service.tools.map((tool) => tool.toolName), on)} />
              </header>
              <ul>
                {service.found.map((tool) => (
                  <li key={tool.key} className="tool-row">
                    <div className="line-body">
                      <div className="row wrap">
                        <span className="line-title">{human(tool.toolName)}</span>
                        <RiskBadge risk={tool.riskLevel} />
                        {tool.place === "client" && <span className="badge">In your program</span>}
                      </div>
                      <p className="small soft">{tool.description}</p>
                    </div>
                    <Button look="tiny" icon={Play} onClick={() => setTried(tool)} aria-label={`Run ${tool.toolName} by hand`}>
                      Run
                    </Button>
                    <Switch checked={tool.selected} label={tool.toolName} onChange={(on) => select(tool.serviceId, tool.toolName, on)} />
                  </li>
                ))}
              </ul>
            </section>
          );
        })
      )}
      <McpServices />
      <McpServers />
      <Sheet title={tried ? `Run ${human(tried.toolName)}` : ""} open={tried !== undefined} onClose={() => setTried(undefined)}>
        {tried && <RunTool tool={tried} agent={agent} />}
      </Sheet>
    </Page>
  );
}

const MCP_TONES: Record<string, string> = { ready: "low", starting: "accent", degraded: "medium", backing_off: "medium", needs_auth: "medium", failed: "high" };

function McpServers() {
  const servers = useQuery("mcp", () => get<{ servers: McpServer[] }>("/api/mcp/servers"), { everyMs: 5000 });
  const [wrong, setWrong] = useState<string>();
  const act = async (work: Promise<unknown>) => {
    setWrong(undefined);
    await work.catch((thrown: unknown) => setWrong(sentence(thrown)));
    await servers.reload();
  };
  const login = async (name: string) => {
    const { loginUrl } = await post<{ loginUrl: string }>(`/api/mcp/servers/${encodeURIComponent(name)}/login`, {});
    window.open(loginUrl, "_blank", "noopener");
  };
  return (
    <section className="stack">
      <h2 className="row">
        <Server size={18} aria-hidden /> MCP servers of the gateway
      </h2>
      {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
      <Shown
        of={servers}
        empty={{
          when: (data) => data.servers.length === 0,
          show: <p className="soft small">None is connected. Name them under <code>[mcp_servers]</code> in <code>toolyard.toml</code>, or in an agent.</p>,
        }}
      >
        {(data) => (
          <ul className="list">
            {data.servers.map((server) => (
              <li key={server.name} className="line">
                <div className="line-body">
                  <div className="row wrap">
                    <span className="line-title">{server.name}</span>
                    <span className={`badge ${MCP_TONES[server.state] ?? ""}`}>{human(server.state)}</span>
                  </div>
                  <div className="small soft">
                    {plural(server.tools, "tool")} · {server.transport}
                    {server.program ? ` · ${server.program}` : ""}
                  </div>
                  {server.why && <p className="small tone-high">{server.why}</p>}
                </div>
                {server.state === "needs_auth" && <Button onClick={() => void act(login(server.name))}>Log in</Button>}
                <Button icon={RefreshCw} onClick={() => void act(post(`/api/mcp/servers/${encodeURIComponent(server.name)}/refresh`))}>
                  Test
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}
