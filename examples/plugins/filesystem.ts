import { readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { Plugin } from "@toolyard/client";

/**
 * Files of one folder: reads, writes and lists. A path is absolute, or relative
 * to the folder; nothing outside of it is touched, also not through a link.
 */
export function filesystemPlugin(folder: string): Plugin {
  async function inside(given: string): Promise<string> {
    const root = await realpath(folder);
    const wanted = isAbsolute(given) ? given : resolve(root, given);
    // A file that is yet to be written has no real path; its folder has.
    const real = await realpath(wanted).catch(async () => join(await realpath(dirname(wanted)), basename(wanted)));
    const way = relative(root, real);
    if (way === ".." || way.startsWith("../") || isAbsolute(way)) throw new Error(`${given} is outside of the folder`);
    return real;
  }
  const path = { type: "string" as const, description: "Absolute, or relative to the folder" };
  return {
    name: "filesystem",
    version: "1.0.0",
    tools: [
      { name: "read_file", description: "Reads a text file", parameters: { type: "object", properties: { path }, required: ["path"] } },
      {
        name: "write_file",
        description: "Writes a text file, and replaces what it held",
        parameters: { type: "object", properties: { path, content: { type: "string" } }, required: ["path", "content"] },
      },
      { name: "list_directory", description: "Lists the names in a folder", parameters: { type: "object", properties: { path }, required: ["path"] } },
    ],
    executors: {
      read_file: async ({ path }: { path: string }) => readFile(await inside(path), "utf8"),
      write_file: async ({ path, content }: { path: string; content: string }) => {
        await writeFile(await inside(path), content);
        return { success: true };
      },
      list_directory: async ({ path }: { path: string }) => (await readdir(await inside(path))).sort(),
    },
    // Writing the same text twice leaves the same file.
    behaviour: { read_file: { idempotent: true }, write_file: { idempotent: true }, list_directory: { idempotent: true } },
  };
}
