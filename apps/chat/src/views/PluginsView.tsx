import { usePlugins, type BrowserPlugin } from "@toolyard/react";
import { BadgeCheck, FileUp, LaptopMinimal, Puzzle, Server, ShieldQuestion, Trash2, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { get, patch, remove } from "../api/gateway.ts";
import type { InstalledPlugin, PluginRow } from "../api/types.ts";
import { sentence, touch, useQuery } from "../lib/query.ts";
import { ago, plural } from "../lib/words.ts";
import { Button, Empty, Page, Sheet, Shown, Switch } from "../parts/parts.tsx";
import { InstallPlugin } from "./InstallPlugin.tsx";

export default function PluginsView({ mode }: { mode: string }) {
  const { installed, uninstall, setEnabled } = usePlugins();
  const gateway = useQuery("plugins", () => get<{ plugins: PluginRow[] }>("/api/plugins", { limit: 200 }), { mark: "plugins" });
  const [adding, setAdding] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const verified = new Set((gateway.data?.plugins ?? []).filter((row) => row.installed?.verified).map((row) => row.id));
  const drop = async (id: string) => {
    setWrong(undefined);
    await remove(`/api/plugins/${encodeURIComponent(id)}`).catch((thrown: unknown) => setWrong(sentence(thrown)));
    touch("plugins");
  };
  const enable = async (id: string, enabled: boolean) => {
    setWrong(undefined);
    await patch(`/api/plugins/${encodeURIComponent(id)}`, { enabled }).catch((thrown: unknown) => setWrong(sentence(thrown)));
    touch("plugins");
  };
  return (
    <Page
      title="Plugins"
      lead="A plugin brings tools with their code. The code always runs in a sandbox: it reaches neither this page nor the network."
      actions={
        <Button look="main" icon={FileUp} onClick={() => setAdding(true)}>
          Install a plugin
        </Button>
      }
    >
      {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
      <section className="stack" aria-label="In this browser">
        <h2 className="row">
          <LaptopMinimal size={18} aria-hidden /> In this browser
        </h2>
        {installed.length === 0 ? (
          <Empty icon={Puzzle} title="No plugin in this browser">
            <p>Tools of a plugin that is installed here run here, for any agent that you talk to.</p>
          </Empty>
        ) : (
          <ul className="list">
            {installed.map((plugin) => (
              <BrowserLine key={plugin.id} plugin={plugin} verified={verified.has(plugin.id)} onEnable={(on) => setEnabled(plugin.id, on)} onRemove={() => uninstall(plugin.id)} />
            ))}
          </ul>
        )}
      </section>
      <section className="stack" aria-label="On the gateway">
        <h2 className="row">
          <Server size={18} aria-hidden /> On the gateway
        </h2>
        <Shown
          of={gateway}
          empty={{ when: (data) => data.plugins.length === 0, show: <p className="soft small">None. A plugin on the gateway serves every agent that names it.</p> }}
        >
          {(data) => (
            <ul className="list">
              {data.plugins.map((row) => (
                <li key={row.id} className="line">
                  <div className="line-body">
                    <div className="row wrap">
                      <span className="line-title">{row.id}</span>
                      {row.installed ? <Trust plugin={row.installed} /> : <span className="badge">Available</span>}
                    </div>
                    <p className="small soft">{row.installed ? about(row.installed) : row.versions.map((each) => `${each.version} ${each.state}`).join(", ")}</p>
                    {row.installed?.why && <p className="small tone-high">{row.installed.why}</p>}
                    {row.installed?.warning && <p className="small tone-medium">{row.installed.warning}</p>}
                  </div>
                  {row.installed && <Switch checked={row.installed.enabled} label={`Use ${row.id} on the gateway`} onChange={(on) => void enable(row.id, on)} />}
                  {row.installed && <Button look="plain icon" icon={Trash2} aria-label={`Remove ${row.id} from the gateway`} onClick={() => void drop(row.id)} />}
                </li>
              ))}
            </ul>
          )}
        </Shown>
      </section>
      <Sheet title="Install a plugin" open={adding} onClose={() => setAdding(false)}>
        <InstallPlugin mode={mode} onDone={() => setAdding(false)} />
      </Sheet>
    </Page>
  );
}

function about(plugin: InstalledPlugin): string {
  return `${plugin.version} · ${plural(plugin.tools.length, "tool")} · installed ${ago(plugin.installedAt)}`;
}

function Trust({ plugin }: { plugin: InstalledPlugin }) {
  if (plugin.verified) {
    return (
      <span className="badge low">
        <BadgeCheck size={14} aria-hidden /> Verified by {plugin.curators.join(", ")}
      </span>
    );
  }
  return (
    <span className="badge medium">
      <ShieldQuestion size={14} aria-hidden /> {plugin.usable || !plugin.enabled ? "Unsigned" : "Not usable"}
    </span>
  );
}

function BrowserLine({ plugin, verified, onEnable, onRemove }: { plugin: BrowserPlugin; verified: boolean; onEnable: (on: boolean) => void; onRemove: () => void }) {
  const curator = typeof plugin["curatorId"] === "string" ? plugin["curatorId"] : undefined;
  return (
    <li className="line">
      <div className="line-body">
        <div className="row wrap">
          <span className="line-title">{plugin.name}</span>
          {verified ? (
            <span className="badge low">
              <BadgeCheck size={14} aria-hidden /> Verified{curator ? ` by ${curator}` : ""}
            </span>
          ) : (
            <span className="badge medium">
              <TriangleAlert size={14} aria-hidden /> Unsigned
            </span>
          )}
        </div>
        <p className="small soft">
          {plugin.version} · {plugin.tools.map((tool) => tool.name).join(", ")}
          {plugin.installedAt ? ` · installed ${ago(plugin.installedAt)}` : ""}
        </p>
        {!verified && <p className="small tone-medium">Nobody vouches for this code. It runs in a sandbox, but do not use it for real work.</p>}
      </div>
      <Switch checked={plugin.enabled !== false} label={`Use ${plugin.name}`} onChange={onEnable} />
      <Button look="plain icon" icon={Trash2} aria-label={`Remove ${plugin.name}`} onClick={onRemove} />
    </li>
  );
}
