import { usePlugins, type BrowserPlugin } from "@toolyard/react";
import { FileUp, TriangleAlert } from "lucide-react";
import { useRef, useState } from "react";
import { get, post } from "../api/gateway.ts";
import { sentence, touch } from "../lib/query.ts";
import { plural } from "../lib/words.ts";
import { Button } from "../parts/parts.tsx";

type Place = "browser" | "gateway";

interface Document extends BrowserPlugin {
  contentHash?: string;
  curatorId?: string;
  signatures?: unknown[];
  permissions?: Record<string, unknown>;
}

/** Reads a plugin from a file, an address of this gateway or pasted text, shows what it wants, and installs it. */
export function InstallPlugin({ mode, onDone }: { mode: string; onDone: () => void }) {
  const { install } = usePlugins();
  const [document, setDocument] = useState<Document>();
  const [place, setPlace] = useState<Place>("browser");
  const [address, setAddress] = useState("");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const picker = useRef<HTMLInputElement>(null);

  const read = (text: string) => {
    setWrong(undefined);
    try {
      const value = JSON.parse(text) as Document | { plugin: Document };
      const found = "plugin" in value && typeof value.plugin === "object" ? (value.plugin as Document) : (value as Document);
      if (!found.id || !Array.isArray(found.tools)) throw new Error("Invalid plugin: missing required fields");
      setDocument(found);
    } catch (thrown) {
      setDocument(undefined);
      setWrong(thrown instanceof SyntaxError ? "This is no JSON." : sentence(thrown));
    }
  };
  const fetchIt = async () => {
    setBusy(true);
    setWrong(undefined);
    try {
      const url = new URL(address, location.origin);
      const found = url.origin === location.origin ? await get<unknown>(url.pathname + url.search) : await post<unknown>("/api/plugins/fetch", { url: url.href });
      read(JSON.stringify(found));
    } catch (thrown) {
      setWrong(sentence(thrown));
    } finally {
      setBusy(false);
    }
  };
  const signed = document !== undefined && (document.signature !== undefined || (document.signatures?.length ?? 0) > 0);
  const put = async () => {
    if (!document) return;
    setBusy(true);
    setWrong(undefined);
    try {
      if (!signed && mode === "production") throw new Error("Unsigned plugin rejected in production");
      // The gateway knows the curators: what is signed is judged there first, wherever it will run.
      if (place === "gateway" || signed) await post("/api/plugins/install", document);
      if (place === "browser") install({ ...document, name: document.name ?? document.id });
      touch("plugins");
      onDone();
    } catch (thrown) {
      setWrong(sentence(thrown));
    } finally {
      setBusy(false);
    }
  };

  return (
    <div className="stack">
      <div className="row wrap">
        <input
          ref={picker}
          type="file"
          hidden
          accept=".json,application/json"
          data-testid="plugin-file"
          onChange={(event) => void event.target.files?.[0]?.text().then(read)}
        />
        <Button icon={FileUp} onClick={() => picker.current?.click()}>
          Choose a file
        </Button>
        <form
          className="row grow address"
          onSubmit={(event) => {
            event.preventDefault();
            void fetchIt();
          }}
        >
          <input className="field" type="url" placeholder="or an address: https://…" aria-label="Address of the plugin" value={address} onChange={(event) => setAddress(event.target.value)} />
          <Button type="submit" busy={busy && !document} disabled={!address}>
            Fetch
          </Button>
        </form>
      </div>
      {document && (
        <div className="card padded stack">
          <h3>
            {document.name ?? document.id} <span className="soft small">{document.version}</span>
          </h3>
          {document.description && <p className="small">{document.description}</p>}
          <p className="small">
            It brings {plural(document.tools.length, "tool")}: <span className="mono">{document.tools.map((tool) => tool.name).join(", ")}</span>
          </p>
          {document.permissions && <p className="small">It asks for: {JSON.stringify(document.permissions)}</p>}
          {signed ? (
            <p className="notice fine">Signed{document.curatorId ? ` by ${document.curatorId}` : ""}. The gateway checks the signature before anything is installed.</p>
          ) : (
            <p className="notice">
              <TriangleAlert size={16} aria-hidden />
              <span>Nobody signed this plugin: its code is arbitrary code. Do not use it in production.</span>
            </p>
          )}
          <fieldset className="choice">
            <legend className="small">Where it runs</legend>
            {(["browser", "gateway"] as const).map((each) => (
              <label key={each} className="row">
                <input type="radio" name="place" checked={place === each} onChange={() => setPlace(each)} />
                {each === "browser" ? "In this browser, for your chats" : "On the gateway, for agents that name it"}
              </label>
            ))}
          </fieldset>
        </div>
      )}
      {wrong && (
        <p className="notice wrong" role="alert">
          {wrong}
        </p>
      )}
      <div className="row">
        <Button look="main" busy={busy && document !== undefined} disabled={!document} onClick={() => void put()}>
          Install
        </Button>
        <Button onClick={onDone}>Cancel</Button>
      </div>
    </div>
  );
}
