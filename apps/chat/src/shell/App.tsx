import { ToolyardChatProvider } from "@toolyard/react";
import { Menu } from "lucide-react";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { get } from "../api/gateway.ts";
import { keyNow, NeedsKey, openSession, type Session } from "../api/session.ts";
import type { Space } from "../api/types.ts";
import { ChatView } from "../chat/ChatView.tsx";
import { sentence, useQuery } from "../lib/query.ts";
import { usePath } from "../lib/router.tsx";
import { runInRoom } from "../page-tools/room.ts";
import { PAGE_TOOLS } from "../page-tools/tools.ts";
import { ServePageTools } from "../page-tools/useOffer.ts";
import { Button, Loading, Wrong } from "../parts/parts.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { SignIn } from "./SignIn.tsx";

const AgentsView = lazy(() => import("../views/AgentsView.tsx"));
const AuditView = lazy(() => import("../views/AuditView.tsx"));
const InboxView = lazy(() => import("../views/InboxView.tsx"));
const LibraryView = lazy(() => import("../views/LibraryView.tsx"));
const PluginsView = lazy(() => import("../views/PluginsView.tsx"));
const RunView = lazy(() => import("../views/RunView.tsx"));
const RunsView = lazy(() => import("../views/RunsView.tsx"));
const ToolsView = lazy(() => import("../views/ToolsView.tsx"));

/** The headers of requests that the shared parts send. */
const headers = () => ({ "x-secret-key": keyNow() });

export function App() {
  const [session, setSession] = useState<Session>();
  const [needsKey, setNeedsKey] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let over = false;
    openSession().then(
      (opened) => !over && setSession(opened),
      (thrown: unknown) => {
        if (over) return;
        if (thrown instanceof NeedsKey) setNeedsKey(true);
        else setWrong(sentence(thrown));
      },
    );
    return () => void (over = true);
  }, [tries]);
  if (wrong) {
    return (
      <main className="stage">
        <Wrong
          what={`The gateway cannot be reached. ${wrong}`}
          onAgain={() => {
            setWrong(undefined);
            setTries(tries + 1);
          }}
        />
      </main>
    );
  }
  if (!session) return needsKey ? <SignIn onDone={setSession} /> : null;
  return (
    <ToolyardChatProvider gatewayUrl={location.origin} headers={headers} tools={PAGE_TOOLS} agent={session.defaultAgent} runCode={runInRoom}>
      <ServePageTools />
      <Frame session={session} />
    </ToolyardChatProvider>
  );
}

const TITLES: Record<string, string> = {
  inbox: "Inbox",
  runs: "Runs",
  tools: "Tools",
  plugins: "Plugins",
  agents: "Agents",
  library: "Library",
  audit: "Audit",
};

function Frame({ session }: { session: Session }) {
  const path = usePath();
  const [side, setSide] = useState(false);
  const [view = "", id] = path;
  const title = TITLES[view] ?? "Chat";
  useEffect(() => {
    setSide(false);
    document.title = `${title} · Toolyard`;
  }, [path.join("/"), title]);
  useEffect(() => {
    if (!side) return undefined;
    const close = (event: KeyboardEvent) => event.key === "Escape" && setSide(false);
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [side]);
  return (
    <div className="app" data-side={side ? "open" : "closed"}>
      <a className="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>
        Skip to the content
      </a>
      <Sidebar path={path} />
      <button type="button" className="veil" aria-label="Close the menu" onClick={() => setSide(false)} />
      <main className="stage" id="main" tabIndex={-1}>
        <header className={`bar ${view === "c" ? "" : "thin"}`}>
          <Button look="plain icon" className="hamburger" icon={Menu} aria-label="Menu" aria-expanded={side} onClick={() => setSide(!side)} />
          {view === "c" && id ? <ChatTitle spaceId={id} /> : <strong className="grow cut">Toolyard</strong>}
        </header>
        <Suspense fallback={<Loading />}>{shown(view, id, session)}</Suspense>
      </main>
    </div>
  );
}

function ChatTitle({ spaceId }: { spaceId: string }) {
  const space = useQuery(`space ${spaceId}`, () => get<{ smartSpace: Space }>(`/api/smart-spaces/${spaceId}`), { mark: "spaces" });
  return <h1 className="grow cut">{space.data?.smartSpace.name ?? "Chat"}</h1>;
}

function shown(view: string, id: string | undefined, session: Session): ReactNode {
  if (!(view in TITLES)) return <ChatView spaceId={view === "c" ? id : undefined} defaultAgent={session.defaultAgent} />;
  return <div className="scroll">{page(view, id, session)}</div>;
}

function page(view: string, id: string | undefined, session: Session): ReactNode {
  switch (view) {
    case "inbox":
      return <InboxView />;
    case "runs":
      return id ? <RunView runId={id} /> : <RunsView />;
    case "tools":
      return <ToolsView defaultAgent={session.defaultAgent} />;
    case "plugins":
      return <PluginsView mode={session.mode} />;
    case "agents":
      return <AgentsView name={id} />;
    case "library":
      return <LibraryView tab={id} />;
    default:
      return <AuditView />;
  }
}
