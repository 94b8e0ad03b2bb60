/**
 * Markdown as elements of the page. It never makes HTML out of text: what a
 * model writes as HTML is shown as text, and only safe links are links.
 */
import { Check, Copy } from "lucide-react";
import { marked, type Token, type Tokens } from "marked";
import { Fragment, memo, useMemo, useState, type ReactNode } from "react";
import { highlight } from "./highlight.ts";

/** Draws a piece of plain text, for example with its citations as links. */
export type DrawText = (text: string) => ReactNode;

export const Markdown = memo(function Markdown({ text, draw }: { text: string; draw?: DrawText | undefined }) {
  const tokens = useMemo(() => marked.lexer(text, { gfm: true, breaks: true }), [text]);
  return <div className="prose">{blocks(tokens, draw ?? plain)}</div>;
});

const plain: DrawText = (text) => text;

function blocks(tokens: Token[], draw: DrawText): ReactNode {
  return tokens.map((token, at) => <Fragment key={at}>{block(token, draw)}</Fragment>);
}

function block(token: Token, draw: DrawText): ReactNode {
  switch (token.type) {
    case "space":
      return null;
    case "heading": {
      // The page has its own first heading.
      const Level = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as "h3";
      return <Level>{inline(token.tokens ?? [], draw)}</Level>;
    }
    case "paragraph":
      return <p>{inline(token.tokens ?? [], draw)}</p>;
    case "text":
      return token.tokens ? inline(token.tokens, draw) : draw(unescaped(token.text as string));
    case "code":
      return <Code text={token.text as string} language={((token as Tokens.Code).lang ?? "").split(/\s/)[0] ?? ""} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [], draw)}</blockquote>;
    case "hr":
      return <hr />;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, at) => (
        <li key={at}>
          {item.task && <input type="checkbox" checked={item.checked ?? false} readOnly aria-label="Done" />}
          {blocks(item.tokens, draw)}
        </li>
      ));
      return list.ordered ? <ol start={list.start || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <Table token={token as Tokens.Table} draw={draw} />;
    default:
      return "raw" in token ? draw(token.raw) : null;
  }
}

function inline(tokens: Token[], draw: DrawText): ReactNode {
  return tokens.map((token, at) => <Fragment key={at}>{piece(token, draw)}</Fragment>);
}

function piece(token: Token, draw: DrawText): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens ?? [], draw)}</strong>;
    case "em":
      return <em>{inline(token.tokens ?? [], draw)}</em>;
    case "del":
      return <del>{inline(token.tokens ?? [], draw)}</del>;
    case "codespan":
      return <code>{unescaped(token.text as string)}</code>;
    case "br":
      return <br />;
    case "link": {
      const href = safe((token as Tokens.Link).href);
      const inside = inline(token.tokens ?? [], draw);
      return href ? (
        <a href={href} target="_blank" rel="noreferrer noopener">
          {inside}
        </a>
      ) : (
        inside
      );
    }
    case "image":
      // Pictures of other places would tell them who reads this.
      return <a href={safe((token as Tokens.Image).href) ?? "#"} target="_blank" rel="noreferrer noopener">{(token.text as string) || "Picture"}</a>;
    case "text":
      return token.tokens ? inline(token.tokens, draw) : draw(unescaped(token.text as string));
    case "escape":
      return token.text as string;
    default:
      return "raw" in token ? draw(token.raw) : null;
  }
}

function safe(href: string): string | undefined {
  try {
    const url = new URL(href, location.origin);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** The lexer escapes nothing by itself; entities that were written are read. */
function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ({ amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" })[name] ?? "");
}

function Table({ token, draw }: { token: Tokens.Table; draw: DrawText }) {
  return (
    <div className="table-room" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, at) => (
              <th key={at}>{inline(cell.tokens, draw)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens, draw)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Code({ text, language }: { text: string; language: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    // There is no clipboard on addresses without TLS.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    setCopied((await clipboard?.writeText(text).then(() => true, () => false)) ?? false);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <figure className="code-figure">
      <figcaption>
        <span>{language || "code"}</span>
        <button type="button" className="button plain tiny" onClick={() => void copy()}>
          {copied ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
          {copied ? "Copied" : "Copy"}
        </button>
      </figcaption>
      <pre tabIndex={0}>
        <Coloured text={text} language={language.toLowerCase()} />
      </pre>
    </figure>
  );
}

/** Code in colours. */
export function Coloured({ text, language }: { text: string; language: string }) {
  const tokens = useMemo(() => highlight(text, language), [text, language]);
  return (
    <code>
      {tokens.map((token, at) => (token.kind === "plain" ? token.text : <span key={at} className={`tok-${token.kind}`}>{token.text}</span>))}
    </code>
  );
}

/** A value as JSON, in colours. */
export function Json({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  return (
    <pre className="code-block" tabIndex={0} aria-label={label}>
      <Coloured text={text} language={typeof value === "string" ? "text" : "json"} />
    </pre>
  );
}
