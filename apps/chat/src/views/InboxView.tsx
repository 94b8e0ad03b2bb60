import { useWaits } from "@toolyard/react";
import { Inbox } from "lucide-react";
import { InputCard } from "../chat/InputCard.tsx";
import { PermissionCard } from "../chat/PermissionCard.tsx";
import { Link } from "../lib/router.tsx";
import { ago, human } from "../lib/words.ts";
import { Empty, Loading, Page, Wrong } from "../parts/parts.tsx";

/** All that waits for a person, over all chats. */
export default function InboxView() {
  const { waits, isLoading, error, refresh } = useWaits();
  const asked = waits.filter((wait) => ["approval", "input", "credential"].includes(wait.kind));
  const calls = waits.filter((wait) => wait.kind === "client");
  return (
    <Page title="Inbox" lead="What runs wait for, over all chats. An answer here counts everywhere, and the run goes on at once.">
      {error && waits.length === 0 ? (
        <Wrong what={error.message} onAgain={() => void refresh()} />
      ) : isLoading && waits.length === 0 ? (
        <Loading />
      ) : waits.length === 0 ? (
        <Empty icon={Inbox} title="Nothing waits for you">
          <p>When an agent wants to do something risky, its question appears here and in its chat.</p>
        </Empty>
      ) : (
        <>
          <div className="list">
            {asked.map((wait) => (
              <div key={wait.id} className="stack">
                <p className="small soft">
                  {wait.smartSpaceId ? <Link href={`/c/${wait.smartSpaceId}`}>Open the chat</Link> : "Without a chat"} · asked {ago(wait.openedAt)} ·{" "}
                  <Link href={`/runs/${wait.runId}`}>See the run</Link>
                </p>
                {wait.kind === "approval" ? <PermissionCard wait={wait} /> : <InputCard wait={wait} />}
              </div>
            ))}
          </div>
          {calls.length > 0 && (
            <section className="stack">
              <h2>Calls that wait for a program</h2>
              <ul className="list">
                {calls.map((wait) => (
                  <li key={wait.id} className="line">
                    <div className="line-body">
                      <div className="line-title">{human(wait.toolName)}</div>
                      <div className="small soft">
                        {wait.claimedBy ? "A program works on it" : "No program has taken it yet"} · since {ago(wait.openedAt)}
                      </div>
                    </div>
                    {wait.smartSpaceId && (
                      <Link className="button" href={`/c/${wait.smartSpaceId}`}>
                        Open the chat
                      </Link>
                    )}
                  </li>
                ))}
              </ul>
            </section>
          )}
        </>
      )}
    </Page>
  );
}
