import type { ToolCall } from "../call.js";
import { path, type Door } from "../door.js";
import type { Emitter } from "../emitter.js";
import { messageOf, ToolyardError } from "../error.js";
import type { ClientEvents } from "../events.js";
import { randomId } from "../native/once.js";
import type { Tools } from "../native/tools.js";
import type { Registry } from "../registry.js";
import { reporter } from "../reporter.js";
import type { ToolRunner } from "../runner.js";
import { eventsOf } from "../sse.js";
import type { ChatMessage, ChatRequest, ToolResult } from "../types.js";
import type { ChatChunk } from "./chunk.js";
import { wireMessage, type ChatOptions } from "./options.js";
import { Reply } from "./reply.js";
import type { ChatResponse } from "./response.js";

/** What a turn needs of its client. */
export interface TurnParts {
  door: Door;
  registry: Registry;
  runner: ToolRunner;
  tools: Tools;
  events: Emitter<ClientEvents>;
  log: (line: string, ...more: unknown[]) => void;
  ready: () => Promise<void>;
}

const MAX_TOOL_ROUNDS = 5;
/** How often a broken stream is picked up again. */
const RESUMES = 3;

/** One turn: the request, the tools that run here, their results, until the answer is whole. */
export class Turn {
  readonly id: string;
  readonly #parts: TurnParts;
  readonly #options: ChatOptions;
  readonly #signal: AbortSignal;
  readonly #before: ChatMessage[];
  /** The assistant's messages of this turn; mostly one. */
  readonly #replies: Reply[] = [];
  /** Calls whose outcomes are in the next request. */
  readonly #told = new Set<string>();
  /** The run behind the answer, if the gateway says it. */
  #runId: string | undefined;
  #rounds = 0;
  #limited = false;

  constructor(parts: TurnParts, options: ChatOptions, signal: AbortSignal) {
    this.#parts = parts;
    this.#options = options;
    this.#signal = signal;
    this.id = options.id ?? randomId("chat");
    this.#before = options.messages.map((message) => wireMessage(message, randomId));
  }

  async *run(): AsyncGenerator<ChatChunk, ChatResponse, undefined> {
    const { events, registry, ready, log } = this.#parts;
    await ready();
    events.emit("stream_start", { id: this.id });
    let reason: string | undefined;
    try {
      for (;;) {
        const reply = yield* this.#respond();
        reason = reply?.finishReason;
        await registry.afterResponse(this.response());
        if (!reply || !(yield* this.#work(reply))) break;
        this.#rounds += 1;
        log(`chat ${this.id}: round ${this.#rounds}`);
      }
    } finally {
      events.emit("stream_end", { id: this.id, finishReason: reason });
    }
    return this.response();
  }

  /** Everything so far. */
  response(): ChatResponse {
    const last = this.#replies.at(-1);
    const all = <Item>(pick: (reply: Reply) => Iterable<Item>) => this.#replies.flatMap((reply) => [...pick(reply)]);
    return {
      id: this.id,
      messageId: last?.message.id,
      content: this.#replies.map((reply) => reply.text).join(""),
      reasoning: this.#replies.map((reply) => reply.reasoning).join(""),
      messages: this.#messages(),
      toolCalls: all((reply) => reply.calls.values()),
      toolResults: all((reply) => reply.results.values()),
      pendingToolCalls: last?.pending ?? [],
      pendingApprovals: [...(last?.approvals.values() ?? [])],
      finishReason: last?.finishReason,
      rounds: this.#rounds,
      maxToolRoundsReached: this.#limited,
      metadata: last?.message["metadata"],
    };
  }

  #messages(): ChatMessage[] {
    return [...this.#before, ...this.#replies.map((reply) => reply.message)];
  }

  /** One request and its whole answer. Nothing, if there was nothing to resume. */
  async *#respond(): AsyncGenerator<ChatChunk, Reply | undefined, undefined> {
    const first = this.#rounds === 0;
    let response = first && this.#options.resume ? await this.#resume() : await this.#ask();
    if (!response) return undefined;
    this.#runId = response.headers.get("x-toolyard-run") ?? undefined;
    await this.#delivered();
    const reply = this.#replies.at(-1) ?? new Reply(randomId("msg"));
    if (first) this.#replies.push(reply);
    else reply.next();
    for (let cuts = 0; ; cuts += 1) {
      let why = "it ended before its finish";
      try {
        if (response.body) {
          for await (const { data } of eventsOf(response.body, { signal: this.#signal })) yield* reply.read(data);
        }
        if (reply.ended) return reply;
      } catch (thrown) {
        this.#signal.throwIfAborted();
        if (thrown instanceof ToolyardError) throw thrown;
        why = messageOf(thrown);
      }
      this.#parts.log(`chat ${this.id}: the stream broke: ${why}`);
      const again = cuts < RESUMES ? await this.#again(cuts) : undefined;
      if (!again) throw new ToolyardError("stream_cut", `The stream of chat ${this.id} broke: ${why}`);
      reply.rewind();
      response = again;
    }
  }

  async #again(cuts: number): Promise<Response | undefined> {
    await this.#parts.door.rest(cuts, this.#signal);
    return this.#resume();
  }

  async #resume(): Promise<Response | undefined> {
    const asking = { signal: this.#signal, headers: { accept: "text/event-stream" } };
    const response = await this.#parts.door.open("GET", path`/api/chat/${this.id}/stream`, asking);
    return response.status === 204 ? undefined : response;
  }

  async #ask(): Promise<Response> {
    const { door, registry } = this.#parts;
    const tools = registry.definitions;
    const { agent, model, selectedToolCategories, exactToolNames, excludedTools, body, trigger, messageId } = this.#options;
    const continues = this.#rounds > 0 ? this.#replies.at(-1)?.message.id : messageId;
    const given = { agent, model, selectedToolCategories, exactToolNames, excludedTools };
    let request: ChatRequest = {
      ...body,
      ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<ChatRequest>),
      id: this.id,
      messages: this.#messages(),
      trigger: this.#rounds > 0 ? "submit-message" : (trigger ?? "submit-message"),
    };
    if (continues !== undefined) request.messageId = continues;
    if (tools.length > 0) request.clientTools = tools;
    request = await registry.beforeRequest(request);
    // The same request again attaches to its run: the messages keep their ids.
    const asking = { body: request, signal: this.#signal, repeatable: true, headers: { accept: "text/event-stream" } };
    return door.open("POST", "/api/chat", asking);
  }

  /** The gateway has answered the request that carried them. */
  async #delivered(): Promise<void> {
    for (const id of this.#told) await this.#parts.runner.forget(id);
    this.#told.clear();
  }

  /** Runs what can run here. Whether something is to be sent back. */
  async *#work(reply: Reply): AsyncGenerator<ChatChunk, boolean, undefined> {
    const { finishReason } = reply;
    const asked = finishReason === "tool-calls" || finishReason === "tool_calls" || finishReason === undefined;
    if (!asked) return false;
    const calls = reply.pending.filter((call) => this.#mine(call));
    const approvals = this.#options.onApproval ? [...reply.approvals.values()] : [];
    if (calls.length === 0 && approvals.length === 0) return false;
    const most = this.#options.maxToolRounds ?? MAX_TOOL_ROUNDS;
    if (most > 0 && this.#rounds >= most) {
      const value = { rounds: this.#rounds, pendingToolCalls: reply.pending };
      this.#limited = true;
      this.#parts.events.emit("max_tool_rounds_reached", { id: this.id, ...value });
      yield { type: "max_tool_rounds_reached", value };
      return false;
    }
    let sent = false;
    for (const request of approvals) {
      const answer = await this.#options.onApproval?.(request);
      if (answer === undefined) continue;
      const { approved, reason } = typeof answer === "boolean" ? { approved: answer, reason: undefined } : answer;
      reply.decide(request, approved, reason);
      sent = true;
    }
    const running = this.#options.parallelTools ? calls.map((call) => this.#run(call)) : undefined;
    // Each is waited for below; one that fails first must not be unheard.
    running?.forEach((each) => each.catch(() => undefined));
    for (const [at, call] of calls.entries()) {
      const result = await (running?.[at] ?? this.#run(call));
      if (!result) continue;
      reply.settle(result);
      this.#told.add(call.toolCallId);
      sent = true;
      yield { type: "tool_result", value: result };
    }
    return sent;
  }

  /** Whether somebody in this process may know the call. */
  #mine({ toolName }: ToolCall): boolean {
    const { registry } = this.#parts;
    return this.#options.onToolCall !== undefined || this.#offers(toolName) || registry.hasToolHooks;
  }

  #offers(name: string): boolean {
    const { registry } = this.#parts;
    return registry.hasExecutor(name) || registry.definitions.some((tool) => tool.name === name);
  }

  async #run(call: ToolCall): Promise<ToolResult | undefined> {
    const { onToolCall } = this.#options;
    const { runner, tools } = this.#parts;
    const runId = this.#runId;
    const callId = call.toolCallId;
    const outcome = await runner.run(call, {
      onToolCall,
      progress: runId === undefined ? undefined : reporter((report) => tools.reportProgress(runId, { callId, ...report })),
      signal: this.#signal,
      offered: this.#offers(call.toolName),
    });
    if (!outcome) return undefined;
    const { toolCallId, toolName } = call;
    const { error } = outcome;
    if (error === undefined) return { toolCallId, toolName, result: outcome.result };
    return { toolCallId, toolName, result: { error }, error };
  }
}
