import type { ReactElement } from "react";
import { useRunTimeline } from "../hooks/use-run-timeline.js";
import type { TimelineEntry } from "../timeline.js";

export interface RunTimelineProps {
  runId: string | undefined;
  className?: string;
  /** Offers a button at each step of an ended run; `client.runs.replay(runId, { step })` starts it. */
  onReplay?: (step: number) => void;
}

/** A run as it goes, live. */
export function RunTimeline({ runId, className = "", onReplay }: RunTimelineProps): ReactElement {
  const { entries, status, agentName, usage, cost, error } = useRunTimeline(runId);
  const isOver = status === "completed" || status === "failed" || status === "canceled";
  return (
    <section className={`toolyard-timeline ${className}`} aria-label="Run" data-status={status}>
      <header>
        <strong>{agentName ?? "Run"}</strong> <span>{status}</span>
        {usage && <span>{` ${usage.inputTokens} in, ${usage.outputTokens} out`}</span>}
        {cost !== undefined && <span>{` $${(cost / 1_000_000).toFixed(4)}`}</span>}
      </header>
      {error && <p role="alert">{error.message}</p>}
      {entries.length === 0 && !error && <p>{runId === undefined ? "No run yet." : "Loading the run…"}</p>}
      <ol>
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} onReplay={isOver ? onReplay : undefined} />
        ))}
      </ol>
    </section>
  );
}

function Entry({ entry, onReplay }: { entry: TimelineEntry; onReplay: ((step: number) => void) | undefined }): ReactElement {
  const { kind, step, isCopy, title, state, place, startedAt, endedAt, usage, progress, input, output, error } = entry;
  const took = endedAt === undefined ? undefined : Date.parse(endedAt) - Date.parse(startedAt);
  const more = input !== undefined || output !== undefined;
  return (
    <li data-kind={kind} data-state={state}>
      <span>{title}</span> <small>{state}</small>
      {place && <small>{` ${place}`}</small>}
      {kind === "call" && took !== undefined && <small>{` ${took} ms`}</small>}
      {usage && <small>{` ${usage.inputTokens + usage.outputTokens} tokens`}</small>}
      {state === "running" && progress !== undefined && <progress value={progress} aria-label={`Progress of ${title}`} />}
      {isCopy && <small> taken over</small>}
      {kind === "step" && step !== undefined && onReplay && (
        <button type="button" onClick={() => onReplay(step)} aria-label={`Replay from step ${step}`}>
          Replay from here
        </button>
      )}
      {error && <p>{error}</p>}
      {more && (
        <details>
          <summary>Details</summary>
          {input !== undefined && <pre>{JSON.stringify(input, null, 2)}</pre>}
          {output !== undefined && <pre>{JSON.stringify(output, null, 2)}</pre>}
        </details>
      )}
    </li>
  );
}
