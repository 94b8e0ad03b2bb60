/** MCP services that this browser holds: it calls them itself, and the gateway never sees their tokens. */
import { useMcpServices, type McpService } from "@toolyard/react";
import { LaptopMinimal, Plus, RefreshCw, Trash2 } from "lucide-react";
import { useState } from "react";
import { sentence } from "../lib/query.ts";
import { ago, plural } from "../lib/words.ts";
import { Button, Sheet, Switch } from "../parts/parts.tsx";

export function McpServices() {
  const { services, add, remove, setEnabled, refresh } = useMcpServices();
  const [adding, setAdding] = useState(false);
  return (
    <section className="stack" aria-label="MCP services of this browser">
      <div className="row wrap">
        <h2 className="row grow">
          <LaptopMinimal size={18} aria-hidden /> MCP services of this browser
        </h2>
        <Button icon={Plus} onClick={() => setAdding(true)}>
          Add a service
        </Button>
      </div>
      {services.length === 0 ? (
        <p className="soft small">None. A service that only your machine reaches can be used here: this browser calls it, and its address and token stay in it.</p>
      ) : (
        <ul className="list">
          {services.map((service) => (
            <Line key={service.id} service={service} onEnable={(on) => setEnabled(service.id, on)} onRemove={() => remove(service.id)} onTest={() => refresh(service.id)} />
          ))}
        </ul>
      )}
      <Sheet title="Add an MCP service" open={adding} onClose={() => setAdding(false)}>
        <NewService onAdd={add} onDone={() => setAdding(false)} />
      </Sheet>
    </section>
  );
}

function Line({ service, onEnable, onRemove, onTest }: { service: McpService; onEnable: (on: boolean) => void; onRemove: () => void; onTest: () => Promise<void> }) {
  const [state, setState] = useState<{ busy?: boolean; wrong?: string; fine?: boolean }>({});
  const test = () => {
    setState({ busy: true });
    onTest().then(
      () => setState({ fine: true }),
      (thrown: unknown) => setState({ wrong: sentence(thrown) }),
    );
  };
  return (
    <li className="line">
      <div className="line-body">
        <div className="row wrap">
          <span className="line-title">{service.name}</span>
          {state.fine && <span className="badge low" role="status">Answers</span>}
        </div>
        <p className="small soft cut">
          {plural(service.tools.length, "tool")} · {service.url}
          {service.token ? " · with a token" : ""} · listed {ago(service.listedAt)}
        </p>
        {state.wrong && <p className="small tone-high" role="alert">{state.wrong}</p>}
      </div>
      <div className="actions">
        <Button look="tiny" icon={RefreshCw} busy={state.busy ?? false} aria-label={`Test ${service.name}`} onClick={test}>
          <span className="wide">Test</span>
        </Button>
        <Switch checked={service.enabled !== false} label={`Use ${service.name}`} onChange={onEnable} />
        <Button look="plain icon" icon={Trash2} aria-label={`Remove ${service.name}`} onClick={onRemove} />
      </div>
    </li>
  );
}

function NewService({ onAdd, onDone }: { onAdd: ReturnType<typeof useMcpServices>["add"]; onDone: () => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const add = async () => {
    setBusy(true);
    setWrong(undefined);
    try {
      await onAdd({ name, url, token: token || undefined });
      onDone();
    } catch (thrown) {
      setWrong(sentence(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <label className="label">
        Name
        <input className="field" required value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label className="label">
        Address
        <input className="field" required inputMode="url" placeholder="http://127.0.0.1:3000/mcp" value={url} onChange={(event) => setUrl(event.target.value)} />
        <span className="soft small">Its streamable HTTP endpoint. The gateway's operator says which addresses a page may call.</span>
      </label>
      <label className="label">
        Token
        <input className="field" type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} />
        <span className="soft small">If it wants one. It is kept in this browser, readable for whoever uses it.</span>
      </label>
      {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
      <div className="row">
        <Button type="submit" look="main" busy={busy}>
          Connect
        </Button>
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </form>
  );
}
