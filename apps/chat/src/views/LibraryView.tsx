import { Bell, BookOpen, Brain, CalendarClock, FileUp, Target, Trash2, type LucideIcon } from "lucide-react";
import { Tabs } from "radix-ui";
import { useRef, useState, type ReactNode } from "react";
import { get, patch, remove, upload } from "../api/gateway.ts";
import { sentence, useQuery } from "../lib/query.ts";
import { go } from "../lib/router.tsx";
import { ago } from "../lib/words.ts";
import { Button, Empty, Page, Shown } from "../parts/parts.tsx";

interface Row {
  id: string;
  title: string;
  about: string;
  badge?: [string, string];
  act?: { name: string; do: () => Promise<unknown> };
}

interface Shelf {
  id: string;
  name: string;
  icon: LucideIcon;
  empty: string;
  route: string;
  // Each shelf knows the form of its own list.
  rows: (answer: any) => Row[];
}

interface Goal { id: string; description: string; priority: number; isCompleted: boolean; isLongTerm: boolean; updatedAt: string }
interface Memory { id: string; topic: string; content: string; scope: string; updatedAt: string }
interface Plan { id: string; name: string; instruction: string; status: string; cron?: string | null; nextRunAt?: string | null; error?: string | null }
interface Document { id: string; title: string; mediaType: string; bytes: number; status: string; progress: number; error?: string | null; createdAt: string }
interface Notice { id: string; title: string; message: string; level: string; readAt?: string | null; createdAt: string }

const SHELVES: Shelf[] = [
  {
    id: "knowledge",
    name: "Knowledge",
    icon: BookOpen,
    empty: "Upload a document, and agents with the knowledge tool can search it.",
    route: "/api/knowledge",
    rows: ({ documents }: { documents: Document[] }) =>
      documents.map((row) => ({
        id: row.id,
        title: row.title,
        about: `${row.mediaType} · ${Math.max(1, Math.round(row.bytes / 1000))} kB · ${ago(row.createdAt)}${row.error ? ` · ${row.error}` : ""}`,
        badge: row.status === "ready" ? ["Ready", "low"] : [`${Math.round(row.progress * 100)} %`, "accent"],
      })),
  },
  {
    id: "goals",
    name: "Goals",
    icon: Target,
    empty: "Goals that agents set for themselves or for you appear here.",
    route: "/api/goals",
    rows: ({ goals }: { goals: Goal[] }) =>
      goals.map((row) => ({
        id: row.id,
        title: row.description,
        about: `Priority ${row.priority}${row.isLongTerm ? " · long term" : ""} · ${ago(row.updatedAt)}`,
        badge: row.isCompleted ? ["Done", "low"] : ["Open", "accent"],
      })),
  },
  {
    id: "memories",
    name: "Memories",
    icon: Brain,
    empty: "What agents remember about you and your work appears here. You can make them forget.",
    route: "/api/memories",
    rows: ({ memories }: { memories: Memory[] }) => memories.map((row) => ({ id: row.id, title: row.topic, about: `${row.content} · ${ago(row.updatedAt)}`, badge: [row.scope, ""] })),
  },
  {
    id: "plans",
    name: "Plans",
    icon: CalendarClock,
    empty: "Runs that are planned for later, once or again and again, appear here.",
    route: "/api/plans",
    rows: ({ plans }: { plans: Plan[] }) =>
      plans.map((row) => ({
        id: row.id,
        title: row.name,
        about: [row.instruction, row.cron, row.nextRunAt && `next ${ago(row.nextRunAt)}`, row.error].filter(Boolean).join(" · "),
        badge: [row.status, row.status === "failed" ? "high" : row.status === "pending" ? "accent" : ""],
      })),
  },
  {
    id: "notices",
    name: "Notices",
    icon: Bell,
    empty: "Agents leave notices here when they want you to know something.",
    route: "/api/inbox",
    rows: ({ notifications }: { notifications: Notice[] }) =>
      notifications.map((row) => ({
        id: row.id,
        title: row.title,
        about: `${row.message} · ${ago(row.createdAt)}`,
        badge: row.level === "info" ? ["Info", ""] : [row.level, row.level === "urgent" ? "high" : "medium"],
        ...(row.readAt ? {} : { act: { name: "Mark as read", do: () => patch(`/api/inbox/${row.id}`, { read: true }) } }),
      })),
  },
];

/** What agents keep for people: each kind as a simple list. */
export default function LibraryView({ tab = "knowledge" }: { tab?: string | undefined }) {
  const known = SHELVES.some((shelf) => shelf.id === tab) ? tab : "knowledge";
  return (
    <Page title="Library" lead="What agents know, remember and plan. You see all of it, and you can take it away.">
      <Tabs.Root value={known} onValueChange={(next) => go(`/library/${next}`, { replace: true })}>
        <Tabs.List className="tabs" aria-label="Library">
          {SHELVES.map(({ id, name }) => (
            <Tabs.Trigger key={id} className="tab" value={id}>
              {name}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {SHELVES.map((shelf) => (
          <Tabs.Content key={shelf.id} value={shelf.id} className="tab-room">
            <ShelfView shelf={shelf} />
          </Tabs.Content>
        ))}
      </Tabs.Root>
    </Page>
  );
}

function ShelfView({ shelf }: { shelf: Shelf }) {
  const list = useQuery(shelf.id, () => get<object>(shelf.route, { limit: 200 }), shelf.id === "knowledge" ? { everyMs: 3000 } : {});
  const [wrong, setWrong] = useState<string>();
  const act = async (work: Promise<unknown>) => {
    setWrong(undefined);
    await work.catch((thrown: unknown) => setWrong(sentence(thrown)));
    await list.reload();
  };
  return (
    <div className="stack">
      {shelf.id === "knowledge" && <Upload onDone={() => void list.reload()} onWrong={setWrong} />}
      {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
      <Shown of={list} empty={{ when: (data) => shelf.rows(data).length === 0, show: <Empty icon={shelf.icon} title="Nothing here yet"><p>{shelf.empty}</p></Empty> }}>
        {(data) => (
          <ul className="list">
            {shelf.rows(data).map((row) => (
              <Line key={row.id} row={row}>
                {row.act && <Button onClick={() => row.act && void act(row.act.do())}>{row.act.name}</Button>}
                <Button look="plain icon" icon={Trash2} aria-label={`Remove ${row.title}`} onClick={() => void act(remove(`${shelf.route}/${row.id}`))} />
              </Line>
            ))}
          </ul>
        )}
      </Shown>
    </div>
  );
}

function Line({ row, children }: { row: Row; children: ReactNode }) {
  return (
    <li className="line">
      <div className="line-body">
        <div className="row wrap">
          <span className="line-title">{row.title}</span>
          {row.badge && <span className={`badge ${row.badge[1]}`}>{row.badge[0]}</span>}
        </div>
        <p className="small soft">{row.about}</p>
      </div>
      {children}
    </li>
  );
}

function Upload({ onDone, onWrong }: { onDone: () => void; onWrong: (what: string | undefined) => void }) {
  const picker = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const send = async (files: FileList | null) => {
    setBusy(true);
    onWrong(undefined);
    for (const file of files ?? []) {
      try {
        await upload(`/api/knowledge?title=${encodeURIComponent(file.name)}`, file);
      } catch (thrown) {
        onWrong(`${file.name}: ${sentence(thrown)}`);
      }
    }
    setBusy(false);
    onDone();
  };
  return (
    <div className="row">
      <input ref={picker} type="file" multiple hidden accept=".txt,.md,.html,.pdf,text/*,application/pdf" onChange={(event) => void send(event.target.files).then(() => (event.target.value = ""))} />
      <Button look="main" icon={FileUp} busy={busy} onClick={() => picker.current?.click()}>
        Upload documents
      </Button>
    </div>
  );
}
