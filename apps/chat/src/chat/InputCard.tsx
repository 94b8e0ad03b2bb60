import { MessageCircleQuestion } from "lucide-react";
import { useId, useState } from "react";
import { gateway } from "../api/gateway.ts";
import type { Schema, WaitView } from "../api/types.ts";
import { sentence, touch } from "../lib/query.ts";
import { human } from "../lib/words.ts";
import { Button } from "../parts/parts.tsx";

interface Asked {
  prompt?: string;
  message?: string;
  options?: (string | { value: string; label?: string })[];
  schema?: Schema;
  url?: string;
}

/** A tool that asks a person for something. */
export function InputCard({ wait }: { wait: WaitView }) {
  const asked = (wait.payload ?? {}) as Asked;
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const title = useId();
  const give = async (value: unknown) => {
    setBusy(true);
    setWrong(undefined);
    try {
      await gateway.waits.answer(wait.id, { value });
      touch("waits");
    } catch (thrown) {
      setWrong(sentence(thrown));
      setBusy(false);
    }
  };
  /** What looks like JSON is meant as JSON. */
  const typed = () => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  };
  return (
    <section className="permission low" aria-labelledby={title} data-wait={wait.id}>
      <header className="row">
        <MessageCircleQuestion size={18} aria-hidden />
        <h3 id={title} className="grow">
          {human(wait.toolName)} asks you
        </h3>
      </header>
      <p>{asked.prompt ?? asked.message ?? "It needs something from you to go on."}</p>
      {wrong && (
        <p className="notice wrong" role="alert">
          {wrong}
        </p>
      )}
      {asked.options ? (
        <div className="row wrap">
          {asked.options.map((option) => {
            const value = typeof option === "string" ? option : option.value;
            return (
              <Button key={value} disabled={busy} onClick={() => void give(value)}>
                {typeof option === "string" ? option : (option.label ?? option.value)}
              </Button>
            );
          })}
        </div>
      ) : (
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            void give(typed());
          }}
        >
          <input className="field" value={text} aria-label="Your answer" onChange={(event) => setText(event.target.value)} />
          <Button type="submit" look="main" busy={busy} disabled={!text}>
            Answer
          </Button>
        </form>
      )}
    </section>
  );
}
