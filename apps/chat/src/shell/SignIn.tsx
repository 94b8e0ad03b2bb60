import { KeyRound } from "lucide-react";
import { useState } from "react";
import { enterKey, type Session } from "../api/session.ts";
import { sentence } from "../lib/query.ts";
import { Button } from "../parts/parts.tsx";

/** For a gateway that gives pages no key by itself. */
export function SignIn({ onDone }: { onDone: (session: Session) => void }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const enter = async () => {
    setBusy(true);
    setWrong(undefined);
    try {
      onDone(await enterKey(key.trim()));
    } catch (thrown) {
      setWrong(sentence(thrown));
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <form
        className="card padded stack"
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <img src="/favicon.svg" width={44} height={44} alt="" />
        <h1>Sign in to this gateway</h1>
        <p className="soft">Open the address that the gateway printed when it started. Or enter a secret key; it stays in this browser.</p>
        <label className="label">
          Secret key
          <input className="field" type="password" autoComplete="off" value={key} onChange={(event) => setKey(event.target.value)} />
        </label>
        {wrong && (
          <p className="notice wrong" role="alert">
            {wrong}
          </p>
        )}
        <Button type="submit" look="main" icon={KeyRound} busy={busy} disabled={!key.trim()}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
