// A page of a user at the real gateway.
import { act, render, waitFor } from "@testing-library/react";
import { StrictMode, type ReactElement, type ReactNode } from "react";
import { inject } from "vitest";
import { ToolyardClient } from "@toolyard/client";
import { token } from "../../client/test/gateway.js";
import { ToolyardChatProvider, useToolyardChat, type OpenChat, type ToolyardChatProviderProps, type UseToolyardChatOptions } from "../src/index.js";

export const SECRET_KEY = "sk_test_of_the_packages_0001";
export const PUBLIC_KEY = "pk_test_of_the_packages_0001";

let count = 0;

/** A name that no other test has. */
export function fresh(word: string): string {
  count += 1;
  return `${word}-${Date.now().toString(36)}-${count}`;
}

export function backend(): ToolyardClient {
  return new ToolyardClient({ baseUrl: inject("gatewayUrl"), auth: { secretKey: SECRET_KEY } });
}

export function user(name: string): ToolyardClient {
  return new ToolyardClient({ baseUrl: inject("gatewayUrl"), auth: { publicKey: PUBLIC_KEY, token: () => token(name) } });
}

/** The provider of a user. */
export function Page({ name, children, ...props }: { name: string; children: ReactNode } & Partial<ToolyardChatProviderProps>): ReactElement {
  return (
    <ToolyardChatProvider gatewayUrl={inject("gatewayUrl")} publicKey={PUBLIC_KEY} jwt={() => token(name)} {...props}>
      {children}
    </ToolyardChatProvider>
  );
}

export interface Shown<Value> {
  readonly now: Value;
  unmount(): void;
}

/** Renders a hook on a page and shows what it gives. */
export function show<Value>(
  name: string,
  use: () => Value,
  { strict = false, ...props }: { strict?: boolean } & Partial<ToolyardChatProviderProps> = {},
): Shown<Value> {
  let now: Value | undefined;
  function Inside(): null {
    now = use();
    return null;
  }
  const page = (
    <Page name={name} {...props}>
      <Inside />
    </Page>
  );
  const { unmount } = render(strict ? <StrictMode>{page}</StrictMode> : page);
  return {
    get now() {
      return now as Value;
    },
    unmount,
  };
}

/** A chat on a page. */
export function chat(
  name: string,
  options: UseToolyardChatOptions,
  more: { strict?: boolean } & Partial<ToolyardChatProviderProps> = {},
): Shown<OpenChat> {
  return show(name, () => useToolyardChat(options), more);
}

/** Says something, and does not wait for the answer. */
export async function say({ now }: Shown<OpenChat>, text: string): Promise<void> {
  await act(async () => {
    void now.sendMessage(text);
  });
}

/** The text of a message. */
export function textOf(message: { parts: { type: string }[] } | undefined): string {
  return (message?.parts ?? []).map((part) => ("text" in part && part.type === "text" ? String(part.text) : "")).join("");
}

/** Waits until the chat is ready and its last answer says something. */
export async function hears(shown: Shown<OpenChat>, words: RegExp | string): Promise<void> {
  await waitFor(() => {
    const { status, messages, error } = shown.now;
    const text = textOf(messages.at(-1));
    const fits = typeof words === "string" ? text.includes(words) : words.test(text);
    if (status !== "ready" || messages.at(-1)?.role !== "assistant" || !fits) {
      throw new Error(`status ${status}, ${error?.message ?? "no error"}: ${JSON.stringify(messages, null, 1)}`);
    }
  });
}
