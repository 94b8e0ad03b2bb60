/** The messages of a chat: every state that a person can meet. */
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { begin, NOTHING, type Conversation } from "../../src/chat/conversation.ts";
import { Talk } from "../../src/chat/Talk.tsx";

const view = (seq: number, role: "user" | "assistant", text: string, runId?: string) => ({
  id: `m${seq}`,
  smartSpaceId: "spc_1",
  seq,
  role,
  branchId: "main",
  content: text,
  parts: [{ type: "text" as const, text }],
  createdAt: "2026-01-01T00:00:00Z",
  ...(runId === undefined ? {} : { runId }),
});
const run = (status: string, more: object = {}) => ({ id: "run_1", status, agentName: "assistant", createdAt: "", updatedAt: "", ...more }) as never;
const nothing = () => Promise.resolve();

function show(state: Conversation, more: Partial<Parameters<typeof Talk>[0]> = {}) {
  return render(<Talk state={state} agent="assistant" loadOlder={nothing} {...more} />);
}

test("a chat that is being read says so", () => {
  show(NOTHING);
  expect(screen.getByRole("status", { name: "Loading the chat" })).toBeTruthy();
});

test("an ended answer can be had again, and its question can be edited", () => {
  const [onRetry, onEdit] = [vi.fn(), vi.fn()];
  show(begin([view(1, "user", "hello"), view(2, "assistant", "hi there", "run_1")], [run("completed")], []), { onRetry, onEdit });
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  expect(onRetry).toHaveBeenCalledOnce();
  fireEvent.click(screen.getByRole("button", { name: "Edit" }));
  fireEvent.change(screen.getByLabelText("Your message"), { target: { value: "hello again" } });
  fireEvent.click(screen.getByRole("button", { name: "Send instead" }));
  expect(onEdit.mock.calls[0]?.[1]).toBe("hello again");
});

test("while a run works nothing can be had again, and a failure is said with its reason", () => {
  const { unmount } = show(begin([view(1, "user", "hello")], [run("running")], []), { onRetry: vi.fn(), onEdit: vi.fn() });
  expect(screen.queryByRole("button", { name: "Retry" })).toBeNull();
  expect(screen.queryByRole("button", { name: "Edit" })).toBeNull();
  unmount();
  show(begin([view(1, "user", "hello")], [run("failed", { errorCode: "model_stream_cut" })], []));
  expect(screen.getByRole("alert").textContent).toContain("model_stream_cut");
});

test("earlier messages are read when they are asked for, once at a time", async () => {
  let read = () => undefined as void;
  const loadOlder = vi.fn(() => new Promise<void>((done) => (read = done)));
  show(begin([view(101, "user", "late")], [], [], true), { loadOlder });
  const more = screen.getByRole("button", { name: "Show earlier messages" });
  fireEvent.click(more);
  fireEvent.click(more);
  expect(loadOlder).toHaveBeenCalledOnce();
  read();
  await vi.waitFor(() => expect((more as HTMLButtonElement).disabled).toBe(false));
});
