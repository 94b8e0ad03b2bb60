import type { Frame, Subscription } from "@toolyard/client";
import type { Session } from "../session.js";
import type { ToolyardMessage } from "./message.js";

export interface Follower {
  isBusy(): boolean;
  /** The run that is shown last goes on, as far as the page knows. */
  isUnfinished(): boolean;
  messages(): readonly ToolyardMessage[];
  sync(): void;
}

/** Frames after which a wait may have opened or ended. */
const WAITING = new Set<Frame["type"]>([
  "tool-approval-request",
  "input-required",
  "auth-required",
  "wait.answered",
  "tool-input-available",
  "tool-output-available",
  "tool-error",
  "child.asked",
  "child.answered",
  "run.completed",
  "run.failed",
  "run.canceled",
]);

/** Of these a page learns by its own stream, if the run is its own. */
const MOVING = new Set<Frame["type"]>([
  "run.started",
  "wait.answered",
  "tool-output-available",
  "tool-error",
  "run.completed",
  "run.failed",
  "run.canceled",
]);

/**
 * Follows a space while the page is looked at, and says when the chat shows
 * less than what happened. Pages that nobody sees hold no connection: browsers
 * have few for one gateway.
 */
export function followSpace(session: Session, spaceId: string, follower: Follower): { close(): void } {
  let subscription: Subscription | undefined;
  const open = () => {
    subscription = session.client.spaces.subscribe(spaceId).on("*", ({ data }) => {
      if (WAITING.has(data.type)) session.ledger.touch();
      // What this page does itself it tells itself.
      if ("toolCallId" in data && session.calls.isRunning(data.toolCallId)) return;
      if (!follower.isBusy() && isNews(data, follower)) follower.sync();
    });
  };
  const look = () => {
    if (document.visibilityState === "hidden") {
      subscription?.close();
      subscription = undefined;
    } else if (!subscription) {
      open();
      follower.sync();
    }
  };
  if (document.visibilityState !== "hidden") open();
  document.addEventListener("visibilitychange", look);
  return {
    close() {
      document.removeEventListener("visibilitychange", look);
      subscription?.close();
    },
  };
}

function isNews(frame: Frame, follower: Follower): boolean {
  const messages = follower.messages();
  if (frame.type === "smartSpace.message") {
    return frame.message.role === "user" && !messages.some((message) => message.id === frame.message.id);
  }
  if (!MOVING.has(frame.type) || !("runId" in frame)) return false;
  const shown = messages.find((message) => message.metadata?.runId === frame.runId);
  return shown === undefined || follower.isUnfinished();
}
