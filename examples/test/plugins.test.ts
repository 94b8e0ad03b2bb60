import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import sqlite from "node-sqlite3-wasm";
import { ToolyardClient, safeValidateToolDefinitions, type Plugin } from "@toolyard/client";
import { browserPlugin } from "../plugins/browser.ts";
import { filesystemPlugin } from "../plugins/filesystem.ts";
import { sqlitePlugin } from "../plugins/sqlite.ts";
import { timePlugin } from "../plugins/time.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolyard-examples-"));
});
after(() => rm(folder, { recursive: true, force: true }));

/** Runs a tool as a client does. */
function running(...plugins: Plugin[]): (toolName: string, args?: object) => Promise<unknown> {
  const client = new ToolyardClient({ baseUrl: "http://nowhere.test" }).use(...plugins);
  assert.equal(safeValidateToolDefinitions(client.getClientToolDefinitions(), { names: "chat", maxTools: 10 }).success, true);
  return (toolName, args = {}) => client.executeTool({ toolName, args });
}

test("h45_filesystem_reads_writes_and_lists_one_folder", async () => {
  const root = join(folder, "files");
  await mkdir(root);
  await writeFile(join(folder, "secret.txt"), "secret");
  await symlink(join(folder, "secret.txt"), join(root, "link.txt"));
  const run = running(filesystemPlugin(root));
  assert.deepEqual(await run("write_file", { path: "a.txt", content: "ä" }), { success: true });
  assert.equal(await readFile(join(root, "a.txt"), "utf8"), "ä");
  assert.equal(await run("read_file", { path: join(root, "a.txt") }), "ä");
  assert.deepEqual(await run("list_directory", { path: "." }), ["a.txt", "link.txt"]);
  for (const path of ["../secret.txt", join(folder, "secret.txt"), "link.txt"]) {
    await assert.rejects(run("read_file", { path }), /outside of the folder/, path);
    await assert.rejects(run("write_file", { path, content: "x" }), /outside of the folder/, path);
  }
  assert.equal(await readFile(join(folder, "secret.txt"), "utf8"), "secret");
});

test("h46_browser_knows_the_page", async () => {
  const copied: string[] = [];
  let selection: string | undefined = "some words";
  const page = {
    window: { location: { href: "https://a.test/x" }, getSelection: () => (selection === undefined ? null : { toString: () => selection }) },
    document: { title: "A page" },
    navigator: { clipboard: { writeText: async (text: string) => void copied.push(text) } },
  };
  for (const [name, value] of Object.entries(page)) Object.defineProperty(globalThis, name, { value, configurable: true });
  const run = running(browserPlugin);
  assert.deepEqual(await run("get_page_info"), { url: "https://a.test/x", title: "A page" });
  assert.equal(await run("get_selection"), "some words");
  selection = undefined;
  assert.equal(await run("get_selection"), "");
  assert.deepEqual(await run("copy_to_clipboard", { text: "x" }), { success: true });
  assert.deepEqual(copied, ["x"]);
});

test("h47_sqlite_reads_and_never_writes", async () => {
  const file = join(folder, "a.sqlite");
  const other = join(folder, "b.sqlite");
  for (const path of [file, other]) {
    const database = new sqlite.Database(path);
    database.exec("CREATE TABLE users (id INTEGER, name TEXT); INSERT INTO users VALUES (1, 'Ada'), (2, 'Bob')");
    database.close();
  }
  const run = running(sqlitePlugin(file));
  assert.deepEqual(await run("list_tables"), [{ name: "users" }]);
  assert.deepEqual(await run("sql_query", { query: "SELECT name FROM users ORDER BY id" }), [{ name: "Ada" }, { name: "Bob" }]);
  const before = await readFile(file);
  for (const query of [
    "DELETE FROM users",
    "insert into users values (3, 'Eve')",
    "WITH x AS (SELECT 1) DELETE FROM users",
    "SELECT 1; DELETE FROM users",
    "/* SELECT */ DROP TABLE users",
    "PRAGMA journal_mode = DELETE",
    `ATTACH '${other}' AS other`,
    `VACUUM INTO '${join(folder, "copy.sqlite")}'`,
  ]) {
    await run("sql_query", { query }).then(
      (rows) => assert.deepEqual(rows, [{ "1": 1 }], query),
      (thrown: unknown) => assert.ok(thrown instanceof Error),
    );
    assert.deepEqual(await readFile(file), before, query);
  }
  await assert.rejects(run("sql_query", { query: "DELETE FROM users" }), /Only queries that read/);
  await assert.rejects(run("sql_query", { query: "WITH x AS (SELECT 1) DELETE FROM users" }), /read.?only/i);
  const many = (await run("sql_query", {
    query: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n",
  })) as { rows: unknown[]; more: string };
  assert.deepEqual([many.rows.length, many.more], [1000, "Only the first 1000 rows are here"]);
});

test("h53_time_answers_in_the_zone", async () => {
  const run = running(timePlugin);
  const now = (await run("get_current_time", { timezone: "Europe/Oslo" })) as { time: string; formatted: string; timezone: string };
  assert.ok(Math.abs(Date.parse(now.time) - Date.now()) < 60_000);
  assert.equal(now.timezone, "Europe/Oslo");
  assert.equal(((await run("get_current_time")) as { timezone: string }).timezone, "UTC");
  await assert.rejects(run("get_current_time", { timezone: "Nowhere" }), /time zone/i);
});
