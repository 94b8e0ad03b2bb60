import sqlite from "node-sqlite3-wasm";
import type { Plugin } from "@toolyard/client";

/** Rows that one answer holds at most. */
const MAX_ROWS = 1000;
/** Statements that only read. `WITH` may also write; the open file refuses that. */
const READS = /^\s*(select|with|values|explain)\b/i;

/**
 * A database to look into. It is opened read-only, statements that reach
 * outside of it (`ATTACH`, `PRAGMA`, …) are refused before they run.
 */
export function sqlitePlugin(file: string): Plugin {
  function rows(query: string): unknown {
    const database = new sqlite.Database(file, { readOnly: true, fileMustExist: true });
    try {
      const statement = database.prepare(query);
      try {
        const found: unknown[] = [];
        for (const row of statement.iterate()) {
          if (found.length === MAX_ROWS) return { rows: found, more: `Only the first ${MAX_ROWS} rows are here` };
          found.push(row);
        }
        return found;
      } finally {
        statement.finalize();
      }
    } finally {
      database.close();
    }
  }
  return {
    name: "sqlite",
    version: "1.0.0",
    tools: [
      {
        name: "sql_query",
        description: "Runs one SQL query that only reads, and answers its rows",
        parameters: { type: "object", properties: { query: { type: "string", description: "A SELECT" } }, required: ["query"] },
      },
      { name: "list_tables", description: "Lists the tables of the database", parameters: { type: "object", properties: {} } },
    ],
    executors: {
      sql_query: ({ query }: { query: string }) => {
        if (!READS.test(query)) throw new Error("Only queries that read are allowed: SELECT, WITH, VALUES, EXPLAIN");
        return rows(query);
      },
      list_tables: () => rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"),
    },
    behaviour: { sql_query: { idempotent: true, timeoutMs: 10_000 }, list_tables: { idempotent: true } },
  };
}
