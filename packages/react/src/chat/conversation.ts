import { Chat } from "@ai-sdk/react";
import { ToolyardError, type MessageView, type WaitAnswer } from "@toolyard/client";
import type { Session } from "../session.js";
import { Store } from "../store.js";
import { followSpace } from "./follow.js";
import { historyOf, withNames } from "./history.js";
import { hasOpenCalls, isQuestion, partOf, runOf, toolNameOf, withDecision, type ToolyardMessage } from "./message.js";
import { requestBody, type ChatSettings } from "./request.js";
import { rememberSpace, spaceOf } from "./spaces.js";
import { GatewayTransport } from "./transport.js";

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
  /** There is more before the first message that is shown. */
  hasOlder: boolean;
  /** It is on its way. */
  isLoadingOlder: boolean;
}

/** Pauses before the tries to pick a broken stream up. */
const RETRY_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000];
/** Messages that are read at once. */
const PAGE = 100;

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
  /** Calls that this page has run or tried to: a replay tells of them again. */
  readonly #taken = new Set<string>();
  /** Calls that this page runs now. */
  readonly #working = new Set<string>();
  /** The run that is shown last goes on, as far as this page knows. */
  #unfinished = false;
  /** Somebody else ended a call that is shown as open. */
  #behind = false;
  #opened: Promise<void> | undefined;
  #opening = false;
  #space: Promise<string | undefined> | undefined;
  #subscription: { close(): void } | undefined;
  /** Somebody reads the stream of the run; `#again`: and somebody else wanted to. */
  #looking = false;
  #again = false;
  #shown = 0;
  #closed = false;
  #recovering = false;
  /** The place of the first message that is shown. */
  #oldest: number | undefined;
  #answering = 0;
  #pursuing = false;
  #wanted: string;

  constructor(session: Session, id: string, options: ConversationOptions) {
    this.id = id;
    this.#session = session;
    this.#options = options;
    this.settings = new Store<ChatSettings>(options.settings ?? {});
    this.#wanted = JSON.stringify(options.settings ?? {});
    const spaceId = id.startsWith("spc_") ? id : undefined;
    this.connection = new Store<Connection>({ isLoadingHistory: false, isReconnecting: false, spaceId, hasOlder: false, isLoadingOlder: false });
    this.#transport = new GatewayTransport({
      gatewayUrl: session.gatewayUrl,
      headers: () => session.headers(),
      body: () => requestBody(session, this.settings.get()),
      whole: options.messages !== undefined && options.messages.length > 0,
    });
    this.chat = new Chat<ToolyardMessage>({
      id,
      transport: this.#transport,
      messages: options.messages ?? [],
      // Not awaited: the stream would wait for the tool.
      onToolCall: ({ toolCall }) => void this.#call(toolCall),
      onFinish: ({ message, isAbort, isError, finishReason }) => {
        session.ledger.touch();
        this.#unfinished = isAbort || isError || finishReason === undefined || finishReason === "tool-calls";
        if (isAbort || isError) return;
        if (!this.#unfinished) this.#options.onFinish?.(message);
        void this.#follow();
        // Later than this call, when the chat is ready again. Whoever pursues looks itself.
        if (!this.#pursuing) setTimeout(() => this.#next(), 0);
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
    if (resume && !this.#opened) {
      this.#opening = true;
      this.#opened = this.#open().finally(() => (this.#opening = false));
    } else if (resume && this.#shown === 1 && !this.#opening) void this.sync();
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
  readonly sync = async (): Promise<void> => {
    if (this.#busy || this.#looking) this.#again = true;
    else await this.#look(true);
  };

  /** Shows what was said before the first message that is shown. */
  readonly loadOlder = async (): Promise<void> => {
    const { spaceId, hasOlder, isLoadingOlder } = this.connection.get();
    if (spaceId === undefined || this.#oldest === undefined || !hasOlder || isLoadingOlder) return;
    this.#connected({ isLoadingOlder: true });
    const before = this.#oldest;
    try {
      const older = await this.#session.client.spaces.messages(spaceId, { branch: "current", limit: PAGE, beforeSeq: before });
      // Somebody may have read it all again meanwhile.
      if (this.#closed || this.#oldest !== before) return;
      this.#oldest = older[0]?.seq ?? before;
      this.chat.messages = [...historyOf(older), ...this.chat.messages];
      this.#connected({ hasOlder: older.length === PAGE });
    } catch (thrown) {
      this.#options.onError?.(thrown as Error);
    } finally {
      this.#connected({ isLoadingOlder: false });
    }
  };

  /** Whether this chat shows a question. */
  asks(waitId: string): boolean {
    return partOf(this.chat.messages, isQuestion(waitId)) !== undefined;
  }

  /** Answers a question for a permission, and goes on with the answer's stream. */
  readonly answer = async (waitId: string, answer: WaitAnswer): Promise<void> => {
    this.#answering += 1;
    try {
      await this.#session.client.waits.answer(waitId, answer);
      if (!this.#busy) this.chat.messages = withDecision(this.chat.messages, waitId, answer);
      void this.#pursue();
    } finally {
      this.#answering -= 1;
      this.#session.ledger.touch();
    }
  };

  /** Shows the result of a call that this chat waits for, and goes on. */
  applyResult(toolCallId: string, { result, error }: { result?: unknown; error?: string }): void {
    if (this.#closed) return;
    const part = partOf(this.chat.messages, (each) => each.toolCallId === toolCallId && each.state === "input-available");
    if (!part) return;
    const call = { tool: toolNameOf(part), toolCallId };
    const shown = error === undefined ? { output: result ?? null } : { state: "output-error" as const, errorText: error };
    void Promise.resolve(this.chat.addToolOutput({ ...call, ...shown })).then(() => this.#settle());
  }

  async #open(): Promise<void> {
    const spaceId = spaceOf(this.#session.gatewayUrl, this.id);
    const isNew = this.chat.messages.length === 0;
    if (spaceId !== undefined && isNew) this.#connected({ spaceId, isLoadingHistory: true });
    await this.#look(isNew);
    await this.#follow();
  }

  async #call({ toolCallId, toolName, input }: { toolCallId: string; toolName: string; input?: unknown }): Promise<void> {
    if (this.#taken.has(toolCallId)) return;
    const work = this.#session.run({ toolCallId, toolName, input, runId: runOf(this.chat.messages) });
    if (!work) return;
    this.#taken.add(toolCallId);
    this.#working.add(toolCallId);
    try {
      const end = await work;
      this.#working.delete(toolCallId);
      if (end.state === "done") this.applyResult(toolCallId, end);
      else if (end.state === "elsewhere") {
        // It shows as open until the stream says more: look once.
        this.#behind = true;
        this.#settle();
      }
    } catch (thrown) {
      // Nobody ran it: the next replay may.
      this.#taken.delete(toolCallId);
      console.warn(`toolyard: call ${toolCallId} of ${toolName} was left`, thrown);
    } finally {
      this.#working.delete(toolCallId);
      this.#session.ledger.touch();
    }
  }

  /** Follows the run again, if it goes on although this page's stream has ended. */
  #settle(): void {
    if (!this.#unfinished || this.#busy || this.#working.size > 0) return;
    const { lastMessage } = this.chat;
    if (lastMessage?.role !== "assistant" || (hasOpenCalls(lastMessage) && !this.#behind)) return;
    this.#behind = false;
    void this.#pursue();
  }

  async #pursue(): Promise<void> {
    if (this.#pursuing) return;
    this.#pursuing = true;
    try {
      for (const delay of [0, 50, 100, 200, 500, 1_000, 2_000, 5_000]) {
        if (delay > 0) await new Promise((next) => setTimeout(next, delay));
        // A stream that is open may end before it tells of what this page just did.
        this.#behind = this.#busy || this.#looking;
        if (this.#behind) continue;
        if ((await this.#look(false)) !== "followed" || this.#working.size > 0) return;
        // The gateway has the result, but the run has not woken up yet.
        if (!this.#unfinished || hasOpenCalls(this.chat.lastMessage)) return;
      }
    } finally {
      this.#pursuing = false;
      this.#session.ledger.touch();
    }
  }

  /** Goes on with what had to wait for the end of a stream. */
  #next(): void {
    if (this.#closed || this.#busy || this.#looking) return;
    if (!this.#again) return this.#settle();
    this.#again = false;
    void this.sync();
  }

  /**
   * Follows the run that is on its way. If there is none, all that it said is
   * in the history: that is read after the question, never before it.
   */
  async #look(withHistory: boolean): Promise<"followed" | "ended" | "left"> {
    if (this.#closed) return "left";
    this.#looking = true;
    try {
      // What was said before stands in front of the answer.
      this.#transport.beforeReplay = withHistory ? () => this.#load() : undefined;
      await this.chat.resumeStream();
      if (this.chat.status === "error" || this.#closed) return "left";
      if (this.#transport.found) return "followed";
      this.#unfinished = false;
      await this.#load();
      return "ended";
    } finally {
      this.#looking = false;
      this.#connected({ isLoadingHistory: false });
      if (this.#again) setTimeout(() => this.#next(), 0);
    }
  }

  /** Puts what the gateway has in the place of what is shown. */
  async #load(): Promise<void> {
    try {
      const spaceId = await this.#spaceId();
      if (spaceId === undefined || this.#busy) return;
      const shown = this.chat.messages;
      const { views, hasOlder } = await this.#read(spaceId);
      // What changed meanwhile is newer than the answer.
      if (this.#busy || this.#closed || views.length === 0 || this.chat.messages !== shown) return;
      this.#oldest = views[0]?.seq;
      this.chat.messages = withNames(historyOf(views), shown);
      this.#connected({ hasOlder });
    } catch (thrown) {
      this.#lost(thrown as Error);
    } finally {
      this.#connected({ isLoadingHistory: false });
    }
  }

  /** The newest messages of the line, back to the first one that is shown. */
  async #read(spaceId: string): Promise<{ views: MessageView[]; hasOlder: boolean }> {
    let views: MessageView[] = [];
    for (;;) {
      const before = views[0]?.seq;
      const query = { branch: "current" as const, limit: PAGE, ...(before === undefined ? {} : { beforeSeq: before }) };
      const page = await this.#session.client.spaces.messages(spaceId, query);
      views = [...page, ...views];
      const first = page[0]?.seq;
      if (page.length < PAGE || first === undefined) return { views, hasOlder: false };
      if (this.#oldest === undefined || first <= this.#oldest) return { views, hasOlder: true };
    }
  }

  /** Old messages cannot be had. What this browser remembers may be of another user. */
  #lost(thrown: Error): void {
    const isGone = thrown instanceof ToolyardError && (thrown.status === 403 || thrown.status === 404);
    if (!isGone || this.id.startsWith("spc_")) return this.#options.onError?.(thrown);
    rememberSpace(this.#session.gatewayUrl, this.id, undefined);
    this.#connected({ spaceId: undefined });
  }

  /** The space of this chat, which its runs know. */
  #spaceId(): Promise<string | undefined> {
    const { spaceId } = this.connection.get();
    if (spaceId !== undefined) return Promise.resolve(spaceId);
    const runId = runOf(this.chat.messages);
    if (runId === undefined) return Promise.resolve(undefined);
    this.#space ??= this.#session.client.runs
      .get(runId)
      .then((run) => {
        this.#connected({ spaceId: run.smartSpaceId });
        rememberSpace(this.#session.gatewayUrl, this.id, run.smartSpaceId);
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
      isBusy: () => this.#busy || this.#looking || this.#answering > 0 || this.#pursuing,
      isUnfinished: () => this.#unfinished,
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
    const isUnanswered = this.chat.lastMessage?.role === "user";
    if (!isUnanswered) return void (await this.#look(false));
    await this.chat.resumeStream();
    if (this.chat.status === "error" || this.#transport.found) return;
    // The gateway may not have it. If it has, it does not answer twice.
    this.#transport.repeats = true;
    await this.chat.sendMessage();
  }

  #connected(change: Partial<Connection>): void {
    this.connection.set({ ...this.connection.get(), ...change });
  }
}
