/** A chat with an agent beside its configuration. */
import { RotateCcw, Send, X } from "lucide-react";
import { useState } from "react";
import { liveRun } from "../chat/conversation.ts";
import { beginChat, say, type Choice } from "../chat/send.ts";
import { Talk } from "../chat/Talk.tsx";
import { useSpace } from "../chat/useSpace.ts";
import { sentence } from "../lib/query.ts";
import { Link } from "../lib/router.tsx";
import { useOffer } from "../page-tools/useOffer.ts";
import { Button } from "../parts/parts.tsx";

export function TryAgent({ name, version, onClose }: { name: string; version: string; onClose: () => void }) {
  const [spaceId, setSpace] = useState<string>();
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string>();
  const [busy, setBusy] = useState(false);
  const space = useSpace(spaceId);
  const { clientTools, picks } = useOffer();
  const run = liveRun(space.conversation);
  const send = async () => {
    const said = text.trim();
    if (said === "" || busy) return;
    const choice: Choice = { agent: name, clientTools, picks };
    setBusy(true);
    setWrong(undefined);
    try {
      if (spaceId) await say(spaceId, said, choice);
      else setSpace(await beginChat(said, choice, [], `Trying ${name}`));
      setText("");
    } catch (thrown) {
      setWrong(sentence(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section className="try" aria-label={`Try ${name}`}>
      <header className="try-head">
        <h2 className="grow cut">Try {name}</h2>
        {spaceId && <Button look="plain icon" icon={RotateCcw} aria-label="Begin again" onClick={() => setSpace(undefined)} />}
        <Button look="plain icon" icon={X} aria-label="Close the trial" onClick={onClose} />
      </header>
      {spaceId ? (
        <Talk key={spaceId} state={space.conversation} agent={name} loadOlder={space.loadOlder} />
      ) : (
        <div className="scroll">
          <p className="state small soft">
            It answers as its saved version <span className="mono">{version.slice(0, 8)}</span> does. Tools of this page and of your plugins take part.
          </p>
        </div>
      )}
      {(wrong ?? space.error) && <p className="notice wrong" role="alert">{wrong ?? space.error}</p>}
      <form
        className="try-say"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <input className="field" aria-label="Message" placeholder="Say something" value={text} onChange={(event) => setText(event.target.value)} />
        <Button type="submit" look="main icon" icon={Send} busy={busy} disabled={text.trim() === ""} aria-label="Send" />
      </form>
      {spaceId && (
        <p className="small soft try-foot">
          <Link href={`/c/${spaceId}`}>Open as a chat</Link>
          {run && ` · ${run.status === "waiting_tool" ? "waits" : "works"}`}
        </p>
      )}
    </section>
  );
}
