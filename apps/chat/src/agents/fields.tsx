/** Fields of the form of an agent: each shows its own faults. */
import { useId, type ReactNode } from "react";
import { at, type Fault } from "./check.ts";

export interface Draft {
  config: unknown;
  faults: Fault[];
  set: (path: string, value: unknown) => void;
}

interface FieldProps {
  draft: Draft;
  path: string;
  label: string;
  about?: ReactNode;
}

function says(draft: Draft, path: string): string | undefined {
  return draft.faults.find((fault) => fault.path === path)?.says;
}

/** A label, its field, and what is wrong with it. */
function Labelled({ draft, path, label, about, children }: FieldProps & { children: (of: { id: string; "aria-invalid": boolean; "aria-describedby": string }) => ReactNode }) {
  const id = useId();
  const wrong = says(draft, path);
  return (
    <div className="label">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": wrong !== undefined, "aria-describedby": `${id}-says` })}
      <span id={`${id}-says`} className="small">
        {wrong === undefined ? <span className="soft">{about}</span> : <span className="tone-high">This {wrong}.</span>}
      </span>
    </div>
  );
}

export function TextField({ rows, placeholder, list, ...props }: FieldProps & { rows?: number; placeholder?: string; list?: string[] }) {
  const { draft, path } = props;
  const value = String(at(draft.config, path) ?? "");
  const change = (text: string) => draft.set(path, text === "" ? undefined : text);
  return (
    <Labelled {...props}>
      {(own) =>
        rows ? (
          <textarea className="field" rows={rows} value={value} placeholder={placeholder} onChange={(event) => change(event.target.value)} {...own} />
        ) : (
          <>
            <input className="field" value={value} placeholder={placeholder} list={list ? `${own.id}-list` : undefined} onChange={(event) => change(event.target.value)} {...own} />
            {list && (
              <datalist id={`${own.id}-list`}>
                {list.map((each) => (
                  <option key={each} value={each} />
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Labelled>
  );
}

export function NumberField({ placeholder, ...props }: FieldProps & { placeholder?: string }) {
  const { draft, path } = props;
  const value = at(draft.config, path);
  const change = (text: string) => {
    const number = Number(text.trim());
    // What is no number stays as it is, so that its fault shows.
    draft.set(path, text.trim() === "" ? undefined : Number.isNaN(number) ? text : number);
  };
  return (
    <Labelled {...props}>
      {(own) => <input className="field" inputMode="decimal" value={value === undefined || value === null ? "" : String(value)} placeholder={placeholder} onChange={(event) => change(event.target.value)} {...own} />}
    </Labelled>
  );
}

export function ChoiceField({ choices, none, ...props }: FieldProps & { choices: Record<string, string>; none: string }) {
  const { draft, path } = props;
  const value = at(draft.config, path);
  return (
    <Labelled {...props}>
      {(own) => (
        <select className="field" value={typeof value === "string" ? value : ""} onChange={(event) => draft.set(path, event.target.value || undefined)} {...own}>
          <option value="">{none}</option>
          {Object.entries(choices).map(([each, word]) => (
            <option key={each} value={each}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}
