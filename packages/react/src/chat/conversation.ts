import { Chat } from "@ai-sdk/react";
import type { WaitAnswer } from "@toolyard/client";
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import type { Session } from "../session.js";
import { Store } from "../store.js";
import { followSpace } from "./follow.js";
import { historyOf } from "./history.js";
import { hasOpenCalls, isToolPart, toolNameOf, type ToolPart, type ToolyardMessage } from "./message.js";
import { GatewayTransport } from "./transport.js";

/** What each request of a conversation says. Missing means: as the agent has it. */
export interface ChatSettings {
  agent?: string | undefined;
  model?: string | undefined;
  selectedToolCategories?: string[] | undefined;
  exactToolNames?: string[] | undefined;
  excludedTools?: string[] | undefined;
  /** More fields for the request. */
  body?: Record<string, unknown> | undefined;
}

export interface ConversationOptions {
  settings?: ChatSettings | undefined;
  /** What was said before, if the gateway does not have it. */
  messages?: ToolyardMessage[] | undefined;
  onError?: ((error: Error) => void) | undefined;
  onFinish?: ((message: ToolyardMessage) => void) | undefined;
}

/** How a conversation is connected. */
export interface Connection {
  /** Old messages are on their way. */
  isLoadingHistory: boolean;
  /** The stream broke, and it is picked up again. */
  isReconnecting: boolean;
  spaceId: string | undefined;
}

/** Pauses before the tries to pick a broken stream up. */
const RETRY_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000];
const HISTORY = 200;

/**
 * One conversation, whoever shows it: messages, settings, the page's tools,
 * permissions, and the way back to an answer that is on its way.
 */
export class Conversation {
  readonly id: string;
  readonly chat: Chat<ToolyardMessage>;
  readonly settings: Store<ChatSettings>;
  readonly connection: Store<Connection>;
  readonly #session: Session;
  readonly #transport: GatewayTransport;
  readonly #options: ConversationOptions;
  /** Calls that ended without this page: a replay tells of them again. */
  readonly #elsewhere = new Set<string>();
  #opened: Promise<void> | undefined;
  #space: Promise<string | undefined> | undefined;
  #subscription: { close(): void } | undefined;
  #syncing: Promise<void> | undefined;
  #again = false;
  #shown = 0;
  #closed = false;
  #recovering = false;
  #answering = 0;
  #wanted: string;

  constructor(session: Session, id: string, options: ConversationOptions) {
    this.id = id;
    this.#session = session;
    this.#options = options;
    this.settings = new Store<ChatSettings>(options.settings ?? {});
    this.#wanted = JSON.stringify(options.settings ?? {});
    const spaceId = id.startsWith("spc_") ? id : undefined;
    this.connection = new Store<Connection>({ isLoadingHistory: false, isReconnecting: false, spaceId });
    this.#transport = new GatewayTransport({
      gatewayUrl: session.gatewayUrl,
      headers: () => session.headers(),
      body: () => this.#body(),
      whole: options.messages !== undefined && options.messages.length > 0,
    });
    this.chat = new Chat<ToolyardMessage>({
      id,
      transport: this.#transport,
      messages: options.messages ?? [],
      sendAutomaticallyWhen: (state) =>
        lastAssistantMessageIsCompleteWithToolCalls(state) || lastAssistantMessageIsCompleteWithApprovalResponses(state),
      // Not awaited: the stream would wait for the tool.
      onToolCall: ({ toolCall }) => void this.#call(toolCall),
      onFinish: ({ message, isAbort, isError }) => {
        session.ledger.touch();
        if (isAbort || isError) return;
        this.#options.onFinish?.(message);
        void this.#follow();
      },
      onError: (error) => {
        this.#options.onError?.(error);
        if (error instanceof TypeError) void this.#recover();
      },
    });
  }

  /** Nothing is on its way, and nobody looks. */
  get idle(): boolean {
    return this.#shown === 0 && !this.#busy;
  }

  get #busy(): boolean {
    return this.chat.status === "streaming" || this.chat.status === "submitted";
  }

  /** Takes what a later rendering says. */
  listen({ onError, onFinish }: Pick<ConversationOptions, "onError" | "onFinish">): void {
    Object.assign(this.#options, { onError, onFinish });
  }

  /** Takes the settings that a component wants. What a person changed since stays. */
  want(settings: ChatSettings): void {
    const text = JSON.stringify(settings);
    if (text === this.#wanted) return;
    this.#wanted = text;
    this.settings.set({ ...this.settings.get(), ...settings });
  }

  /** A component shows it. What was said and what is on its way is fetched, once. */
  show(resume: boolean): () => void {
    this.#shown += 1;
    this.#closed = false;
    if (resume) this.#opened ??= this.#open();
    void this.#follow();
    return () => {
      this.#shown -= 1;
      if (this.#shown === 0) this.#unfollow();
    };
  }

  /** Stops reading. The run on the gateway goes on. */
  close(): void {
    this.#closed = true;
    this.#opened = undefined;
    this.#unfollow();
    void this.chat.stop();
  }

  /** Ends the run on the gateway. */
  readonly stop = async (): Promise<void> => {
    await this.#session.client.stopChat(this.id).catch(() => undefined);
    await this.chat.stop();
    this.#session.ledger.touch();
  };

  /** Brings the page up to what the gateway has. */
  readonly sync = (): Promise<void> => {
    if (this.#syncing) {
      this.#again = true;
      return this.#syncing;
    }
    this.#syncing = this.#sync().finally(() => (this.#syncing = undefined));
    return this.#syncing;
  };

  /** Whether this chat shows a question. */
  asks(waitId: string): boolean {
    return this.#asked(waitId) !== undefined;
  }

  /** Answers a question for a permission, and goes on with the answer's stream. */
  readonly answer = async (waitId: string, answer: WaitAnswer): Promise<void> => {
    this.#answering += 1;
    try {
      await this.#session.client.waits.answer(waitId, answer);
      await this.answered(waitId, answer);
    } finally {
      this.#answering -= 1;
      this.#session.ledger.touch();
    }
  };

  /** A permission that this chat asks for was given or not, here or elsewhere. */
  async answered(waitId: string, { decision, message }: WaitAnswer): Promise<void> {
    if (!this.#asked(waitId)) return;
    // The gateway has the answer; this request follows what comes of it.
    await this.chat.addToolApprovalResponse({
      id: waitId,
      approved: decision === "allow",
      ...(message === undefined ? {} : { reason: message }),
    });
  }

  /** Shows the result of a call that this chat waits for, and goes on. */
  applyResult(toolCallId: string, { result, error }: { result?: unknown; error?: string }): void {
    if (this.#closed) return;
    const part = this.#part((each) => each.toolCallId === toolCallId && each.state === "input-available");
    if (!part) return;
    const call = { tool: toolNameOf(part), toolCallId };
    void this.chat.addToolOutput(
      error === undefined ? { ...call, output: result ?? null } : { ...call, state: "output-error", errorText: error },
    );
  }

  #body(): Record<string, unknown> {
    const { options, registry } = this.#session;
    const { body, ...settings } = this.settings.get();
    const clientTools = registry.definitions();
    const excluded = [...(settings.excludedTools ?? []), ...registry.excluded()];
    const said: Record<string, unknown> = {
      agent: options.agent,
      model: options.model,
      // A backend's key says for whom it speaks; a user speaks for themselves.
      entityId: options.publicKey === undefined ? options.entityId : undefined,
      ...given(settings),
      ...(clientTools.length > 0 ? { clientTools } : {}),
      ...(excluded.length > 0 ? { excludedTools: excluded } : {}),
      ...body,
    };
    return given(said);
  }

  async #open(): Promise<void> {
    if (this.connection.get().spaceId !== undefined && this.chat.messages.length === 0) {
      this.#connected({ isLoadingHistory: true });
      await this.#load().catch((thrown: Error) => this.#options.onError?.(thrown));
      this.#connected({ isLoadingHistory: false });
    }
    if (!this.#busy && !this.#closed) await this.chat.resumeStream();
    await this.#follow();
  }

  async #call({ toolCallId, toolName, input }: { toolCallId: string; toolName: string; input?: unknown }): Promise<void> {
    if (this.#elsewhere.has(toolCallId)) return;
    const runId = this.chat.messages.findLast((message) => message.metadata?.runId)?.metadata?.runId;
    try {
      const end = await this.#session.run({ toolCallId, toolName, input, runId });
      if (end?.state === "done") this.applyResult(toolCallId, end);
      else if (end?.state === "elsewhere") {
        this.#elsewhere.add(toolCallId);
        if (!this.#busy && hasOpenCalls(this.chat.lastMessage)) await this.sync();
      }
    } catch (thrown) {
      console.warn(`toolyard: call ${toolCallId} of ${toolName} was left`, thrown);
    } finally {
      this.#session.ledger.touch();
    }
  }

  async #sync(): Promise<void> {
    do {
      this.#again = false;
      if (this.#busy || this.#closed) return;
      await this.#load().catch(() => undefined);
      if (!this.#busy) await this.chat.resumeStream();
      this.#session.ledger.touch();
    } while (this.#again);
  }

  /** Puts what the gateway has in the place of what is shown. */
  async #load(): Promise<void> {
    const spaceId = await this.#spaceId();
    if (spaceId === undefined || this.#busy) return;
    const messages = historyOf(await this.#session.client.spaces.messages(spaceId, { limit: HISTORY }));
    if (!this.#busy && !this.#closed && messages.length > 0) this.chat.messages = messages;
  }

  /** The space of this chat, which its runs know. */
  #spaceId(): Promise<string | undefined> {
    const { spaceId } = this.connection.get();
    if (spaceId !== undefined) return Promise.resolve(spaceId);
    const runId = this.chat.messages.findLast((message) => message.metadata?.runId)?.metadata?.runId;
    if (runId === undefined) return Promise.resolve(undefined);
    this.#space ??= this.#session.client.runs
      .get(runId)
      .then((run) => {
        this.#connected({ spaceId: run.smartSpaceId });
        return run.smartSpaceId;
      })
      .catch(() => {
        this.#space = undefined;
        return undefined;
      });
    return this.#space;
  }

  /** Hears what happens in the space without this page: other tabs, devices, programs. */
  async #follow(): Promise<void> {
    if (this.#subscription || this.#shown === 0 || this.#closed) return;
    const spaceId = await this.#spaceId();
    if (spaceId === undefined || this.#subscription || this.#shown === 0 || this.#closed) return;
    this.#subscription = followSpace(this.#session, spaceId, {
      isBusy: () => this.#busy || this.#answering > 0,
      messages: () => this.chat.messages,
      sync: () => void this.sync(),
    });
  }

  #unfollow(): void {
    this.#subscription?.close();
    this.#subscription = undefined;
  }

  /** A stream broke in the middle, or the gateway could not be reached. */
  async #recover(): Promise<void> {
    if (this.#recovering) return;
    this.#recovering = true;
    this.#connected({ isReconnecting: true });
    try {
      for (const delay of RETRY_MS) {
        await new Promise((next) => setTimeout(next, delay));
        if (this.#closed || this.chat.status !== "error") return;
        await this.#pickUp();
        if (this.chat.status !== "error") return;
      }
    } finally {
      this.#recovering = false;
      this.#connected({ isReconnecting: false });
    }
  }

  async #pickUp(): Promise<void> {
    await this.chat.resumeStream();
    if (this.chat.status === "error" || this.#transport.found) return;
    if (this.chat.lastMessage?.role === "user") {
      // The gateway may not have it. If it has, it does not answer twice.
      this.#transport.repeats = true;
      await this.chat.sendMessage();
    } else await this.#load().catch(() => undefined);
  }

  #asked(waitId: string): ToolPart | undefined {
    return this.#part((part) => part.state === "approval-requested" && part.approval?.id === waitId);
  }

  #part(fits: (part: ToolPart) => boolean): ToolPart | undefined {
    for (const message of this.chat.messages) {
      for (const part of message.parts) if (isToolPart(part) && fits(part)) return part;
    }
    return undefined;
  }

  #connected(change: Partial<Connection>): void {
    this.connection.set({ ...this.connection.get(), ...change });
  }
}

function given<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}
