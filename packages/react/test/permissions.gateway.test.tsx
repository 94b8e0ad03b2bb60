// Calls that ask for a permission.
import { act, waitFor } from "@testing-library/react";
import { beforeAll, expect, test, vi } from "vitest";
import { usePermissions, useToolyardChat, useWaits } from "../src/index.js";
import { backend, chat, fresh, hears, say, show, user } from "./page.js";

const amount = { type: "object", properties: { amount: { type: "number" } } };
const agent = "careful-react";

beforeAll(async () => {
  await backend().putAgent({
    agent: { name: agent, system: "Be brief." },
    model: { provider: "demo", name: "demo" },
    tools: [
      { name: "pay", description: "Pays", inputSchema: amount, executionType: "basic", execution: { mode: "pass-through" }, approval: "ask", visibility: "public" },
      { name: "paint", description: "Paints on the page", inputSchema: amount, approval: "ask" },
    ],
  } as never);
});

const state = (page: ReturnType<typeof chat>, type: string) => page.now.messages.at(-1)?.parts.find((part) => part.type === type);

test("c15 a question shows tool, risk and the exact arguments, and the call runs when it is allowed", async () => {
  const page = chat(fresh("ada"), { id: fresh("chat"), agent }, { strict: true });
  await say(page, 'call pay {"amount": 5}');
  await waitFor(() => expect(page.now.permissions).toHaveLength(1));
  const [request] = page.now.permissions;
  expect(request).toMatchObject({ toolName: "pay", description: "Pays", risk: "low", args: { amount: 5 } });
  expect(state(page, "tool-pay")).toMatchObject({ state: "approval-requested" });
  await act(() => page.now.answerPermission(request!.id, { decision: "allow" }));
  await hears(page, '"amount":5');
  expect(state(page, "tool-pay")).toMatchObject({ state: "output-available" });
  await waitFor(() => expect(page.now.permissions).toHaveLength(0));
});

test("c13 a denied tool of the page does not run and the model hears it", async () => {
  const paint = vi.fn(() => "painted");
  const page = chat(fresh("ada"), { id: fresh("chat"), agent }, { tools: { paint } });
  await say(page, 'call paint {"amount": 1}');
  await waitFor(() => expect(page.now.permissions).toHaveLength(1));
  expect(paint).not.toHaveBeenCalled();
  await act(() => page.now.answerPermission(page.now.permissions[0]!.id, { decision: "deny", message: "not today" }));
  await hears(page, /not today/);
  expect(paint).not.toHaveBeenCalled();
  expect(state(page, "tool-paint")).toMatchObject({ state: "output-denied" });
});

test("c11 an allowed tool of the page runs once, with the arguments that were edited", async () => {
  const paint = vi.fn(({ amount: given }: { amount: number }) => ({ painted: given }));
  const page = chat(fresh("ada"), { id: fresh("chat"), agent }, { tools: { paint }, strict: true });
  await say(page, 'call paint {"amount": 1}');
  await waitFor(() => expect(page.now.permissions).toHaveLength(1));
  const [request] = page.now.permissions;
  await act(() => page.now.answerPermission(request!.id, { decision: "allow", editedArgs: { amount: 2 } }));
  await hears(page, '{"painted":2}');
  expect(paint).toHaveBeenCalledTimes(1);
});

test("c11 what is allowed for the session does not ask again", async () => {
  const name = fresh("ada");
  const page = show(name, () => ({ chat: useToolyardChat({ id: "lasting", agent }), permissions: usePermissions() }));
  await act(async () => void page.now.chat.sendMessage('call pay {"amount": 1}'));
  await waitFor(() => expect(page.now.permissions.requests).toHaveLength(1));
  await act(() => page.now.permissions.allow(page.now.permissions.requests[0]!, { remember: "session" }));
  const inner = { get now() { return page.now.chat; }, unmount: page.unmount };
  await hears(inner, '"amount":1');
  await act(async () => void page.now.chat.sendMessage('call pay {"amount": 2}'));
  await hears(inner, '"amount":2');
  const grants = await page.now.permissions.listGrants();
  expect(grants.map((grant) => grant.tool)).toEqual(["pay"]);
  await page.now.permissions.revokeGrant(grants[0]!.id);
  expect(await page.now.permissions.listGrants()).toHaveLength(0);
});

test("a question that is answered elsewhere goes away here, and the chat goes on", async () => {
  const name = fresh("ada");
  const page = chat(name, { id: fresh("chat"), agent });
  await say(page, 'call pay {"amount": 7}');
  await waitFor(() => expect(page.now.permissions).toHaveLength(1));
  const other = user(name);
  const [wait] = await other.waits.approvals();
  await other.waits.answer(wait!.id, { decision: "allow" });
  await hears(page, '"amount":7');
  await waitFor(() => expect(page.now.permissions).toHaveLength(0));
});

test("a question survives a remount of the whole page", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const first = chat(name, { id, agent });
  await say(first, 'call pay {"amount": 8}');
  await waitFor(() => expect(first.now.permissions).toHaveLength(1));
  first.unmount();
  const second = chat(name, { id, agent });
  await waitFor(() => expect(state(second, "tool-pay")).toMatchObject({ state: "approval-requested" }));
  await waitFor(() => expect(second.now.permissions).toHaveLength(1));
  await act(() => second.now.answerPermission(second.now.permissions[0]!.id, { decision: "allow" }));
  await hears(second, '"amount":8');
});

test("one inbox shows the waits of all spaces, and of nobody else", async () => {
  const name = fresh("ada");
  const ada = user(name);
  const asks = (id: string) =>
    ada.chatStream({ id, agent, messages: [{ role: "user", content: 'call pay {"amount": 3}' }] }).response;
  await Promise.all([asks(fresh("one")), asks(fresh("two"))]);
  const inbox = show(name, () => useWaits());
  await waitFor(() => expect(inbox.now.waits).toHaveLength(2));
  const of = show(name, () => useWaits({ spaceId: inbox.now.waits[0]?.smartSpaceId }));
  await waitFor(() => expect(of.now.waits).toHaveLength(1));
  await act(() => inbox.now.answer(inbox.now.waits[0]!.id, { decision: "deny" }));
  await waitFor(() => expect(inbox.now.waits).toHaveLength(1));
  const mallory = show(fresh("mallory"), () => useWaits());
  await waitFor(() => expect(mallory.now.isLoading).toBe(false));
  expect(mallory.now.waits).toEqual([]);
});
