import type { ToolInputAvailableFrame } from "@toolyard/client";
import { useEffect, useRef, useState } from "react";
import { useSession } from "../context.js";
import { runnableOf, type PageTools } from "../tools/tool.js";

export interface UseAutoToolHandlerOptions {
  /** The space whose calls are served; the provider's `defaultSpaceId` if missing. */
  smartSpaceId?: string | undefined;
  /** Tools by name; the provider's if missing. A bare function is enough. */
  tools?: PageTools | undefined;
  /** Off: listens to nothing. */
  enabled?: boolean | undefined;
}

export interface AutoToolHandler {
  /** Calls that run in this page now. */
  running: readonly string[];
  /** The stream is open. */
  isConnected: boolean;
  error: Error | undefined;
}

/**
 * Runs the calls of a space that this page has tools for, and submits what
 * comes of them. Unknown tools are left to others. It begins when the
 * component appears, with the calls that wait already, and ends with it.
 */
export function useAutoToolHandler(options: UseAutoToolHandlerOptions = {}): AutoToolHandler {
  const session = useSession();
  const { enabled = true, tools } = options;
  const spaceId = options.smartSpaceId ?? session.options.defaultSpaceId;
  const latest = useRef(tools);
  useEffect(() => {
    latest.current = tools;
  });
  const [running, setRunning] = useState<readonly string[]>([]);
  const [isConnected, setConnected] = useState(false);
  const [error, setError] = useState<Error>();

  useEffect(() => {
    if (!enabled || spaceId === undefined) return undefined;
    let over = false;
    setError(undefined);
    const subscription = session.client.spaces.subscribe(spaceId);
    const run = async ({ toolCallId, toolName, input, runId }: ToolInputAvailableFrame) => {
      const runnable = latest.current ? runnableOf(latest.current, toolName) : session.registry.runnable(toolName);
      if (!runnable) return;
      setRunning((before) => [...before, toolCallId]);
      try {
        const end = await session.calls.run({ toolCallId, toolName, input, runId }, runnable);
        if (end.state === "done") session.submitted(toolCallId, end);
      } catch (thrown) {
        if (!over) setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
      } finally {
        if (!over) setRunning((before) => before.filter((id) => id !== toolCallId));
      }
    };
    subscription
      .on("tool-input-available", ({ data }) => {
        const forClients = data.executionTarget === "client" || data.executionTarget === "external";
        if (!over && forClients && data.mayAnswer !== false) void run(data);
      })
      .on("open", () => !over && setConnected(true))
      .on("reconnecting", () => !over && setConnected(false))
      .on("error", (failure) => !over && setError(failure));
    return () => {
      over = true;
      subscription.close();
      setConnected(false);
      setRunning([]);
    };
  }, [session, spaceId, enabled]);

  return { running, isConnected, error };
}
