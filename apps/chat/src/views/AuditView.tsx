import { ScrollText } from "lucide-react";
import { useState } from "react";
import { get } from "../api/gateway.ts";
import { sentence } from "../lib/query.ts";
import { useQuery } from "../lib/query.ts";
import { ago } from "../lib/words.ts";
import { Button, Empty, Page, SearchField, Shown } from "../parts/parts.tsx";

interface Entry {
  id: string;
  at: string;
  actor: string;
  action: string;
  target: string;
  detail?: string;
}

interface AuditPage {
  entries: Entry[];
  next?: string;
}

export default function AuditView() {
  const first = useQuery("audit", () => get<AuditPage>("/api/audit", { limit: 100 }));
  const [older, setOlder] = useState<AuditPage[]>([]);
  const [wrong, setWrong] = useState<string>();
  const [asked, setAsked] = useState("");
  const words = asked.trim().toLowerCase();
  const more = async (before: string) => {
    try {
      const page = await get<AuditPage>("/api/audit", { limit: 100, before });
      setOlder((pages) => [...pages, page]);
    } catch (thrown) {
      setWrong(sentence(thrown));
    }
  };
  return (
    <Page title="Audit" lead="Who changed what on this gateway. Lines are added and never changed.">
      <SearchField value={asked} onChange={setAsked} label="Search the audit" />
      <Shown of={first} empty={{ when: (data) => data.entries.length === 0, show: <Empty icon={ScrollText} title="Nothing was changed yet" /> }}>
        {(data) => {
          const pages = [data, ...older];
          const next = pages.at(-1)?.next;
          const rows = pages.flatMap((page) => page.entries).filter((row) => `${row.actor} ${row.action} ${row.target}`.toLowerCase().includes(words));
          return (
            <>
              <div className="table-room card" role="region" aria-label="Audit" tabIndex={0}>
                <table className="table">
                  <thead>
                    <tr>
                      <th>When</th>
                      <th>What</th>
                      <th>On</th>
                      <th>By</th>
                    </tr>
                  </thead>
                  <tbody>
                    {rows.map((row) => (
                      <tr key={row.id}>
                        <td className="soft" title={row.at}>{ago(row.at)}</td>
                        <td><span className="badge">{row.action}</span></td>
                        <td className="mono">{row.target}{row.detail ? ` (${row.detail})` : ""}</td>
                        <td className="mono soft">{row.actor}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              {wrong && <p className="notice wrong" role="alert">{wrong}</p>}
              {next && <Button onClick={() => void more(next)}>Show older lines</Button>}
            </>
          );
        }}
      </Shown>
    </Page>
  );
}
