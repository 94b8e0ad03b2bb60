// The components, as a person uses them.
import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { StrictMode, type ReactElement } from "react";
import { beforeAll, expect, test } from "vitest";
import { RunTimeline, SELECTION_KEY, ToolPicker, ToolyardChat, type PageTools } from "../src/index.js";
import { backend, fresh, Page, user } from "./page.js";

const agent = "careful-components";
const parameters = { type: "object" as const, properties: {} };
const tools: PageTools = {
  confetti: { description: "Throws confetti", parameters, execute: () => "thrown" },
  delete_rows: { description: "Deletes rows", parameters, execute: () => "deleted" },
};

beforeAll(async () => {
  await backend().putAgent({
    agent: { name: agent, system: "Be brief." },
    model: { provider: "demo", name: "demo" },
    tools: [{ name: "delete_account", description: "Deletes an account", inputSchema: { type: "object", properties: { id: { type: "number" } } }, executionType: "basic", execution: { mode: "pass-through" }, approval: "ask", visibility: "public" }],
  } as never);
});

function open(inside: ReactElement, name = fresh("ada")): string {
  render(
    <StrictMode>
      <Page name={name} tools={tools}>
        {inside}
      </Page>
    </StrictMode>,
  );
  return name;
}

function write(text: string): void {
  const field = screen.getByLabelText("Message");
  fireEvent.change(field, { target: { value: text } });
  fireEvent.keyDown(field, { key: "Enter" });
}

test("c1 a person writes, the answer streams, calls and sources show", async () => {
  open(<ToolyardChat id={fresh("chat")} empty="Ask me" showModels />);
  expect(screen.getByText("Ask me")).toBeTruthy();
  await screen.findByRole("option", { name: "Demo" });
  write("say look here\ncite https://example.com/a\ncall confetti {}");
  await screen.findByText(/This answer cites/);
  const call = await screen.findByText((_, element) => element?.tagName === "SUMMARY" && element.textContent === "confetti answered");
  expect(call).toBeTruthy();
  await screen.findByText(/Tool confetti answered: "?thrown/);
  const sources = within(screen.getByRole("list", { name: "Sources" }));
  expect(sources.getByRole("link").getAttribute("href")).toBe("https://example.com/a");
  expect((screen.getByLabelText("Message") as HTMLTextAreaElement).value).toBe("");
});

test("c15 the card shows tool, risk, description and arguments, and allows", async () => {
  open(<ToolyardChat id={fresh("chat")} agent={agent} />);
  write('call delete_account {"id": 12}');
  const card = within(await screen.findByRole("region", { name: "Allow delete_account?" }));
  expect(card.getByText("High Risk")).toBeTruthy();
  expect(card.getByText("Deletes an account")).toBeTruthy();
  expect(card.getByText(/"id": 12/)).toBeTruthy();
  expect(card.getByRole("note")).toBeTruthy();
  fireEvent.click(card.getByRole("button", { name: "Allow once" }));
  await screen.findByText(/answered: .*"id":12/);
  await waitFor(() => expect(screen.queryByRole("region", { name: "Allow delete_account?" })).toBeNull());
});

test("c15 arguments are edited in the card, faulty ones are not sent, and a denial is shown", async () => {
  open(<ToolyardChat id={fresh("chat")} agent={agent} />);
  write('call delete_account {"id": 1}\ncall delete_account {"id": 2}');
  const cards = await waitFor(() => {
    const found = screen.getAllByRole("region", { name: "Allow delete_account?" });
    expect(found).toHaveLength(2);
    return found;
  });
  const first = within(cards[0]!);
  fireEvent.click(first.getByRole("button", { name: "Edit" }));
  fireEvent.change(first.getByLabelText("Arguments as JSON"), { target: { value: "{broken" } });
  fireEvent.click(first.getByRole("button", { name: "Allow once" }));
  await first.findByRole("alert");
  fireEvent.change(first.getByLabelText("Arguments as JSON"), { target: { value: '{"id": 33}' } });
  fireEvent.click(first.getByRole("button", { name: "Allow once" }));
  const left = await waitFor(() => {
    const found = screen.getAllByRole("region", { name: "Allow delete_account?" });
    expect(found).toHaveLength(1);
    return within(found[0]!);
  });
  fireEvent.click(left.getByRole("button", { name: "Deny" }));
  await screen.findByText(/"id":33/);
  await screen.findByText((_, element) => element?.tagName === "SUMMARY" && element.textContent === "delete_account was denied");
});

test("c18 the picker counts, searches and selects, and the agent's own tools too", async () => {
  open(<ToolPicker agent={agent} />);
  const page = within(await screen.findByRole("group", { name: /This page/ }));
  expect(page.getByText("2/2 selected")).toBeTruthy();
  fireEvent.click(page.getByRole("checkbox", { name: "confetti" }));
  expect(page.getByText("1/2 selected")).toBeTruthy();
  fireEvent.click(page.getByRole("button", { name: "Select all" }));
  expect(page.getByText("2/2 selected")).toBeTruthy();
  fireEvent.click(page.getByRole("button", { name: "Deselect all" }));
  expect(page.getByText("0/2 selected")).toBeTruthy();
  const gateway = within(await screen.findByRole("group", { name: /Gateway/ }));
  expect(gateway.getByRole("checkbox", { name: "delete_account" })).toBeTruthy();
  fireEvent.change(screen.getByRole("searchbox"), { target: { value: "account" } });
  expect(screen.queryByRole("group", { name: /This page/ })).toBeNull();
});

test("c20 a tool that was deselected is not offered with the next message", async () => {
  open(
    <>
      <ToolyardChat id={fresh("chat")} agent={agent} />
      <ToolPicker agent={agent} />
    </>,
  );
  fireEvent.click(await screen.findByRole("checkbox", { name: "confetti" }));
  fireEvent.click(await screen.findByRole("checkbox", { name: "delete_account" }));
  write("call confetti {}\ncall delete_account {}");
  await waitFor(() => expect(document.body.textContent).toMatch(/confetti.*(not|unknown)/i));
  expect(screen.queryByRole("region", { name: "Allow delete_account?" })).toBeNull();
});

test("c20 what was deselected before stays so when no picker is there", async () => {
  localStorage.setItem(SELECTION_KEY, JSON.stringify({ "gateway:delete_account": false, "page:confetti": false }));
  open(<ToolyardChat id={fresh("chat")} agent={agent} />);
  write("call delete_account {}");
  await waitFor(() => expect(document.body.textContent).toMatch(/delete_account.*(not|unknown)/i));
  expect(screen.queryByRole("region", { name: "Allow delete_account?" })).toBeNull();
});

test("a run's timeline shows its steps, calls and end", async () => {
  const name = fresh("ada");
  const ada = user(name);
  ada.registerTool({ name: "confetti", description: "Throws", parameters, execute: () => "thrown" });
  await ada.chatStream({ id: "t", messages: [{ role: "user", content: "call confetti {}" }] }).response;
  const [space] = await ada.spaces.list();
  const [run] = await ada.spaces.runs(space!.id);
  open(<RunTimeline runId={run!.id} />, name);
  const timeline = within(await screen.findByRole("region", { name: "Run" }));
  await timeline.findByText("Completed");
  const lines = timeline.getAllByRole("listitem").map((line) => [line.dataset["kind"], line.dataset["state"]]);
  expect(lines).toEqual([["step", "done"], ["call", "done"], ["step", "done"], ["end", "done"]]);
  expect(timeline.getByText(/completed/)).toBeTruthy();
});

test("a run is replayed from a step of its timeline", async () => {
  const name = fresh("ada");
  const ada = user(name);
  let thrown = 0;
  ada.registerTool({ name: "confetti", description: "Throws", parameters, execute: () => (thrown += 1) });
  await ada.chatStream({ id: "t", messages: [{ role: "user", content: "call confetti {}" }] }).response;
  const [space] = await ada.spaces.list();
  const [run] = await ada.spaces.runs(space!.id);
  let made: string | undefined;
  const replay = async (step: number) => void (made = (await ada.runs.replay(run!.id, { step })).runId);
  const page = render(
    <Page name={name}>
      <RunTimeline runId={run!.id} onReplay={(step) => void replay(step)} />
    </Page>,
  );
  fireEvent.click(await screen.findByRole("button", { name: "Replay from step 2" }));
  await waitFor(() => expect(made).toMatch(/^run_/));
  page.unmount();
  open(<RunTimeline runId={made} />, name);
  const timeline = within(await screen.findByRole("region", { name: "Run" }));
  await timeline.findByText("Completed");
  expect(timeline.getAllByText("taken over")).toHaveLength(2);
  expect(thrown).toBe(1);
});
