import { Pencil, ShieldAlert } from "lucide-react";
import { useId, useState } from "react";
import { gateway } from "../api/gateway.ts";
import type { Question, Risk, WaitView } from "../api/types.ts";
import { sentence, touch } from "../lib/query.ts";
import { ago, human } from "../lib/words.ts";
import { Json } from "../markdown/Markdown.tsx";
import { Button, RiskBadge } from "../parts/parts.tsx";

type Remember = "once" | "session" | "always" | "alwaysThese";

/** A call that waits for a yes or no, with all that the answer is about. */
export function PermissionCard({ wait }: { wait: WaitView }) {
  const question = (wait.payload ?? {}) as Question;
  const risk: Risk = question.risk ?? "medium";
  const [busy, setBusy] = useState<string>();
  const [wrong, setWrong] = useState<string>();
  const [edited, setEdited] = useState<string>();
  const [reason, setReason] = useState("");
  const title = useId();

  const answer = async (name: string, decision: "allow" | "deny", remember: Remember = "once") => {
    setBusy(name);
    setWrong(undefined);
    try {
      const bound = question.argsHash === undefined ? {} : { argsHash: question.argsHash };
      const changed = decision === "allow" && edited !== undefined ? { editedArgs: JSON.parse(edited) as unknown } : {};
      const why = decision === "deny" && reason.trim() ? { message: reason.trim() } : {};
      await gateway.waits.answer(wait.id, { decision, remember, ...bound, ...changed, ...why });
      touch("waits");
    } catch (thrown) {
      setWrong(thrown instanceof SyntaxError ? "The arguments are no JSON. Mend them, or go back." : sentence(thrown));
      setBusy(undefined);
    }
  };

  const editing = edited !== undefined;
  return (
    <section className={`permission ${risk}`} aria-labelledby={title} data-wait={wait.id}>
      <header className="row wrap">
        <ShieldAlert size={18} aria-hidden />
        <h3 id={title} className="grow">
          Allow “{human(wait.toolName)}”?
        </h3>
        <RiskBadge risk={risk} />
      </header>
      {question.description && <p className="small">{question.description}</p>}
      <dl className="facts">
        <dt>Tool</dt>
        <dd className="mono">{wait.toolName}</dd>
        {question.serviceId && (
          <>
            <dt>Service</dt>
            <dd className="mono">{question.serviceId}</dd>
          </>
        )}
        {wait.expiresAt && (
          <>
            <dt>Expires</dt>
            <dd>{ago(wait.expiresAt)}</dd>
          </>
        )}
      </dl>
      {editing ? (
        <label className="label">
          Arguments to use instead
          <textarea className="field code" rows={6} value={edited} spellCheck={false} onChange={(event) => setEdited(event.target.value)} />
        </label>
      ) : (
        <Json value={question.args ?? {}} label={`Arguments of ${wait.toolName}`} />
      )}
      {wrong && (
        <p className="notice wrong" role="alert">
          {wrong}
        </p>
      )}
      {wait.mayAnswer ? (
        <>
          <div className="row wrap">
            <Button look="main" busy={busy === "once"} disabled={!!busy} onClick={() => void answer("once", "allow")}>
              {editing ? "Allow with these" : "Allow once"}
            </Button>
            {!editing && (
              <>
                <Button busy={busy === "session"} disabled={!!busy} onClick={() => void answer("session", "allow", "session")}>
                  For this chat
                </Button>
                <Button busy={busy === "always"} disabled={!!busy} onClick={() => void answer("always", "allow", "always")}>
                  Always
                </Button>
                <Button icon={Pencil} disabled={!!busy} onClick={() => setEdited(JSON.stringify(question.args ?? {}, null, 2))}>
                  Edit
                </Button>
              </>
            )}
            {editing && (
              <Button disabled={!!busy} onClick={() => setEdited(undefined)}>
                Back
              </Button>
            )}
            <Button look="danger" busy={busy === "deny"} disabled={!!busy} onClick={() => void answer("deny", "deny")}>
              Deny
            </Button>
          </div>
          <input
            className="field"
            value={reason}
            placeholder="Why not? (optional)"
            aria-label="Why not"
            onChange={(event) => setReason(event.target.value)}
          />
        </>
      ) : (
        <p className="small soft">Somebody else has to answer this.</p>
      )}
    </section>
  );
}
