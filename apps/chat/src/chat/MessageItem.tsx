import { BrainCircuit, ChevronDown, FileText, Pencil, RotateCcw } from "lucide-react";
import { Collapsible } from "radix-ui";
import { memo, useCallback, useMemo, useState, type ReactNode } from "react";
import { Markdown } from "../markdown/Markdown.tsx";
import { Button } from "../parts/parts.tsx";
import type { Block, Call, Message, Source } from "./conversation.ts";
import { ToolCard } from "./ToolCard.tsx";

interface Props {
  message: Message;
  calls: Record<string, Call>;
  agent: string;
  /** It is being written now. */
  live: boolean;
  onRetry?: ((message: Message) => void) | undefined;
  onEdit?: ((message: Message, text: string) => void) | undefined;
}

export const MessageItem = memo(function MessageItem(props: Props) {
  return props.message.role === "user" ? <Said {...props} /> : <Answered {...props} />;
});

function textOf(message: Message): string {
  return message.blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/** What a person said. */
function Said({ message, onEdit }: Props) {
  const [draft, setDraft] = useState<string>();
  const text = textOf(message);
  if (draft !== undefined && onEdit) {
    return (
      <form
        className="message said editing"
        onSubmit={(event) => {
          event.preventDefault();
          setDraft(undefined);
          if (draft.trim()) onEdit(message, draft.trim());
        }}
      >
        <textarea className="field" rows={3} value={draft} aria-label="Your message" autoFocus onChange={(event) => setDraft(event.target.value)} />
        <div className="row">
          <Button type="submit" look="main" disabled={!draft.trim()}>
            Send instead
          </Button>
          <Button onClick={() => setDraft(undefined)}>Cancel</Button>
        </div>
      </form>
    );
  }
  return (
    <article className="message said" aria-label="You">
      <div className="bubble">
        {message.blocks.map((block, at) => (block.type === "file" ? <FileChip key={at} block={block} /> : null))}
        {text}
      </div>
      {onEdit && (
        <div className="tools-of-message">
          <Button look="plain tiny" icon={Pencil} onClick={() => setDraft(text)}>
            Edit
          </Button>
        </div>
      )}
    </article>
  );
}

/** What an agent answered: text, thoughts, calls and sources. */
function Answered({ message, calls, agent, live, onRetry }: Props) {
  const sources = useMemo(() => {
    const all = message.blocks.flatMap((block) => (block.type === "source" ? [block.source] : []));
    return all.filter((source, at) => all.findIndex((other) => other.url === source.url) === at);
  }, [message.blocks]);
  const shape = sources.map((source) => source.url).join("\n");
  // The same function while the sources are the same, so that nothing is drawn twice.
  const draw = useCallback((text: string) => cited(text, sources, message.id), [shape, message.id]);
  return (
    <article className="message answered" aria-label={agent} aria-busy={live || undefined}>
      <span className="avatar" aria-hidden>
        {agent.charAt(0).toUpperCase()}
      </span>
      <div className="answer">
        <span className="who">{agent}</span>
        {message.blocks.map((block, at) => (
          <Piece key={keyOf(block, at)} block={block} calls={calls} draw={draw} />
        ))}
        {live && message.blocks.length === 0 && <Thinking />}
        {sources.length > 0 && <Sources sources={sources} of={message.id} />}
        {!live && onRetry && (
          <div className="tools-of-message">
            <Button look="plain tiny" icon={RotateCcw} onClick={() => onRetry(message)}>
              Retry
            </Button>
          </div>
        )}
      </div>
    </article>
  );
}

function keyOf(block: Block, at: number): string {
  return block.type === "call" ? block.callId : `${block.type}-${at}`;
}

function Piece({ block, calls, draw }: { block: Block; calls: Record<string, Call>; draw: (text: string) => ReactNode }) {
  switch (block.type) {
    case "text":
      return <Markdown text={block.text} draw={draw} />;
    case "reasoning":
      return block.text ? (
        <Collapsible.Root className="thought">
          <Collapsible.Trigger className="thought-line">
            <BrainCircuit size={15} aria-hidden /> Thought about it <ChevronDown size={15} className="chevron" aria-hidden />
          </Collapsible.Trigger>
          <Collapsible.Content className="thought-body">{block.text}</Collapsible.Content>
        </Collapsible.Root>
      ) : null;
    case "call": {
      const call = calls[block.callId];
      return call ? <ToolCard call={call} /> : null;
    }
    case "file":
      return <FileChip block={block} />;
    case "source":
      return null;
  }
}

function FileChip({ block }: { block: Extract<Block, { type: "file" }> }) {
  return (
    <span className="file-chip">
      <FileText size={14} aria-hidden />
      {block.name ?? block.mediaType}
    </span>
  );
}

/** `[1]` in a text becomes a link to its source. */
function cited(text: string, sources: Source[], of: string): ReactNode {
  if (sources.length === 0 || !/\[\d+\]/.test(text)) return text;
  return text.split(/(\[\d+\])/).map((piece, at) => {
    const number = Number(/^\[(\d+)\]$/.exec(piece)?.[1] ?? 0);
    const source = sources[number - 1];
    if (!source) return piece;
    return (
      <a key={at} className="cite" href={`#${anchor(of, number)}`} title={source.title ?? source.url} aria-label={`Source ${number}: ${source.title ?? source.url}`}>
        {number}
      </a>
    );
  });
}

function anchor(of: string, number: number): string {
  return `source-${of}-${number}`;
}

function Sources({ sources, of }: { sources: Source[]; of: string }) {
  return (
    <ol className="sources" aria-label="Sources">
      {sources.map((source, at) => (
        <li key={source.url} id={anchor(of, at + 1)}>
          <span className="cite" aria-hidden>
            {at + 1}
          </span>
          <a href={/^https?:/.test(source.url) ? source.url : "#"} target="_blank" rel="noreferrer noopener">
            {source.title ?? source.url}
          </a>
          <span className="soft cut">{hostOf(source.url)}</span>
        </li>
      ))}
    </ol>
  );
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return "";
  }
}

export function Thinking() {
  return (
    <span className="dots" role="status" aria-label="Working">
      <i />
      <i />
      <i />
    </span>
  );
}
