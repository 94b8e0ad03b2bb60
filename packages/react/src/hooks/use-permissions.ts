import type { Risk, WaitAnswer, WaitView } from "@toolyard/client";
import { useCallback, useMemo, useState } from "react";
import { useSession } from "../context.js";
import { riskOf } from "../tools/risk.js";
import { useWaits, type UseWaitsOptions } from "./use-waits.js";

/** A call that asks for a permission. */
export interface PermissionRequest {
  /** The wait, also `approval.id` of the chat's part. */
  id: string;
  runId: string;
  /** The run that people see, if an agent that it called asks. */
  rootRunId: string;
  spaceId: string | undefined;
  toolCallId: string;
  toolName: string;
  /** The MCP service of the tool, if it has one. */
  serviceId: string | undefined;
  description: string;
  risk: Risk;
  /** The exact arguments that will be used. */
  args: unknown;
  argsHash: string | undefined;
  openedAt: string;
  expiresAt: string | undefined;
}

/** For how long an answer is remembered. */
export type Remember = NonNullable<WaitAnswer["remember"]>;

/** A remembered permission. */
export interface GrantView {
  id: string;
  tool: string;
  entityId: string | null;
  grant: unknown;
  createdAt: string;
  expiresAt: string | null;
}

export interface Permissions {
  requests: readonly PermissionRequest[];
  isLoading: boolean;
  error: Error | undefined;
  /** Waits whose answer is on its way. */
  answering: ReadonlySet<string>;
  /** Lets a call run, with other arguments if `editedArgs` has them. */
  allow(request: PermissionRequest, how?: { remember?: Remember; editedArgs?: unknown }): Promise<void>;
  deny(request: PermissionRequest, how?: { remember?: Remember; message?: string }): Promise<void>;
  answer(waitId: string, answer: WaitAnswer): Promise<void>;
  refresh(): Promise<void>;
  /** What was remembered. */
  listGrants(): Promise<GrantView[]>;
  revokeGrant(grantId: string): Promise<void>;
}

/** The questions for a permission that this user may answer. */
export function usePermissions(options: Omit<UseWaitsOptions, "kind"> = {}): Permissions {
  const session = useSession();
  const { waits, answer: give, isLoading, error, refresh } = useWaits({ ...options, kind: "approval" });
  const [answering, setAnswering] = useState<ReadonlySet<string>>(new Set());
  const requests = useMemo(() => waits.filter((wait) => wait.mayAnswer).map(requestOf), [waits]);
  const answer = useCallback(
    async (waitId: string, given: WaitAnswer) => {
      setAnswering((before) => new Set(before).add(waitId));
      try {
        await give(waitId, given);
      } finally {
        setAnswering((before) => new Set([...before].filter((id) => id !== waitId)));
      }
    },
    [give],
  );
  return {
    requests,
    isLoading,
    error,
    answering,
    answer,
    refresh,
    // The hash says what the person saw: an answer is for these arguments.
    allow: ({ id, argsHash }, { remember = "once", editedArgs } = {}) =>
      answer(id, {
        decision: "allow",
        remember,
        ...(argsHash === undefined ? {} : { argsHash }),
        ...(editedArgs === undefined ? {} : { editedArgs }),
      }),
    deny: ({ id }, { remember = "once", message } = {}) =>
      answer(id, { decision: "deny", remember, ...(message === undefined ? {} : { message }) }),
    listGrants: async () => (await session.client.request<{ grants: GrantView[] }>("GET", "/api/grants")).grants,
    revokeGrant: (grantId) => session.client.request("DELETE", `/api/grants/${encodeURIComponent(grantId)}`, { repeatable: true }),
  };
}

/** A wait for an approval, as people read it. */
export function requestOf(wait: WaitView): PermissionRequest {
  const payload = (wait.payload ?? {}) as { args?: unknown; argsHash?: string; description?: string; key?: string; risk?: Risk };
  const { key = wait.toolName } = payload;
  return {
    id: wait.id,
    runId: wait.runId,
    rootRunId: wait.rootRunId,
    spaceId: wait.smartSpaceId,
    toolCallId: wait.toolCallId,
    toolName: wait.toolName,
    serviceId: key.includes(":") ? key.slice(0, key.indexOf(":")) : undefined,
    description: payload.description ?? "",
    risk: payload.risk ?? riskOf(wait.toolName),
    args: payload.args ?? {},
    argsHash: payload.argsHash,
    openedAt: wait.openedAt,
    expiresAt: wait.expiresAt,
  };
}
