/** The parts of a configuration that most agents need, as a form. The rest stays as it is. */
import { useState } from "react";
import type { Model } from "../api/types.ts";
import { human } from "../lib/words.ts";
import { Switch } from "../parts/parts.tsx";
import { at } from "./check.ts";
import { ChoiceField, NumberField, TextField, type Draft } from "./fields.tsx";

interface ToolEntry {
  name?: string;
  description?: string;
  approval?: string;
  execution?: { action?: string };
  [more: string]: unknown;
}

const RISKS = { low: "Every call", medium: "Medium and high risk", high: "High risk only" };
const ANSWERERS = { trigger: "Whoever asked the agent", members: "Every member of the chat", admin: "Admins of the chat" };
const APPROVALS = { allow: "Allow", ask: "Ask first", deny: "Deny" };

export function AgentForm({ draft, models, isNew }: { draft: Draft; models: Model[]; isNew: boolean }) {
  return (
    <div className="stack form">
      <fieldset className="group">
        <legend>Who it is</legend>
        {isNew && <TextField draft={draft} path="agent.name" label="Name" about="It is part of addresses and stays as it is." />}
        <TextField draft={draft} path="agent.description" label="Description" about="For people who choose between agents." />
        <TextField draft={draft} path="agent.system" label="Instructions" rows={6} about="What the model reads before every conversation." />
      </fieldset>
      <fieldset className="group">
        <legend>Model</legend>
        <div className="pair">
          <TextField draft={draft} path="model.name" label="Model" list={[...new Set(models.map((model) => model.id))]} about="An id of this gateway, or provider/model." />
          <TextField draft={draft} path="model.provider" label="Provider" list={[...new Set(models.map((model) => model.provider))]} about="Empty: the model's own." />
        </div>
        <div className="pair">
          <NumberField draft={draft} path="model.temperature" label="Temperature" placeholder="0.7" about="0 is sober, 2 is wild." />
          <NumberField draft={draft} path="model.maxOutputTokens" label="Longest answer" placeholder="As the model has it" about="In tokens." />
        </div>
      </fieldset>
      <Tools draft={draft} />
      <fieldset className="group">
        <legend>Permissions</legend>
        <div className="pair">
          <ChoiceField draft={draft} path="permissions.askFrom" label="Ask before" choices={RISKS} none="As the gateway has it" about="Calls that reach outside." />
          <ChoiceField draft={draft} path="permissions.answerers" label="Who may answer" choices={ANSWERERS} none="Whoever asked the agent" />
        </div>
      </fieldset>
      <fieldset className="group">
        <legend>Limits</legend>
        <div className="pair">
          <NumberField draft={draft} path="loop.maxSteps" label="Steps of an answer" placeholder="5" />
          <NumberField draft={draft} path="loop.maxToolFailures" label="Failures in a row" placeholder="3" about="Then the run stops." />
          <NumberField draft={draft} path="budget.maxTokens" label="Tokens of a run" placeholder="No limit" />
          <NumberField draft={draft} path="budget.maxCostUsd" label="Cost of a run, in dollars" placeholder="No limit" about="Needs a price of the model." />
        </div>
      </fieldset>
    </div>
  );
}

function nameOf(tool: ToolEntry): string {
  return tool.name ?? tool.execution?.action ?? "tool";
}

/** Tools that can be taken away and put back, with what each says about permission. */
function Tools({ draft }: { draft: Draft }) {
  const list = at(draft.config, "tools");
  const tools = (Array.isArray(list) ? list : []) as ToolEntry[];
  // What was here when the form opened can be put back.
  const [known] = useState(tools);
  const names = new Set(tools.map(nameOf));
  const shown = [...known, ...tools.filter((tool) => !known.some((each) => nameOf(each) === nameOf(tool)))];
  const put = (next: ToolEntry[]) => draft.set("tools", next);
  const approve = (tool: ToolEntry, approval: string) => {
    const { approval: _before, ...rest } = tool;
    put(tools.map((each) => (nameOf(each) === nameOf(tool) ? (approval ? { ...rest, approval } : rest) : each)));
  };
  return (
    <fieldset className="group">
      <legend>Tools</legend>
      {shown.length === 0 && <p className="small soft">No tools of its own. New ones are written as JSON; tools of this page, of plugins and of MCP servers come with a chat.</p>}
      <ul className="stack tight">
        {shown.map((tool) => {
          const name = nameOf(tool);
          const place = tools.findIndex((each) => nameOf(each) === name);
          const wrong = draft.faults.find((fault) => place >= 0 && fault.path.startsWith(`tools.${place}`));
          return (
            <li key={name} className="tool-choice">
              <div className="line-body">
                <span className="line-title">{human(name)}</span>
                {tool.description && <p className="small soft">{tool.description}</p>}
                {wrong && (
                  <p className="small tone-high">
                    <span className="mono">{wrong.path}</span> {wrong.says}.
                  </p>
                )}
              </div>
              <select className="field" aria-label={`Permission of ${name}`} disabled={!names.has(name)} value={tools[place]?.approval ?? ""} onChange={(event) => approve(tools[place] ?? tool, event.target.value)}>
                <option value="">By its risk</option>
                {Object.entries(APPROVALS).map(([each, word]) => (
                  <option key={each} value={each}>
                    {word}
                  </option>
                ))}
              </select>
              <Switch checked={names.has(name)} label={`Has ${name}`} onChange={(on) => put(on ? shown.filter((each) => names.has(nameOf(each)) || each === tool) : tools.filter((each) => nameOf(each) !== name))} />
            </li>
          );
        })}
        <li className="tool-choice">
          <div className="line-body">
            <span className="line-title">Prebuilt tools</span>
            <p className="small soft">Goals, memories, plans, knowledge and the inbox.</p>
          </div>
          <Switch checked={at(draft.config, "prebuilt") === "all"} label="Has the prebuilt tools" onChange={(on) => draft.set("prebuilt", on ? "all" : undefined)} />
        </li>
      </ul>
    </fieldset>
  );
}
