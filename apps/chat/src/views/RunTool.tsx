import { useToolRegistry, type RegistryTool } from "@toolyard/react";
import { Play } from "lucide-react";
import { useState } from "react";
import type { Schema } from "../api/types.ts";
import { beginChat } from "../chat/send.ts";
import { sentence } from "../lib/query.ts";
import { go } from "../lib/router.tsx";
import { human } from "../lib/words.ts";
import { Json } from "../markdown/Markdown.tsx";
import { useOffer } from "../page-tools/useOffer.ts";
import { Button } from "../parts/parts.tsx";
import { PAGE_TOOLS } from "../page-tools/tools.ts";

type Values = Record<string, unknown>;

function typeOf(schema: Schema): string {
  return (Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type) ?? "string";
}

/** Runs one tool with arguments from a form that its schema makes. */
export function RunTool({ tool, agent }: { tool: RegistryTool; agent: string }) {
  const { execute } = useToolRegistry();
  const { clientTools, picks } = useOffer();
  const schema = (tool.parameters ?? {}) as Schema;
  const [values, setValues] = useState<Values>({});
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const [result, setResult] = useState<{ value: unknown }>();
  const here = tool.from !== "gateway" || Object.hasOwn(PAGE_TOOLS, tool.name);
  const run = async () => {
    setBusy(true);
    setWrong(undefined);
    setResult(undefined);
    try {
      const args = readValues(schema, values);
      if (here) setResult({ value: (await execute(tool.name, args)) ?? null });
      else {
        // The gateway runs tools for agents only: with a log, and after asking.
        const said = `call ${tool.name} ${JSON.stringify(args)}`;
        go(`/c/${await beginChat(said, { agent, clientTools, picks }, [], `Run ${human(tool.toolName)}`)}`);
      }
    } catch (thrown) {
      setWrong(sentence(thrown));
    } finally {
      setBusy(false);
    }
  };
  const fields = Object.entries(schema.properties ?? {});
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <p className="soft">{tool.description}</p>
      {fields.length === 0 && <p className="small soft">It takes no arguments.</p>}
      {fields.map(([name, field]) => (
        <Field key={name} name={name} schema={field} needed={schema.required?.includes(name) ?? false} value={values[name]} onChange={(value) => setValues({ ...values, [name]: value })} />
      ))}
      {!here && <p className="notice fine">It runs in a new chat, as a call of {agent}: with its log, and after asking if it must.</p>}
      {wrong && (
        <p className="notice wrong" role="alert">
          {wrong}
        </p>
      )}
      <div className="row">
        <Button type="submit" look="main" icon={Play} busy={busy}>
          {here ? "Run here" : "Run in a chat"}
        </Button>
      </div>
      {result && <Json value={result.value} label="Result" />}
    </form>
  );
}

/** The values in the types that the schema asks for. */
function readValues(schema: Schema, values: Values): Values {
  const read: Values = {};
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const value = values[name];
    if (value === undefined || value === "") {
      if (schema.required?.includes(name)) throw new Error(`${name} is needed`);
      continue;
    }
    const type = typeOf(field);
    if (type === "number" || type === "integer") {
      const number = Number(value);
      if (Number.isNaN(number)) throw new Error(`${name} must be a number`);
      read[name] = number;
    } else if ((type === "object" || type === "array") && typeof value === "string") {
      try {
        read[name] = JSON.parse(value);
      } catch {
        throw new Error(`${name} must be JSON`);
      }
    } else read[name] = value;
  }
  return read;
}

function Field({ name, schema, needed, value, onChange }: { name: string; schema: Schema; needed: boolean; value: unknown; onChange: (value: unknown) => void }) {
  const type = typeOf(schema);
  const title = `${schema.title ?? name}${needed ? " (needed)" : ""}`;
  const about = schema.description && <span className="soft small">{schema.description}</span>;
  if (type === "boolean") {
    return (
      <label className="row">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />
        <span className="small">{title}</span>
        {about}
      </label>
    );
  }
  if (schema.enum) {
    return (
      <label className="label">
        {title}
        <select className="field" value={String(value ?? "")} onChange={(event) => onChange(event.target.value || undefined)}>
          <option value="">–</option>
          {schema.enum.map((option) => (
            <option key={String(option)}>{String(option)}</option>
          ))}
        </select>
        {about}
      </label>
    );
  }
  const long = type === "object" || type === "array";
  return (
    <label className="label">
      {title}
      {long ? (
        <textarea className="field code" rows={3} placeholder={type === "array" ? "[]" : "{}"} value={String(value ?? "")} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input className="field" inputMode={type === "string" ? "text" : "decimal"} value={String(value ?? "")} onChange={(event) => onChange(event.target.value)} />
      )}
      {about}
    </label>
  );
}
