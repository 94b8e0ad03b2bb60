import { ArrowUp, Paperclip, Square, Wrench, X } from "lucide-react";
import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { upload } from "../api/gateway.ts";
import type { AgentRow, Model } from "../api/types.ts";
import { sentence } from "../lib/query.ts";
import { Link } from "../lib/router.tsx";
import { Button } from "../parts/parts.tsx";
import type { Attached } from "./send.ts";

interface Props {
  agents: AgentRow[];
  agent: string;
  /** A chat keeps the agent that it began with. */
  onAgent?: ((name: string) => void) | undefined;
  models: Model[];
  model: string;
  onModel: (id: string) => void;
  busy: boolean;
  /** How many tools the agent may use, and of how many. */
  tools: { selected: number; all: number };
  onSend: (text: string, files: Attached[]) => Promise<void>;
  onStop?: (() => void) | undefined;
}

export function Composer({ agents, agent, onAgent, models, model, onModel, busy, tools, onSend, onStop }: Props) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState<Attached[]>([]);
  const [sending, setSending] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const picker = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLTextAreaElement>(null);

  // Ready to type, except where that would open a keyboard over the page.
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) box.current?.focus({ preventScroll: true });
  }, []);

  const send = async () => {
    const said = text.trim();
    if ((!said && files.length === 0) || sending) return;
    setSending(true);
    setWrong(undefined);
    setText("");
    try {
      await onSend(said, files);
      setFiles([]);
    } catch (thrown) {
      // What was written is not lost.
      setText(said);
      setWrong(sentence(thrown));
    } finally {
      setSending(false);
      box.current?.focus();
    }
  };

  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void send();
  };

  const attach = async (chosen: FileList | null) => {
    setWrong(undefined);
    for (const file of chosen ?? []) {
      try {
        const answer = await upload<{ file: { id: string } }>("/api/files", file);
        const mediaType = file.type || "application/octet-stream";
        setFiles((before) => [...before, { id: answer.file.id, name: file.name, mediaType }]);
      } catch (thrown) {
        setWrong(`${file.name}: ${sentence(thrown)}`);
      }
    }
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {wrong && (
        <p className="notice wrong" role="alert">
          {wrong}
        </p>
      )}
      <div className="composer-box">
        {files.length > 0 && (
          <div className="row wrap">
            {files.map((file) => (
              <span key={file.id} className="file-chip">
                {file.name}
                <Button look="plain tiny icon" icon={X} aria-label={`Remove ${file.name}`} onClick={() => setFiles(files.filter((other) => other !== file))} />
              </span>
            ))}
          </div>
        )}
        <textarea
          ref={box}
          rows={1}
          value={text}
          aria-label="Message"
          placeholder={`Message ${agent}`}
          onKeyDown={keys}
          onChange={(event) => setText(event.target.value)}
        />
        <div className="row">
          <input ref={picker} type="file" multiple hidden onChange={(event) => void attach(event.target.files).then(() => (event.target.value = ""))} />
          <Button look="plain icon" icon={Paperclip} aria-label="Attach files" onClick={() => picker.current?.click()} />
          {onAgent && (
            <select aria-label="Agent" value={agent} onChange={(event) => onAgent(event.target.value)}>
              {agents.map((row) => (
                <option key={row.id}>{row.name}</option>
              ))}
            </select>
          )}
          <select aria-label="Model" value={model} onChange={(event) => onModel(event.target.value)}>
            <option value="">Default model</option>
            {models
              .filter((row) => row.available)
              .map((row) => (
                <option key={row.id} value={row.id}>
                  {row.name}
                </option>
              ))}
          </select>
          {tools.all > 0 && (
            <Link className="button plain tiny soft" href="/tools" aria-label={`${tools.selected}/${tools.all} tools selected`}>
              <Wrench size={15} aria-hidden />
              {tools.selected}/{tools.all}
            </Link>
          )}
          <span className="grow" />
          {busy && onStop ? (
            <Button look="icon" icon={Square} aria-label="Stop" onClick={onStop} />
          ) : (
            <Button type="submit" look="main icon" icon={ArrowUp} aria-label="Send" busy={sending} disabled={!text.trim() && files.length === 0} />
          )}
        </div>
      </div>
    </form>
  );
}
