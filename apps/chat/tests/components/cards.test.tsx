/** The cards of a chat: calls, permissions, questions. */
import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { WaitView } from "../../src/api/types.ts";
import type { Call } from "../../src/chat/conversation.ts";
import { InputCard } from "../../src/chat/InputCard.tsx";
import { PermissionCard } from "../../src/chat/PermissionCard.tsx";
import { ToolCard } from "../../src/chat/ToolCard.tsx";

const wait = (payload: NonNullable<WaitView["payload"]>, more: Partial<WaitView> = {}): WaitView => ({
  id: "wait_1",
  runId: "run_1",
  rootRunId: "run_1",
  kind: "approval",
  toolCallId: "call_1",
  toolName: "delete_rows",
  openedAt: "2026-01-01T00:00:00Z",
  mayAnswer: true,
  payload,
  ...more,
});

const names = () => screen.getAllByRole("button").map((button) => button.textContent);

test("c15 a permission shows tool, service, description, risk and the exact arguments", () => {
  render(<PermissionCard wait={wait({ args: { table: "users", all: true }, risk: "high", description: "Deletes rows for ever.", serviceId: "crm" })} />);
  const card = within(screen.getByRole("region", { name: "Allow “Delete rows”?" }));
  for (const words of ["High risk", "Deletes rows for ever.", "delete_rows", "crm"]) expect(card.getByText(words)).toBeTruthy();
  expect(card.getByLabelText("Arguments of delete_rows").textContent).toContain('"users"');
  expect(names()).toEqual(expect.arrayContaining(["Allow once", "For this chat", "Always", "Edit", "Deny"]));
});

test("c15 arguments that are no JSON are not sent, and the way back brings the old ones", async () => {
  render(<PermissionCard wait={wait({ args: { n: 1 }, risk: "low" })} />);
  fireEvent.click(screen.getByRole("button", { name: "Edit" }));
  const field = screen.getByLabelText("Arguments to use instead");
  expect((field as HTMLTextAreaElement).value).toBe('{\n  "n": 1\n}');
  fireEvent.change(field, { target: { value: "{n" } });
  fireEvent.click(screen.getByRole("button", { name: "Allow with these" }));
  expect((await screen.findByRole("alert")).textContent).toMatch(/no JSON/);
  fireEvent.click(screen.getByRole("button", { name: "Back" }));
  expect(screen.getByRole("button", { name: "Allow once" })).toBeTruthy();
});

test("who may not answer sees the question and no buttons", () => {
  render(<PermissionCard wait={wait({ args: {}, risk: "medium" }, { mayAnswer: false })} />);
  expect(screen.getByText("Somebody else has to answer this.")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Allow once" })).toBeNull();
});

test("a tool that asks offers its options, or a field", () => {
  const { unmount } = render(<InputCard wait={wait({ prompt: "Which colour?", options: ["red", { value: "b", label: "Blue" }] }, { kind: "input" })} />);
  expect(screen.getByText("Which colour?")).toBeTruthy();
  expect(names()).toEqual(["red", "Blue"]);
  unmount();
  render(<InputCard wait={wait({ prompt: "How many?" }, { kind: "input" })} />);
  expect((screen.getByRole("button", { name: "Answer" }) as HTMLButtonElement).disabled).toBe(true);
  fireEvent.change(screen.getByLabelText("Your answer"), { target: { value: "3" } });
  expect((screen.getByRole("button", { name: "Answer" }) as HTMLButtonElement).disabled).toBe(false);
});

test.each([
  ["writing", "Preparing"],
  ["asking", "Needs you"],
  ["running", "Running"],
  ["done", "Done"],
  ["failed", "Failed"],
  ["denied", "Denied"],
  ["expired", "Expired"],
  ["canceled", "Canceled"],
  ["uncertain", "Uncertain"],
] as const)("a call that is %s says %s, and opens to its input and output", (state, word) => {
  const call: Call = { id: "c", name: "write_file", state, target: "client", input: { path: "a.txt" }, output: "kept", startedAt: 1000, endedAt: 1250 };
  render(<ToolCard call={call} />);
  const line = screen.getByRole("button", { name: new RegExp(`Write file.*a\\.txt.*${word}`) });
  expect(line.getAttribute("aria-expanded")).toBe("false");
  fireEvent.click(line);
  expect(screen.getByLabelText("Input of write_file").textContent).toContain("a.txt");
  expect(screen.getByLabelText("Output of write_file").textContent).toContain("kept");
  expect(screen.getByText(/ran in this page in 250 ms/)).toBeTruthy();
});
