import { storageOutcomes, memoryOutcomes, ToolyardClient, type OutcomeStore, type WaitAnswer } from "@toolyard/client";
import { PageCalls, type PageCall } from "./calls/page-calls.js";
import { placeName } from "./calls/place.js";
import { Conversation, type ConversationOptions } from "./chat/conversation.js";
import { Ledger } from "./ledger.js";
import { McpServiceStore } from "./mcp/services.js";
import { PluginStore } from "./plugins/store.js";
import type { RunCode } from "./plugins/sandbox.js";
import { PAGE_SERVICE, ToolRegistry } from "./tools/registry.js";
import { SelectionStore } from "./tools/selection.js";
import type { PageTools } from "./tools/tool.js";

/** A value, or where it comes from each time. */
export type Given<Value> = Value | (() => Value | Promise<Value>);

/** Who speaks to which gateway. What may change while the page is open is asked each time. */
export interface SessionOptions {
  gatewayUrl: string;
  publicKey?: Given<string> | undefined;
  jwt?: Given<string> | undefined;
  /** More headers, or others: for a page that is let in by another key. */
  headers?: Given<Record<string, string>> | undefined;
  entityId?: string | undefined;
  defaultSpaceId?: string | undefined;
  tools?: PageTools | undefined;
  agent?: string | undefined;
  model?: string | undefined;
  runCode?: RunCode | undefined;
}

/** Idle conversations that are kept for when they are opened again. */
const KEPT = 20;

/** What the components of one provider share. */
export class Session {
  readonly gatewayUrl: string;
  readonly client: ToolyardClient;
  readonly selection = new SelectionStore();
  readonly registry = new ToolRegistry(this.selection);
  readonly plugins: PluginStore;
  readonly mcp: McpServiceStore;
  readonly ledger: Ledger;
  readonly calls: PageCalls;
  readonly #conversations = new Map<string, Conversation>();
  #options: SessionOptions;
  #held = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.gatewayUrl = options.gatewayUrl.replace(/\/+$/, "");
    this.client = new ToolyardClient({ baseUrl: this.gatewayUrl, auth: { headers: () => this.headers() } });
    this.ledger = new Ledger(this.client);
    const { client, gatewayUrl } = this;
    this.calls = new PageCalls({ client, gatewayUrl, outcomes: outcomes(), clientId: placeName() });
    this.plugins = new PluginStore(this.registry, (code, args, how) => this.#runCode(code, args, how));
    this.mcp = new McpServiceStore(this.registry);
    this.update(options);
  }

  get options(): SessionOptions {
    return this.#options;
  }

  /** Takes what a later rendering says. */
  update(options: SessionOptions): void {
    const tools = options.tools ?? {};
    const changed = this.#options === options || this.#options.tools !== options.tools;
    this.#options = options;
    if (changed) this.registry.register({ serviceId: PAGE_SERVICE, title: "This page", tools });
  }

  /** The keys of the next request. */
  async headers(): Promise<Record<string, string>> {
    const { publicKey, jwt, headers } = this.#options;
    const [key, token, more] = [await given(publicKey), await given(jwt), await given(headers)];
    return {
      ...(key ? { "x-public-key": key } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...more,
    };
  }

  /** The conversation of an id: one for all components that show it. */
  conversation(id: string, options: ConversationOptions = {}): Conversation {
    const known = this.#conversations.get(id);
    if (known) {
      this.#conversations.delete(id);
      this.#conversations.set(id, known);
      return known;
    }
    const conversation = new Conversation(this, id, options);
    this.#conversations.set(id, conversation);
    for (const [old, each] of this.#conversations) {
      if (this.#conversations.size <= KEPT) break;
      if (!each.idle) continue;
      this.#conversations.delete(old);
      each.close();
    }
    return conversation;
  }

  /** Runs a call with a tool of this page. Nothing if the page does not know the tool. */
  run(call: PageCall): ReturnType<PageCalls["run"]> | undefined {
    const runnable = this.registry.runnable(call.toolName);
    return runnable && this.calls.run(call, runnable);
  }

  /** A result was submitted by hand: whoever shows its call goes on. */
  submitted(toolCallId: string, outcome: { result?: unknown; error?: string }): void {
    this.ledger.touch();
    for (const each of this.#conversations.values()) each.applyResult(toolCallId, outcome);
  }

  /** Answers a wait. A chat that shows its call goes on. */
  async answer(waitId: string, answer: WaitAnswer): Promise<void> {
    const asking = [...this.#conversations.values()].find((each) => each.asks(waitId));
    if (asking) return asking.answer(waitId, answer);
    await this.client.waits.answer(waitId, answer);
    this.ledger.touch();
  }

  /** A component uses this session. */
  hold(): () => void {
    this.#held += 1;
    const letGo = [this.plugins.follow(), this.mcp.follow()];
    return () => {
      letGo.forEach((each) => each());
      this.#held -= 1;
      // StrictMode lets go and takes hold again at once.
      setTimeout(() => {
        if (this.#held > 0) return;
        for (const each of this.#conversations.values()) each.close();
      }, 0);
    };
  }

  async #runCode(...[code, args, how]: Parameters<RunCode>): Promise<unknown> {
    const run = this.#options.runCode ?? (await import("./plugins/sandbox.js")).runInFrame;
    return run(code, args, how);
  }
}

async function given<Value>(value: Given<Value> | undefined): Promise<Value | undefined> {
  return typeof value === "function" ? await (value as () => Value | Promise<Value>)() : value;
}

/** Calls are written down in the browser, if it lets a page write. */
function outcomes(): OutcomeStore {
  try {
    return storageOutcomes(localStorage);
  } catch {
    return memoryOutcomes();
  }
}
