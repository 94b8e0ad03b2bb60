import { ToolyardError, type OutcomeStore, type ToolyardClient, type WaitView } from "@toolyard/client";
import type { Runnable } from "../tools/tool.js";
import { attempt, type Outcome } from "./attempt.js";
import { exclusively } from "./exclusive.js";

/** A call that waits for somebody's page. */
export interface PageCall {
  toolCallId: string;
  toolName: string;
  input: unknown;
  runId?: string | undefined;
  waitId?: string | undefined;
}

/**
 * What became of a call here. `elsewhere`: somebody else ended it. `later`:
 * its handler submits by hand.
 */
export type CallEnd = ({ state: "done" } & Outcome) | { state: "elsewhere" | "later" };

/** A claim lasts a minute. */
const RENEW_MS = 25_000;
/** Pauses between looks at a call that another device has, and between tries to hand a result in. */
const LOOK_MS = [250, 500, 1_000, 2_000, 5_000];
const pause = (attempt: number) => new Promise((next) => setTimeout(next, LOOK_MS[Math.min(attempt, LOOK_MS.length - 1)]));

/**
 * Calls that run in this tab, by gateway and id. It is one table for the whole
 * tab: a tool runs once, however often components mount.
 */
const running = new Map<string, Promise<CallEnd>>();

export interface PageCallsOptions {
  client: ToolyardClient;
  gatewayUrl: string;
  outcomes: OutcomeStore;
  /** This page's name in claims. */
  clientId: string;
}

/**
 * Runs calls of the page's tools and hands in their results. One tab of the
 * browser runs a call, and one device; what was done is written down before it
 * is told.
 */
export class PageCalls {
  readonly #options: PageCallsOptions;

  constructor(options: PageCallsOptions) {
    this.#options = options;
  }

  /** Runs a call, or joins it if it runs already. */
  run(call: PageCall, runnable: Runnable): Promise<CallEnd> {
    const key = `${this.#options.gatewayUrl} ${call.toolCallId}`;
    const known = running.get(key);
    if (known) return known;
    const work = exclusively(`call:${call.toolCallId}`, () => this.#take(call, runnable)).finally(() => running.delete(key));
    running.set(key, work);
    return work;
  }

  /** Whether this tab runs the call, or waits for its turn. */
  isRunning(toolCallId: string): boolean {
    return running.has(`${this.#options.gatewayUrl} ${toolCallId}`);
  }

  async #take(call: PageCall, runnable: Runnable): Promise<CallEnd> {
    const wait = await this.#claim(call);
    if (!wait) return { state: "elsewhere" };
    const { client, clientId, outcomes } = this.#options;
    const renewal = setInterval(() => void client.waits.claim(wait.id, clientId).catch(() => undefined), RENEW_MS);
    try {
      const outcome = await this.#run({ ...call, runId: wait.runId }, runnable);
      if (!outcome) return { state: "later" };
      const taken = await this.#tell(wait.runId, call.toolCallId, outcome);
      await outcomes.delete(call.toolCallId);
      return taken ? { state: "done", ...outcome } : { state: "elsewhere" };
    } finally {
      clearInterval(renewal);
    }
  }

  /** Says "mine" for a call; nothing if it has ended. Waits while another device has it. */
  async #claim(call: PageCall): Promise<WaitView | undefined> {
    const { client, clientId } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      const wait = await this.#find(call);
      if (!wait?.mayAnswer) return undefined;
      try {
        await client.waits.claim(wait.id, clientId);
        return wait;
      } catch (thrown) {
        const code = thrown instanceof ToolyardError ? thrown.code : undefined;
        if (code !== "conflict") {
          if (thrown instanceof ToolyardError && !thrown.passing) return undefined;
          throw thrown;
        }
      }
      await pause(attempt);
    }
  }

  async #find({ toolCallId, runId }: PageCall): Promise<WaitView | undefined> {
    const open = await this.#options.client.waits.pendingCalls(runId === undefined ? { limit: 200 } : { runId, limit: 200 });
    return open.find((wait) => wait.toolCallId === toolCallId);
  }

  async #run(call: PageCall & { runId: string }, runnable: Runnable): Promise<Outcome | undefined> {
    const { outcomes, client, clientId } = this.#options;
    const { toolCallId, toolName, runId } = call;
    const stored = await outcomes.get(toolCallId);
    if (stored?.state === "done") return stored.error === undefined ? { result: stored.result ?? null } : { error: stored.error };
    if (stored?.state === "started" && !runnable.idempotent) {
      return { error: `It is uncertain whether ${toolName} took effect: its page was closed while it ran.` };
    }
    await outcomes.set(toolCallId, { state: "started" });
    const outcome = await attempt(call, runnable, (report) => {
      void client.tools.reportProgress(runId, { callId: toolCallId, clientId, ...report }).catch(() => undefined);
    });
    if (outcome) await outcomes.set(toolCallId, { state: "done", ...outcome });
    else await outcomes.delete(toolCallId);
    return outcome;
  }

  /** Hands in an outcome, for as long as it takes. `false`: somebody else was first, or the run is over. */
  async #tell(runId: string, callId: string, { result, error }: Outcome): Promise<boolean> {
    const { client, clientId } = this.#options;
    const body = error === undefined ? { callId, result } : { callId, error };
    for (let attempt = 0; ; attempt += 1) {
      try {
        await client.tools.submitRunResult(runId, { ...body, source: "client", clientId });
        return true;
      } catch (thrown) {
        if (thrown instanceof ToolyardError && !thrown.passing) return false;
        await pause(attempt);
      }
    }
  }
}
