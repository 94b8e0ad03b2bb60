import { useRunTimeline, type TimelineEntry } from "@toolyard/react";
import { ArrowLeft, Bot, ChevronDown, CircleCheck, Clock, Flag, MessageSquare, Puzzle, RotateCcw, Sparkles, Square, Wrench, type LucideIcon } from "lucide-react";
import { Collapsible, Tabs } from "radix-ui";
import { useState } from "react";
import { gateway, get } from "../api/gateway.ts";
import type { Frame, RunView as Run } from "../api/types.ts";
import { stop } from "../chat/send.ts";
import { sentence, useQuery } from "../lib/query.ts";
import { go, Link } from "../lib/router.tsx";
import { ago, dollars, human, plural, span } from "../lib/words.ts";
import { Json } from "../markdown/Markdown.tsx";
import { Button, Loading, Page, SearchField, Shown, Wrong } from "../parts/parts.tsx";
import { statusWord, TONES } from "./RunsView.tsx";

const ICONS: Record<TimelineEntry["kind"], LucideIcon> = {
  step: Sparkles,
  call: Wrench,
  wait: Clock,
  child: Bot,
  message: MessageSquare,
  plugin: Puzzle,
  end: Flag,
};

const STATES: Record<TimelineEntry["state"], string> = { running: "accent", waiting: "medium", done: "low", failed: "high" };

export default function RunView({ runId }: { runId: string }) {
  const run = useQuery(`run ${runId}`, () => get<{ run: Run }>(`/api/runs/${encodeURIComponent(runId)}`), { everyMs: 3000 });
  const timeline = useRunTimeline(runId);
  const [wrong, setWrong] = useState<string>();
  if (run.data === undefined && run.error) {
    return (
      <Page title="Run">
        <Link href="/runs" className="row small">
          <ArrowLeft size={15} aria-hidden /> All runs
        </Link>
        <Wrong what={run.error} onAgain={() => void run.reload()} />
      </Page>
    );
  }
  const known = run.data?.run;
  const status = timeline.entries.length > 0 ? timeline.status : (known?.status ?? "queued");
  const live = ["queued", "running", "waiting_tool"].includes(status);
  const replay = async (step: number) => {
    setWrong(undefined);
    try {
      go(`/runs/${(await gateway.runs.replay(runId, { step })).runId}`);
    } catch (thrown) {
      setWrong(sentence(thrown));
    }
  };
  return (
    <Page
      title={timeline.agentName ?? known?.agentName ?? "Run"}
      actions={
        <>
          <span className={`badge ${TONES[status] ?? ""}`}>{statusWord(status)}</span>
          {live && known && (
            <Button icon={Square} onClick={() => void stop(runId).then(() => run.reload(), (thrown: unknown) => setWrong(sentence(thrown)))}>
              Stop
            </Button>
          )}
        </>
      }
    >
      <div className="row wrap small soft">
        <Link href="/runs" className="row">
          <ArrowLeft size={15} aria-hidden /> All runs
        </Link>
        {known?.smartSpaceId && <Link href={`/c/${known.smartSpaceId}`}>Open its chat</Link>}
        <span className="mono">{runId}</span>
        {timeline.replayOf && (
          <Link href={`/runs/${timeline.replayOf.runId}`} className="row">
            <RotateCcw size={15} aria-hidden /> Replay of another run from its step {timeline.replayOf.step}
          </Link>
        )}
      </div>
      {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
      <dl className="numbers">
        <Number name="Started" value={ago(timeline.startedAt ?? known?.createdAt)} />
        <Number name="Took" value={known && !live ? span(Date.parse(known.updatedAt) - Date.parse(known.createdAt)) : "–"} />
        <Number name="Steps" value={String(timeline.entries.filter((entry) => entry.kind === "step").length)} />
        <Number name="Tool calls" value={String(timeline.entries.filter((entry) => entry.kind === "call").length)} />
        <Number name="Tokens" value={timeline.usage ? `${timeline.usage.inputTokens.toLocaleString()} in, ${timeline.usage.outputTokens.toLocaleString()} out` : "–"} />
        {timeline.cost !== undefined && <Number name="Cost" value={dollars(timeline.cost)} />}
      </dl>
      <Tabs.Root defaultValue="timeline">
        <Tabs.List className="tabs" aria-label="What to see of the run">
          <Tabs.Trigger className="tab" value="timeline">Timeline</Tabs.Trigger>
          <Tabs.Trigger className="tab" value="log">Raw log</Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="timeline">
          {timeline.error && timeline.entries.length === 0 ? (
            <Wrong what={timeline.error.message} />
          ) : timeline.entries.length === 0 ? (
            <Loading />
          ) : (
            <ol className="timeline" aria-label="Timeline">
              {timeline.entries.map((entry) => (
                <Entry key={entry.id} entry={entry} onReplay={live || known?.parentRunId ? undefined : replay} />
              ))}
            </ol>
          )}
        </Tabs.Content>
        <Tabs.Content value="log">
          <RawLog runId={runId} />
        </Tabs.Content>
      </Tabs.Root>
    </Page>
  );
}

function Number({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

const WORDS: Record<TimelineEntry["state"], string> = { running: "Running", waiting: "Waiting", done: "Done", failed: "Failed" };

function Entry({ entry, onReplay }: { entry: TimelineEntry; onReplay: ((step: number) => Promise<void>) | undefined }) {
  const [busy, setBusy] = useState(false);
  const { kind, step, isCopy, title, state, startedAt, endedAt, usage, cost, place, model, input, output, error, childRunId } = entry;
  const Icon = kind === "end" && state === "done" ? CircleCheck : ICONS[kind];
  const more = input !== undefined || output !== undefined;
  const took = endedAt === undefined ? 0 : Date.parse(endedAt) - Date.parse(startedAt);
  const facts = [
    place && !isCopy && `on ${place}`,
    model,
    took > 0 && span(took),
    usage && !isCopy && plural(usage.inputTokens + usage.outputTokens, "token"),
    cost !== undefined && dollars(cost),
    new Date(startedAt).toLocaleTimeString(),
  ].filter(Boolean);
  return (
    <li className="moment" data-state={state}>
      <span className="moment-icon">
        <Icon size={15} aria-hidden />
      </span>
      <Collapsible.Root className="moment-body">
        <div className="row wrap">
          <strong>{kind === "call" ? human(title) : title}</strong>
          {kind !== "end" && <span className={`badge ${isCopy ? "" : STATES[state]}`}>{isCopy ? "Taken over" : WORDS[state]}</span>}
          {more && <Collapsible.Trigger className="button plain tiny">Details <ChevronDown size={14} className="chevron" aria-hidden /></Collapsible.Trigger>}
          {kind === "step" && step !== undefined && onReplay && (
            <Button
              look="plain tiny"
              icon={RotateCcw}
              busy={busy}
              aria-label={`Replay from step ${step}`}
              onClick={() => {
                setBusy(true);
                void onReplay(step).finally(() => setBusy(false));
              }}
            >
              Replay from here
            </Button>
          )}
          {childRunId && <Link href={`/runs/${childRunId}`}>Its run</Link>}
        </div>
        <div className="small soft">{facts.join(" · ")}</div>
        {error && <p className="notice wrong">{error}</p>}
        <Collapsible.Content className="stack">
          {input !== undefined && <Json value={input} label={`Input of ${title}`} />}
          {output !== undefined && <Json value={output} label={`Output of ${title}`} />}
        </Collapsible.Content>
      </Collapsible.Root>
    </li>
  );
}

function RawLog({ runId }: { runId: string }) {
  const log = useQuery(`log ${runId}`, () => gateway.runs.events(runId, { limit: 200 }));
  const [asked, setAsked] = useState("");
  const matches = (frame: Frame) => frame.type.includes(asked.trim().toLowerCase());
  return (
    <div className="stack log-room">
      <SearchField value={asked} onChange={setAsked} label="Filter by the name of the event" />
      <Shown of={log}>
        {(frames) => (
          <ol className="list">
            {frames.filter(matches).map((frame, at) => (
              <li key={at}>
                <Collapsible.Root className="tool">
                  <Collapsible.Trigger className="tool-line">
                    <span className="mono soft">{"seq" in frame ? frame.seq : at + 1}</span>
                    <span className="mono grow">{frame.type}</span>
                    <span className="small soft">{"ts" in frame ? new Date(frame.ts).toLocaleTimeString() : ""}</span>
                  </Collapsible.Trigger>
                  <Collapsible.Content className="tool-body">
                    <Json value={frame} label={frame.type} />
                  </Collapsible.Content>
                </Collapsible.Root>
              </li>
            ))}
          </ol>
        )}
      </Shown>
    </div>
  );
}
