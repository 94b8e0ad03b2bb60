import { useId, useState, type ReactElement } from "react";
import { usePermissions, type PermissionRequest, type Remember } from "../hooks/use-permissions.js";
import { riskLabel } from "../tools/risk.js";

export interface PermissionCardProps {
  request: PermissionRequest;
  className?: string;
  /** Called when the answer was taken. */
  onAnswered?: (decision: "allow" | "deny") => void;
}

/** Asks a person for a permission: the tool, its risk, the exact arguments, and what may be answered. */
export function PermissionCard({ request, className = "", onAnswered }: PermissionCardProps): ReactElement {
  const { allow, deny, answering } = usePermissions();
  const [edited, setEdited] = useState<string>();
  const [fault, setFault] = useState<string>();
  const title = useId();
  const busy = answering.has(request.id);
  const shown = JSON.stringify(request.args, null, 2);

  const give = async (decision: "allow" | "deny", remember: Remember) => {
    setFault(undefined);
    try {
      if (decision === "deny") await deny(request, { remember });
      else await allow(request, { remember, ...(edited === undefined ? {} : { editedArgs: JSON.parse(edited) as unknown }) });
      onAnswered?.(decision);
    } catch (thrown) {
      setFault(thrown instanceof Error ? thrown.message : String(thrown));
    }
  };

  return (
    <section className={`toolyard-permission ${className}`} data-risk={request.risk} aria-labelledby={title}>
      <header>
        <h3 id={title}>
          Allow <code>{request.toolName}</code>?
        </h3>
        <span className="toolyard-risk" data-risk={request.risk}>
          {riskLabel(request.risk)}
        </span>
      </header>
      {request.serviceId && <p className="toolyard-service">Service: {request.serviceId}</p>}
      {request.description && <p>{request.description}</p>}
      {request.risk === "high" && <p role="note">This tool may change or delete things. Look at its arguments first.</p>}
      {edited === undefined ? (
        <pre className="toolyard-args">{shown}</pre>
      ) : (
        <textarea aria-label="Arguments as JSON" value={edited} rows={6} onChange={(event) => setEdited(event.target.value)} />
      )}
      {fault && <p role="alert">{fault}</p>}
      <div className="toolyard-actions">
        <button type="button" disabled={busy} onClick={() => void give("allow", "once")}>
          Allow once
        </button>
        <button type="button" disabled={busy || edited !== undefined} onClick={() => void give("allow", "session")}>
          Allow in this chat
        </button>
        <button type="button" disabled={busy || edited !== undefined} onClick={() => void give("allow", "always")}>
          Always allow
        </button>
        <button type="button" disabled={busy} aria-pressed={edited !== undefined} onClick={() => setEdited(edited === undefined ? shown : undefined)}>
          {edited === undefined ? "Edit" : "Do not edit"}
        </button>
        <button type="button" disabled={busy} data-deny onClick={() => void give("deny", "once")}>
          Deny
        </button>
      </div>
    </section>
  );
}
