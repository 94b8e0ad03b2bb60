import { useId, type ReactElement, type ReactNode } from "react";
import { isToolPart, toolNameOf, type ToolPart, type ToolyardMessage } from "../chat/message.js";
import { useModels } from "../hooks/use-models.js";
import { useToolyardChat, type UseToolyardChatOptions } from "../hooks/use-toolyard-chat.js";
import { PermissionCard } from "./permission-card.js";

export interface ToolyardChatProps extends UseToolyardChatOptions {
  className?: string;
  placeholder?: string;
  /** Shown before the first message. */
  empty?: ReactNode;
  /** Lets people choose a model. */
  showModels?: boolean;
  /** Renders a text of an answer, for example as Markdown. */
  renderText?: (text: string) => ReactNode;
  /** Renders a call. `undefined` means: as usual. */
  renderTool?: (part: ToolPart, name: string, message: ToolyardMessage) => ReactNode | undefined;
}

/** A chat that is ready to use: messages, calls, permissions, a form. */
export function ToolyardChat(props: ToolyardChatProps): ReactElement {
  const { className = "", placeholder = "Say something", empty, showModels = false, renderText, renderTool, ...options } = props;
  const chat = useToolyardChat(options);
  const field = useId();
  return (
    <section className={`toolyard-chat ${className}`} aria-label="Chat" aria-busy={chat.isLoading}>
      {chat.hasOlder && (
        <button type="button" className="toolyard-older" disabled={chat.isLoadingOlder} onClick={() => void chat.loadOlder()}>
          {chat.isLoadingOlder ? "Loading…" : "Show earlier messages"}
        </button>
      )}
      <ol className="toolyard-messages" aria-live="polite">
        {chat.messages.length === 0 && <li className="toolyard-empty">{chat.isLoadingHistory ? "Loading…" : empty}</li>}
        {chat.messages.map((message) => (
          <Message key={message.id} message={message} renderText={renderText} renderTool={renderTool} />
        ))}
      </ol>
      {chat.status === "submitted" && <p className="toolyard-waiting">Thinking…</p>}
      {chat.permissions.map((request) => (
        <PermissionCard key={request.id} request={request} />
      ))}
      {chat.isReconnecting ? (
        <p role="status">The connection broke. Trying again…</p>
      ) : (
        chat.error && (
          <p role="alert">
            {chat.error.message}{" "}
            <button type="button" onClick={() => void chat.regenerate()}>
              Try again
            </button>
          </p>
        )
      )}
      <form onSubmit={chat.handleSubmit}>
        {showModels && <Models model={chat.settings.model} onChange={chat.setModel} />}
        <label htmlFor={field}>Message</label>
        <textarea
          id={field}
          value={chat.input}
          placeholder={placeholder}
          rows={2}
          onChange={chat.handleInputChange}
          onKeyDown={(event) => {
            // While a composition is open, Enter belongs to it.
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) chat.handleSubmit(event);
          }}
        />
        {chat.isLoading ? (
          <button type="button" onClick={() => void chat.stop()}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={chat.input.trim() === ""}>
            Send
          </button>
        )}
      </form>
    </section>
  );
}

type Rendering = { renderText: ToolyardChatProps["renderText"]; renderTool: ToolyardChatProps["renderTool"] };

function Message({ message, renderText, renderTool }: { message: ToolyardMessage } & Rendering): ReactElement {
  const sources = message.parts.flatMap((part) => (part.type === "source-url" ? [part] : []));
  return (
    <li className="toolyard-message" data-role={message.role}>
      <span className="toolyard-avatar" aria-hidden="true">
        {message.role === "user" ? "Y" : "A"}
      </span>
      <div>
        {message.parts.map((part, at) => {
          if (part.type === "text") return <div key={at}>{renderText ? renderText(part.text) : <p>{part.text}</p>}</div>;
          if (part.type === "reasoning") {
            return (
              <details key={at}>
                <summary>Reasoning</summary>
                <p>{part.text}</p>
              </details>
            );
          }
          if (!isToolPart(part)) return null;
          const name = toolNameOf(part);
          return <div key={part.toolCallId}>{renderTool?.(part, name, message) ?? <Call part={part} name={name} />}</div>;
        })}
        {sources.length > 0 && (
          <ol className="toolyard-sources" aria-label="Sources">
            {sources.map((source) => (
              <li key={source.sourceId}>
                <a href={safeUrl(source.url)} target="_blank" rel="noreferrer noopener">
                  {source.title ?? source.url}
                </a>
              </li>
            ))}
          </ol>
        )}
      </div>
    </li>
  );
}

const STATES: Record<string, string> = {
  "input-streaming": "is being called",
  "input-available": "runs",
  "approval-requested": "asks for a permission",
  "approval-responded": "runs",
  "output-available": "answered",
  "output-error": "failed",
  "output-denied": "was denied",
};

function Call({ part, name }: { part: ToolPart; name: string }): ReactElement {
  return (
    <details className="toolyard-call" data-state={part.state}>
      <summary>
        <code>{name}</code> {STATES[part.state] ?? part.state}
      </summary>
      <pre>{JSON.stringify(part.input ?? {}, null, 2)}</pre>
      {part.output !== undefined && <pre>{JSON.stringify(part.output, null, 2)}</pre>}
      {part.errorText && <p>{part.errorText}</p>}
    </details>
  );
}

function Models({ model, onChange }: { model: string | undefined; onChange: (model: string | undefined) => void }): ReactElement {
  const { models } = useModels();
  return (
    <select aria-label="Model" value={model ?? ""} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">As the agent has it</option>
      {models.map(({ id, name, available }) => (
        <option key={id} value={id} disabled={!available}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** An address that a link may have; a model's words must not become a script. */
function safeUrl(url: string): string | undefined {
  return /^https?:\/\//i.test(url) ? url : undefined;
}
