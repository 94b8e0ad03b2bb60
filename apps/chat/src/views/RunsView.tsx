import { Activity } from "lucide-react";
import { useState } from "react";
import { get } from "../api/gateway.ts";
import type { RunView } from "../api/types.ts";
import { useQuery } from "../lib/query.ts";
import { Link } from "../lib/router.tsx";
import { ago, span } from "../lib/words.ts";
import { Empty, Page, SearchField, Shown } from "../parts/parts.tsx";

const STATUSES: [string, string][] = [
  ["", "All"],
  ["running", "Running"],
  ["waiting_tool", "Waiting"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["canceled", "Canceled"],
];

export const TONES: Record<string, string> = {
  queued: "",
  running: "accent",
  waiting_tool: "medium",
  completed: "low",
  failed: "high",
  canceled: "",
};

export function statusWord(status: string): string {
  return STATUSES.find(([name]) => name === status)?.[1] ?? "Queued";
}

/** Runs that do nothing more. */
const OVER = new Set(["completed", "failed", "canceled"]);

export default function RunsView() {
  const [status, setStatus] = useState("");
  const [asked, setAsked] = useState("");
  const runs = useQuery(`runs ${status}`, () => get<{ runs: RunView[] }>("/api/runs", { limit: 100, status: status || undefined }), { everyMs: 5000 });
  const words = asked.trim().toLowerCase();
  const matches = (run: RunView) => `${run.agentName} ${run.id} ${run.errorCode ?? ""}`.toLowerCase().includes(words);
  return (
    <Page title="Runs" lead="Every unit of work that an agent did or does. Each one is a log that never changes; open one to see its steps.">
      <div className="filters">
        <SearchField value={asked} onChange={setAsked} label="Search by agent, run or error" />
        <div className="row wrap" role="group" aria-label="Status">
          {STATUSES.map(([name, word]) => (
            <button key={name} type="button" className="pill" aria-pressed={status === name} onClick={() => setStatus(name)}>
              {word}
            </button>
          ))}
        </div>
      </div>
      <Shown
        of={runs}
        empty={{
          when: (data) => data.runs.filter(matches).length === 0,
          show: (
            <Empty icon={Activity} title={status || words ? "No run is like this" : "No runs yet"}>
              <p>{status || words ? "Another filter may show some." : "Say something to an agent, and its run appears here."}</p>
            </Empty>
          ),
        }}
      >
        {(data) => (
          <ul className="list">
            {data.runs.filter(matches).map((run) => (
              <li key={run.id}>
                <Link className="line" href={`/runs/${run.id}`}>
                  <div className="line-body">
                    <div className="line-title">{run.agentName}</div>
                    <div className="small soft cut">
                      {ago(run.createdAt)}
                      {OVER.has(run.status) ? ` · took ${span(Date.parse(run.updatedAt) - Date.parse(run.createdAt))}` : ""}
                      {run.parentRunId ? " · called by another agent" : ""}
                      {run.errorCode ? ` · ${run.errorCode}` : ""}
                    </div>
                    <div className="mono soft cut">{run.id}</div>
                  </div>
                  <span className={`badge ${TONES[run.status] ?? ""}`}>{statusWord(run.status)}</span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </Page>
  );
}
