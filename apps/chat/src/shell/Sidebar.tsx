import { useWaits } from "@toolyard/react";
import { Activity, BookOpen, Bot, Ellipsis, Inbox, Moon, Pencil, Plus, Puzzle, ScrollText, Sun, Trash2, Wrench, type LucideIcon } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { useState } from "react";
import { get, patch, remove } from "../api/gateway.ts";
import { whoAmI } from "../api/people.ts";
import type { Space } from "../api/types.ts";
import { sentence, touch, useQuery } from "../lib/query.ts";
import { go, Link } from "../lib/router.tsx";
import { useTheme } from "../lib/theme.ts";
import { Button, SearchField, Sheet } from "../parts/parts.tsx";

const NAV: [string, string, LucideIcon][] = [
  ["inbox", "Inbox", Inbox],
  ["runs", "Runs", Activity],
  ["tools", "Tools", Wrench],
  ["plugins", "Plugins", Puzzle],
  ["agents", "Agents", Bot],
  ["library", "Library", BookOpen],
  ["audit", "Audit", ScrollText],
];

export function Sidebar({ path }: { path: string[] }) {
  const [theme, toggleTheme] = useTheme();
  const { waits } = useWaits();
  const open = waits.filter((wait) => ["approval", "input", "credential"].includes(wait.kind)).length;
  return (
    <nav className="side" aria-label="Main">
      <div className="side-head">
        <Link className="brand" href="/">
          <img src="/favicon.svg" width={26} height={26} alt="" /> Toolyard
        </Link>
        <Link className="button" href="/">
          <Plus size={16} aria-hidden /> New chat
        </Link>
      </div>
      <Spaces current={path[0] === "c" ? path[1] : undefined} />
      <div className="nav">
        {NAV.map(([to, name, Icon]) => (
          <Link key={to} href={`/${to}`} aria-current={path[0] === to ? "page" : undefined}>
            <Icon size={17} aria-hidden />
            <span className="grow">{name}</span>
            {to === "inbox" && open > 0 && (
              <span className="count" aria-label={`${open} open`}>
                {open}
              </span>
            )}
          </Link>
        ))}
      </div>
      <div className="side-foot">
        <span>Your gateway</span>
        <Button look="plain icon" icon={theme === "dark" ? Sun : Moon} aria-label={theme === "dark" ? "Light theme" : "Dark theme"} onClick={toggleTheme} />
      </div>
    </nav>
  );
}

async function mySpaces(): Promise<Space[]> {
  const me = await whoAmI();
  return (await get<{ smartSpaces: Space[] }>("/api/smart-spaces", { entityId: me.id, limit: 200 })).smartSpaces;
}

function Spaces({ current }: { current: string | undefined }) {
  const spaces = useQuery("spaces", mySpaces, { mark: "spaces", everyMs: 15_000 });
  const [asked, setAsked] = useState("");
  const [renamed, setRenamed] = useState<Space>();
  const [wrong, setWrong] = useState<string>();
  const words = asked.trim().toLowerCase();
  const shown = (spaces.data ?? []).filter((space) => (space.name ?? "").toLowerCase().includes(words));
  const drop = async (space: Space) => {
    try {
      await remove(`/api/smart-spaces/${space.id}`);
      setWrong(undefined);
      if (space.id === current) go("/");
    } catch (thrown) {
      setWrong(sentence(thrown));
    }
    touch("spaces");
  };
  return (
    <div className="spaces">
      <div className="search-room">
        <SearchField value={asked} onChange={setAsked} label="Search chats" />
      </div>
      <h2>Chats</h2>
      {(wrong ?? (spaces.data ? undefined : spaces.error)) && (
        <p className="notice wrong" role="alert">
          {wrong ?? spaces.error}
        </p>
      )}
      {spaces.data && shown.length === 0 && <p className="small soft hint">{words ? "No chat has this name." : "Your chats will be here."}</p>}
      <ul>
        {shown.map((space) => (
          <li key={space.id} className="space-line" data-current={space.id === current}>
            <Link className="cut" href={`/c/${space.id}`} aria-current={space.id === current ? "page" : undefined}>
              {space.name ?? "Chat"}
            </Link>
            <DropdownMenu.Root modal={false}>
              <DropdownMenu.Trigger className="button plain tiny icon" aria-label={`More for ${space.name ?? "chat"}`}>
                <Ellipsis size={16} aria-hidden />
              </DropdownMenu.Trigger>
              <DropdownMenu.Portal>
                <DropdownMenu.Content className="menu" align="end">
                  <DropdownMenu.Item className="menu-item" onSelect={() => setRenamed(space)}>
                    <Pencil size={15} aria-hidden /> Rename
                  </DropdownMenu.Item>
                  <DropdownMenu.Item className="menu-item danger" onSelect={() => void drop(space)}>
                    <Trash2 size={15} aria-hidden /> Delete
                  </DropdownMenu.Item>
                </DropdownMenu.Content>
              </DropdownMenu.Portal>
            </DropdownMenu.Root>
          </li>
        ))}
      </ul>
      <Rename space={renamed} onClose={() => setRenamed(undefined)} />
    </div>
  );
}

function Rename({ space, onClose }: { space: Space | undefined; onClose: () => void }) {
  const [wrong, setWrong] = useState<string>();
  const save = async (name: string) => {
    if (!space || !name.trim()) return;
    try {
      await patch(`/api/smart-spaces/${space.id}`, { name: name.trim() });
      setWrong(undefined);
      touch("spaces");
      onClose();
    } catch (thrown) {
      setWrong(sentence(thrown));
    }
  };
  return (
    <Sheet title="Rename chat" open={space !== undefined} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save(String(new FormData(event.currentTarget).get("name") ?? ""));
        }}
      >
        <label className="label">
          Name
          <input className="field" name="name" defaultValue={space?.name ?? ""} maxLength={120} autoFocus />
        </label>
        {wrong && (
          <p className="notice wrong" role="alert">
            {wrong}
          </p>
        )}
        <div className="row">
          <Button type="submit" look="main">
            Save
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Sheet>
  );
}
