// Long histories, and histories with edits in them.
import { act, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { StrictMode } from "react";
import { expect, test } from "vitest";
import { ToolyardChat } from "../src/index.js";
import { backend, chat, fresh, hears, Page, say, textOf, user } from "./page.js";

/** A space of a user with many messages. */
async function longSpace(name: string, count: number): Promise<string> {
  const first = chat(name, { id: fresh("chat") });
  await say(first, "say hello");
  await hears(first, "hello");
  await waitFor(() => expect(first.now.spaceId).toMatch(/^spc_/));
  const spaceId = first.now.spaceId ?? "";
  first.unmount();
  const ada = user(name);
  for (let at = 1; at <= count; at += 1) await ada.spaces.post(spaceId, { content: `note ${at}.`, triggerAgents: false });
  return spaceId;
}

test("the end of a long chat is read first, earlier messages when they are wanted, and a sync keeps them", async () => {
  const name = fresh("ada");
  const spaceId = await longSpace(name, 120);
  const shown = chat(name, { id: spaceId }, { strict: true });
  await waitFor(() => expect(textOf(shown.now.messages.at(-1))).toBe("note 120."));
  expect(shown.now.messages).toHaveLength(100);
  expect(shown.now.hasOlder).toBe(true);
  await act(() => shown.now.loadOlder());
  expect(shown.now.messages).toHaveLength(122);
  expect(textOf(shown.now.messages[0])).toBe("say hello");
  expect(shown.now.hasOlder).toBe(false);
  await backend().spaces.post(spaceId, { content: "from the backend", role: "system", triggerAgents: false } as never);
  await act(() => shown.now.sync());
  await waitFor(() => expect(shown.now.messages).toHaveLength(123));
  expect(new Set(shown.now.messages.map(({ id }) => id)).size).toBe(123);
});

test("the ready-made chat has a button for it", async () => {
  const name = fresh("ada");
  const spaceId = await longSpace(name, 101);
  render(
    <StrictMode>
      <Page name={name}>
        <ToolyardChat id={spaceId} />
      </Page>
    </StrictMode>,
  );
  await screen.findByText("note 101.");
  expect(screen.queryByText("note 1.")).toBeNull();
  fireEvent.click(await screen.findByRole("button", { name: "Show earlier messages" }));
  await screen.findByText("note 1.");
  await waitFor(() => expect(screen.queryByRole("button", { name: "Show earlier messages" })).toBeNull());
});

test("of edits and other answers only the line shows that the chat goes on with", async () => {
  const name = fresh("ada");
  const id = fresh("chat");
  const first = chat(name, { id });
  for (const words of ["say one", "say two", "say three"]) {
    await say(first, words);
    await hears(first, words.slice(4));
  }
  // An edit of the first question leaves all the rest behind, however much that is.
  const question = first.now.messages[0]?.id ?? "";
  await act(async () => void first.now.sendMessage({ text: "say other", messageId: question }));
  await hears(first, "other");
  first.unmount();
  const again = chat(name, { id });
  await waitFor(() => expect(again.now.messages.map(textOf)).toEqual(["say other", "other"]));
});
