/** A configuration as a form and as JSON: two views of one draft. */
import { Tabs } from "radix-ui";
import { useMemo, useState } from "react";
import { get, post } from "../api/gateway.ts";
import type { Model } from "../api/types.ts";
import { sentence, touch, useQuery } from "../lib/query.ts";
import { go } from "../lib/router.tsx";
import { Button } from "../parts/parts.tsx";
import { AgentForm } from "./AgentForm.tsx";
import { check, faultOf, withAt, type Fault } from "./check.ts";
import type { Draft } from "./fields.tsx";

type Read = { value: unknown } | { wrong: string };

export function AgentEditor({ text, isNew = false, onSaved }: { text: string; isNew?: boolean; onSaved?: () => void }) {
  const models = useQuery("models", () => get<{ models: Model[] }>("/api/models"));
  const [value, setValue] = useState(text);
  const [tab, setTab] = useState("form");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Fault>();
  const [saved, setSaved] = useState<string>();
  const read = useMemo(() => parse(value), [value]);
  const faults = useMemo(() => ("wrong" in read ? [] : check(read.value)), [read]);
  const shown = refused ? [...faults, refused] : faults;
  const change = (next: string) => {
    setValue(next);
    setSaved(undefined);
    setRefused(undefined);
  };
  const draft: Draft = {
    config: "wrong" in read ? {} : read.value,
    faults: shown,
    set: (path, next) => change(JSON.stringify(withAt("wrong" in read ? {} : read.value, path, next), null, 2)),
  };
  const save = async () => {
    if ("wrong" in read || faults.length > 0) return;
    setBusy(true);
    setRefused(undefined);
    setSaved(undefined);
    try {
      const done = await post<{ created: boolean; configHash: string }>("/api/agents", { config: read.value });
      setSaved(done.created ? "The agent was made." : `Saved as version ${done.configHash.slice(0, 8)}.`);
      touch("agents");
      onSaved?.();
      const made = (read.value as { agent?: { name?: string } }).agent?.name;
      if (isNew && made) go(`/agents/${made}`);
    } catch (thrown) {
      setRefused(faultOf(sentence(thrown)));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Tabs.Root value={tab} onValueChange={setTab}>
        <Tabs.List className="tabs" aria-label="How to change the agent">
          <Tabs.Trigger className="tab" value="form" disabled={"wrong" in read}>
            Form
          </Tabs.Trigger>
          <Tabs.Trigger className="tab" value="json">
            JSON
          </Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="form" className="tab-room">
          <AgentForm draft={draft} models={models.data?.models ?? []} isNew={isNew} />
        </Tabs.Content>
        <Tabs.Content value="json" className="tab-room stack">
          <label className="label">
            Configuration
            <textarea className="field code editor" spellCheck={false} value={value} aria-invalid={"wrong" in read || shown.length > 0} onChange={(event) => change(event.target.value)} />
          </label>
        </Tabs.Content>
      </Tabs.Root>
      <Faults read={read} faults={shown} />
      {saved && <p className="notice fine" role="status">{saved}</p>}
      <div className="row">
        <Button type="submit" look="main" busy={busy} disabled={"wrong" in read || faults.length > 0}>
          Save
        </Button>
        <Button disabled={value === text} onClick={() => change(text)}>
          Undo changes
        </Button>
      </div>
    </form>
  );
}

function Faults({ read, faults }: { read: Read; faults: Fault[] }) {
  if ("wrong" in read) return <p className="notice wrong" role="alert">{read.wrong}</p>;
  if (faults.length === 0) return null;
  return (
    <div className="notice wrong" role="alert">
      <ul>
        {faults.map((fault, place) => (
          <li key={place}>
            {fault.path && <span className="mono">{fault.path} </span>}
            {fault.says}
          </li>
        ))}
      </ul>
    </div>
  );
}

function parse(text: string): Read {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (thrown) {
    return { wrong: `Not JSON yet: ${sentence(thrown)}` };
  }
}
