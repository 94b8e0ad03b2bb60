import { path, type Door } from "../door.js";
import { ToolyardError } from "../error.js";
import type { ProgressReport } from "../types.js";

/** A result, or why there is none. */
export interface ResultBody {
  result?: unknown;
  error?: string;
  /** Said by older programs; the gateway knows who asks. */
  source?: "client" | "server";
  clientId?: string;
}

/** What became of submitted results. */
export interface ResultsTaken {
  success: boolean;
  runId: string;
  results: { toolCallId: string; status: "accepted" | "repeated" }[];
}

/** Results of tools: `client.tools`. Sending the same result again is harmless. */
export class Tools {
  readonly #door: Door;
  #progressKnown = true;

  constructor(door: Door) {
    this.#door = door;
  }

  /** Hands in a result under its space. */
  submitResult(spaceId: string, result: { runId: string; toolCallId: string } & ResultBody): Promise<ResultsTaken> {
    return this.#post(path`/api/smart-spaces/${spaceId}/tool-results`, whole(result));
  }

  /** Hands in a result under its run. */
  submitRunResult(runId: string, result: { callId: string } & ResultBody): Promise<ResultsTaken> {
    return this.#post(path`/api/runs/${runId}/tool-results`, whole(result));
  }

  /** Hands in several results of a run: all are taken, or none. */
  submitRunResults(runId: string, results: ({ toolCallId: string } & ResultBody)[]): Promise<ResultsTaken> {
    return this.#post(path`/api/runs/${runId}/tool-results`, { results: results.map(whole) });
  }

  /**
   * Says how far a call is. Answers whether the gateway took it: one that
   * does not know progress is not asked again.
   */
  async reportProgress(runId: string, report: { callId: string; clientId?: string } & ProgressReport): Promise<boolean> {
    if (!this.#progressKnown) return false;
    try {
      await this.#door.json("POST", path`/api/runs/${runId}/tool-progress`, { body: report });
      return true;
    } catch (thrown) {
      if (!(thrown instanceof ToolyardError)) throw thrown;
      // No code of ours: the route itself is missing.
      if (thrown.status === 405 || (thrown.status === 404 && thrown.message === "Route not found")) this.#progressKnown = false;
      return false;
    }
  }

  #post(route: string, body: unknown): Promise<ResultsTaken> {
    return this.#door.json("POST", route, { body, repeatable: true });
  }
}

/** A result that is missing is `null`: a tool may have nothing to say. */
function whole<Body extends ResultBody>(body: Body): Body {
  return body.error === undefined ? { ...body, result: body.result ?? null } : body;
}
