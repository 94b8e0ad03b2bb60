import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { OutcomeStore, StoredOutcome } from "./outcomes.js";

/**
 * Remembers calls in a folder, one small file each, also over `kill -9` and a
 * loss of power: a file is written beside its place, synced and renamed.
 */
export function fileOutcomes(folder: string): OutcomeStore {
  // Ids come from elsewhere; only their hash becomes a file name.
  const place = (id: string) => join(folder, `${createHash("sha256").update(id).digest("hex").slice(0, 32)}.json`);
  let made: Promise<unknown> | undefined;
  let count = 0;
  return {
    async get(id) {
      let text: string;
      try {
        text = await readFile(place(id), "utf8");
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw thrown;
      }
      try {
        return JSON.parse(text) as StoredOutcome;
      } catch {
        return { state: "started" };
      }
    },
    async set(id, outcome) {
      await (made ??= mkdir(folder, { recursive: true }));
      const target = place(id);
      const beside = `${target}.${process.pid}.${++count}.new`;
      const file = await open(beside, "w", 0o600);
      try {
        await file.writeFile(JSON.stringify(outcome));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(beside, target);
    },
    delete: (id) => rm(place(id), { force: true }),
  };
}
