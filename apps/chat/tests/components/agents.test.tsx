/** The form of an agent, and what is wrong with a configuration. */
import { fireEvent, render, screen } from "@testing-library/react";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { useState } from "react";
import { expect, test } from "vitest";
import { AgentForm } from "../../src/agents/AgentForm.tsx";
import { check, faultOf, withAt } from "../../src/agents/check.ts";

const config = {
  agent: { name: "helper", system: "Help." },
  model: { provider: "demo", name: "demo" },
  tools: [
    { name: "look", description: "Looks.", inputSchema: { type: "object" } },
    { name: "pay", description: "Pays.", inputSchema: { type: "object" }, approval: "ask" },
  ],
};

/** The form with a draft behind it. */
function Form({ onChange }: { onChange: (config: Record<string, unknown>) => void }) {
  const [draft, setDraft] = useState<Record<string, unknown>>(config);
  const set = (path: string, value: unknown) => {
    const next = withAt(draft, path, value);
    setDraft(next);
    onChange(next);
  };
  return <AgentForm draft={{ config: draft, faults: check(draft), set }} models={[]} isNew />;
}

function open(): { now: Record<string, unknown> } {
  const kept = { now: config as Record<string, unknown> };
  render(<Form onChange={(next) => (kept.now = next)} />);
  return kept;
}

test("every agent of the repository fits the schema", () => {
  const folder = join(import.meta.dirname, "../../../../agents");
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
    expect(check(JSON.parse(readFileSync(join(folder, file), "utf8"))), file).toEqual([]);
  }
});

test("faults are said with their paths", () => {
  const paths = (value: unknown) => check(value).map(({ path, says }) => `${path} ${says}`);
  expect(paths({})).toEqual(["agent is needed", "model is needed"]);
  expect(paths({ ...config, nonsense: 1 })).toEqual(["nonsense is not known"]);
  expect(paths(withAt(config, "loop.maxSteps", -1))).toEqual(["loop.maxSteps must be at least 0"]);
  expect(paths(withAt(config, "loop.maxSteps", 1.5))).toEqual(["loop.maxSteps must be a whole number"]);
  expect(paths(withAt(config, "loop.onMessage", "shout"))).toEqual(["loop.onMessage must be one of queue, interrupt, reject"]);
  expect(paths(withAt(config, "permissions.askFrom", "never"))).toEqual(["permissions.askFrom must be one of low, medium, high"]);
  expect(paths({ ...config, tools: [{ name: "a", risk: "huge" }] })).toEqual(["tools.0.risk must be one of low, medium, high"]);
  expect(faultOf("Invalid agent config: tools[2].risk: no such risk")).toEqual({ path: "tools.2.risk", says: "no such risk" });
  expect(faultOf("The database is away")).toEqual({ path: "", says: "The database is away" });
});

test("a field shows its own fault, and an empty one leaves nothing behind", () => {
  const kept = open();
  const name = screen.getByLabelText("Name");
  fireEvent.change(name, { target: { value: "two words" } });
  expect(name.getAttribute("aria-invalid")).toBe("true");
  const says = document.getElementById(name.getAttribute("aria-describedby") ?? "");
  expect(says?.textContent).toMatch(/begins with a letter/);
  fireEvent.change(screen.getByLabelText("Tokens of a run"), { target: { value: "500" } });
  expect(kept.now["budget"]).toEqual({ maxTokens: 500 });
  fireEvent.change(screen.getByLabelText("Tokens of a run"), { target: { value: "" } });
  expect("budget" in kept.now).toBe(false);
});

test("a tool is taken away and put back where it was, with its permission", () => {
  const kept = open();
  const tools = () => (kept.now["tools"] as { name: string; approval?: string }[]).map(({ name, approval }) => [name, approval]);
  fireEvent.click(screen.getByRole("switch", { name: "Has look" }));
  expect(tools()).toEqual([["pay", "ask"]]);
  fireEvent.click(screen.getByRole("switch", { name: "Has look" }));
  expect(tools()).toEqual([["look", undefined], ["pay", "ask"]]);
  fireEvent.change(screen.getByLabelText("Permission of pay"), { target: { value: "deny" } });
  expect(tools()).toEqual([["look", undefined], ["pay", "deny"]]);
  fireEvent.change(screen.getByLabelText("Permission of pay"), { target: { value: "" } });
  expect(tools()).toEqual([["look", undefined], ["pay", undefined]]);
});
