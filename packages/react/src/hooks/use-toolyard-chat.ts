import { useChat, type UseChatHelpers } from "@ai-sdk/react";
import type { ClientToolDefinition, WaitAnswer } from "@toolyard/client";
import { useCallback, useEffect, useId, useMemo, useState, type ChangeEvent } from "react";
import { randomName } from "../calls/exclusive.js";
import type { Connection } from "../chat/conversation.js";
import type { ToolyardMessage } from "../chat/message.js";
import type { ChatSettings } from "../chat/request.js";
import { useSession } from "../context.js";
import { useStore } from "../store.js";
import { PAGE_SERVICE } from "../tools/registry.js";
import type { PageTools } from "../tools/tool.js";
import { usePermissions, type PermissionRequest, type Permissions } from "./use-permissions.js";
import { useToolRegistry } from "./use-tool-registry.js";

export interface UseToolyardChatOptions extends ChatSettings {
  /** The conversation: a name of yours, or the id of a space. `defaultSpaceId` of the provider if missing, else a new one. */
  id?: string | undefined;
  /** More tools of the page, for as long as this component is there. */
  tools?: PageTools | undefined;
  /** Fetch what was said and what is on its way when the component appears. On if missing. */
  resume?: boolean | undefined;
  /** What was said before, if the gateway does not have it. */
  messages?: ToolyardMessage[] | undefined;
  /** The shortest pause between two renderings while an answer streams, in milliseconds. */
  throttleMs?: number | undefined;
  onError?: ((error: Error) => void) | undefined;
  onFinish?: ((message: ToolyardMessage) => void) | undefined;
}

type Send = UseChatHelpers<ToolyardMessage>["sendMessage"];
type Sent = Parameters<Send>[0];

/** What `useToolyardChat` gives: all of `useChat`, and more. */
export interface OpenChat extends Omit<UseChatHelpers<ToolyardMessage>, "sendMessage" | "stop">, Connection {
  /** Says something: text, or a message of the AI SDK. */
  sendMessage(message?: string | Sent, options?: Parameters<Send>[1]): Promise<void>;
  /** Ends the answer, also on the gateway. */
  stop(): Promise<void>;
  /** What each request says: agent, model, categories. */
  settings: ChatSettings;
  updateSettings(change: ChatSettings): void;
  setModel(model: string | undefined): void;
  setAgent(agent: string | undefined): void;
  /** What the next request offers of this page's tools. */
  clientTools: readonly ClientToolDefinition[];
  /** The open questions of this conversation for a permission. */
  permissions: Permissions["requests"];
  answerPermission(waitId: string, answer: WaitAnswer): Promise<void>;
  /** Brings the page up to what the gateway has. */
  sync(): Promise<void>;
  /** Shows what was said before the first message, if `hasOlder`. */
  loadOlder(): Promise<void>;
  /** An answer is on its way. */
  isLoading: boolean;
  /** The text that is being written, for forms. */
  input: string;
  setInput(text: string): void;
  handleInputChange(event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>): void;
  handleSubmit(event?: { preventDefault?(): void }): void;
  append(message: string | Sent): Promise<void>;
  reload(): Promise<void>;
}

/** A conversation with an agent, whose tools may run in this page. */
export function useToolyardChat(options: UseToolyardChatOptions = {}): OpenChat {
  const session = useSession();
  const source = useId();
  const [fresh] = useState(() => `chat_${randomName()}`);
  const id = options.id ?? session.options.defaultSpaceId ?? fresh;
  const { tools, resume = true, messages, throttleMs, onError, onFinish } = options;
  const asked = settingsOf(options);
  const conversation = useMemo(() => session.conversation(id, { settings: asked, messages }), [session, id]);
  const chat = useChat<ToolyardMessage>({
    chat: conversation.chat,
    ...(throttleMs === undefined ? {} : { experimental_throttle: throttleMs }),
  });
  const settings = useStore(conversation.settings);
  const connection = useStore(conversation.connection);
  const permissions = usePermissions();
  const { definitions } = useToolRegistry();
  const [input, setInput] = useState("");

  useEffect(() => conversation.listen({ onError, onFinish }));
  useEffect(() => conversation.show(resume), [conversation, resume]);
  useEffect(() => {
    if (!tools) return undefined;
    return session.registry.register({ id: `${PAGE_SERVICE}:${source}`, serviceId: PAGE_SERVICE, title: "This page", tools });
  }, [session, tools, source]);
  useEffect(() => conversation.want(asked));

  const updateSettings = useCallback(
    (change: ChatSettings) => conversation.settings.set({ ...conversation.settings.get(), ...change }),
    [conversation],
  );
  const sendMessage = useCallback(
    (message?: string | Sent, more?: Parameters<Send>[1]) =>
      conversation.chat.sendMessage(typeof message === "string" ? { text: message } : message, more),
    [conversation],
  );
  const runs = new Set(chat.messages.map((message) => message.metadata?.runId));
  const isOurs = ({ rootRunId, spaceId }: PermissionRequest) => runs.has(rootRunId) || (spaceId !== undefined && spaceId === connection.spaceId);
  return {
    ...chat,
    ...connection,
    sendMessage,
    stop: conversation.stop,
    settings,
    updateSettings,
    setModel: (model) => updateSettings({ model }),
    setAgent: (agent) => updateSettings({ agent }),
    clientTools: definitions,
    permissions: permissions.requests.filter(isOurs),
    answerPermission: permissions.answer,
    sync: conversation.sync,
    loadOlder: conversation.loadOlder,
    isLoading: chat.status === "submitted" || chat.status === "streaming",
    input,
    setInput,
    handleInputChange: (event) => setInput(event.target.value),
    handleSubmit: (event) => {
      event?.preventDefault?.();
      if (input.trim() === "") return;
      setInput("");
      void sendMessage(input);
    },
    append: sendMessage,
    reload: () => chat.regenerate(),
  };
}

function settingsOf(options: UseToolyardChatOptions): ChatSettings {
  const { agent, model, selectedToolCategories, exactToolNames, excludedTools, body } = options;
  const all = { agent, model, selectedToolCategories, exactToolNames, excludedTools, body };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
