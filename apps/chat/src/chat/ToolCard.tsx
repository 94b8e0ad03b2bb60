import { Ban, Check, ChevronDown, CircleHelp, Clock, LoaderCircle, Pencil, ShieldAlert, TriangleAlert, type LucideIcon } from "lucide-react";
import { Collapsible } from "radix-ui";
import { human, pretty, span } from "../lib/words.ts";
import { Json } from "../markdown/Markdown.tsx";
import { Chart, type Bars } from "./Chart.tsx";
import type { Call, CallState } from "./conversation.ts";

const LOOK: Record<CallState, { icon: LucideIcon; word: string; tone: string }> = {
  writing: { icon: Pencil, word: "Preparing", tone: "" },
  asking: { icon: ShieldAlert, word: "Needs you", tone: "medium" },
  running: { icon: LoaderCircle, word: "Running", tone: "accent" },
  done: { icon: Check, word: "Done", tone: "low" },
  failed: { icon: TriangleAlert, word: "Failed", tone: "high" },
  denied: { icon: Ban, word: "Denied", tone: "high" },
  expired: { icon: Clock, word: "Expired", tone: "medium" },
  canceled: { icon: Ban, word: "Canceled", tone: "" },
  uncertain: { icon: CircleHelp, word: "Uncertain", tone: "medium" },
};

const PLACES: Record<string, string> = { client: "in this page", external: "in a program", server: "on the gateway" };

/** The most telling argument, for the line that is always seen. */
function hint(input: unknown): string {
  if (typeof input !== "object" || input === null) return "";
  const first = Object.values(input).find((value) => typeof value === "string" || typeof value === "number");
  return first === undefined ? "" : String(first);
}

/** One call of a tool: what went in, what came out, where and how long. */
export function ToolCard({ call }: { call: Call }) {
  const { icon: Icon, word, tone } = LOOK[call.state];
  const took = call.startedAt !== undefined && call.endedAt !== undefined ? span(call.endedAt - call.startedAt) : undefined;
  const place = call.target ? PLACES[call.target] : undefined;
  const chart = call.name === "show_chart" && call.state === "done" ? (call.input as Bars | undefined) : undefined;
  return (
    <Collapsible.Root className="tool" data-call={call.id} data-state-of-call={call.state}>
      <Collapsible.Trigger className="tool-line">
        <Icon size={16} className={call.state === "running" ? "turning" : ""} aria-hidden />
        <span className="tool-name">{human(call.name)}</span>
        <span className="tool-hint cut">{hint(call.input)}</span>
        <span className={`badge ${tone}`}>{word}</span>
        <ChevronDown size={16} className="chevron" aria-hidden />
      </Collapsible.Trigger>
      {call.state === "running" && call.progress && (
        <div className="progress" role="status">
          <progress max={1} value={call.progress.fraction} aria-label={`Progress of ${call.name}`} />
          <span className="small soft">{call.progress.message}</span>
        </div>
      )}
      <Collapsible.Content className="tool-body">
        <p className="small soft">
          <code>{call.name}</code>
          {place && ` ran ${place}`}
          {took && ` in ${took}`}
        </p>
        {call.input !== undefined && (
          <div>
            <h4>Input</h4>
            <Json value={call.input} label={`Input of ${call.name}`} />
          </div>
        )}
        {call.error !== undefined && (
          <div>
            <h4>Error</h4>
            <pre className="code-block" tabIndex={0}>
              {call.error}
            </pre>
          </div>
        )}
        {call.output !== undefined && (
          <div>
            <h4>Output</h4>
            <Json value={typeof call.output === "string" ? call.output : JSON.parse(JSON.stringify(call.output))} label={`Output of ${call.name}`} />
          </div>
        )}
        {call.output === undefined && call.error === undefined && call.state === "done" && <p className="small soft">{pretty(null)}</p>}
      </Collapsible.Content>
      {chart && <Chart {...chart} />}
    </Collapsible.Root>
  );
}
