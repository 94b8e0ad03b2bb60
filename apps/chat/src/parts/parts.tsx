/** The small parts that every view is made of. */
import { AlertTriangle, LoaderCircle, Search, X, type LucideIcon } from "lucide-react";
import { useEffect, useId, useRef, type ButtonHTMLAttributes, type ReactNode } from "react";
import { Switch as RadixSwitch } from "radix-ui";
import type { Risk } from "../api/types.ts";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { look?: string; busy?: boolean; icon?: LucideIcon };

export function Button({ look = "", busy = false, icon: Icon, children, className = "", disabled, ...rest }: ButtonProps) {
  const Shown = busy ? LoaderCircle : Icon;
  return (
    <button type="button" className={`button ${look} ${className}`} disabled={disabled || busy} aria-busy={busy || undefined} {...rest}>
      {Shown && <Shown size={16} className={busy ? "turning" : ""} aria-hidden />}
      {children}
    </button>
  );
}

export function RiskBadge({ risk }: { risk: Risk }) {
  return <span className={`badge ${risk}`}>{risk === "high" ? "High risk" : risk === "medium" ? "Medium risk" : "Low risk"}</span>;
}

export function Empty({ icon: Icon, title, children }: { icon: LucideIcon; title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <span className="picture">
        <Icon size={24} aria-hidden />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Wrong({ what, onAgain }: { what: string; onAgain?: () => void }) {
  return (
    <div className="state wrong" role="alert">
      <span className="picture">
        <AlertTriangle size={24} aria-hidden />
      </span>
      <h2>That did not work</h2>
      <p>{what}</p>
      {onAgain && <Button onClick={onAgain}>Try again</Button>}
    </div>
  );
}

export function Loading({ lines = 3, what = "Loading" }: { lines?: number; what?: string }) {
  return (
    <div className="bones" role="status" aria-label={what}>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} className="bone" />
      ))}
    </div>
  );
}

/** Shows the state of a query until there is something, then that. */
export function Shown<Data>({
  of,
  children,
  empty,
}: {
  of: { data: Data | undefined; error: string | undefined; reload: () => Promise<void> };
  children: (data: Data) => ReactNode;
  empty?: { when: (data: Data) => boolean; show: ReactNode };
}) {
  if (of.data === undefined) return of.error ? <Wrong what={of.error} onAgain={() => void of.reload()} /> : <Loading />;
  if (empty?.when(of.data)) return <>{empty.show}</>;
  return <>{children(of.data)}</>;
}

export function SearchField({ value, onChange, label }: { value: string; onChange: (text: string) => void; label: string }) {
  return (
    <div className="search">
      <Search size={16} aria-hidden />
      <input className="field" type="search" value={value} placeholder={label} aria-label={label} onChange={(event) => onChange(event.target.value)} />
    </div>
  );
}

export function Switch({ checked, onChange, label }: { checked: boolean; onChange: (on: boolean) => void; label: string }) {
  return (
    <RadixSwitch.Root className="switch" checked={checked} onCheckedChange={onChange} aria-label={label}>
      <RadixSwitch.Thumb />
    </RadixSwitch.Root>
  );
}

/** A dialog over the page. The platform keeps the focus inside and gives it back. */
export function Sheet({ title, open, onClose, children }: { title: string; open: boolean; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const shown = dialog.current;
    if (open && !shown?.open) shown?.showModal();
    if (!open && shown?.open) shown.close();
  }, [open]);
  return (
    <dialog ref={dialog} className="sheet" aria-labelledby={heading} onClose={onClose} onCancel={onClose}>
      {open && (
        <>
          <div className="sheet-head">
            <h2 id={heading}>{title}</h2>
            <Button look="plain icon" icon={X} onClick={onClose} aria-label="Close" />
          </div>
          <div className="sheet-body">{children}</div>
        </>
      )}
    </dialog>
  );
}

/** The frame of a view that is no chat. */
export function Page({ title, lead, actions, children }: { title: string; lead?: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <div className="page">
      <div className="row wrap">
        <h1 className="grow">{title}</h1>
        {actions}
      </div>
      {lead && <p className="lead">{lead}</p>}
      {children}
    </div>
  );
}
