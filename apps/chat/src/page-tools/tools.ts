/** Tools that this page runs itself, for any agent. */
import type { PageTools } from "@toolyard/react";
import { confetti } from "./confetti.ts";

/** Texts of the page that an agent may read at once. */
const READ_CHARS = 8000;

/** What is on the screen, cut into thirds. */
function readScreen({ area = "all" }: { area?: string }): { title: string; address: string; text: string } {
  const text = (document.querySelector("main")?.innerText ?? "").replace(/\n{3,}/g, "\n\n");
  const third = Math.ceil(text.length / 3);
  const from = { top: 0, middle: third, bottom: 2 * third }[area] ?? 0;
  const part = area === "all" ? text : text.slice(from, from + third);
  return { title: document.title, address: location.pathname, text: part.slice(0, READ_CHARS) };
}

/** A page writes no files: the browser saves one where it saves downloads. */
function writeFile({ path, text }: { path: string; text: string }): { saved: string; bytes: number } {
  const name = path.split(/[\\/]/).filter(Boolean).at(-1) ?? "file.txt";
  const blob = new Blob([text], { type: "text/plain" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return { saved: name, bytes: blob.size };
}

/** Agents bring the first two by themselves and the page runs them; the others it offers to every agent. */
export const PAGE_TOOLS: PageTools = {
  read_screen: (args: { area?: string }) => readScreen(args ?? {}),
  write_file: (args: { path: string; text: string }) => writeFile(args),
  confetti: {
    description: "Throws confetti over the page, for something worth celebrating.",
    parameters: { type: "object", properties: {}, additionalProperties: false },
    idempotent: true,
    execute: () => confetti(),
  },
  show_chart: {
    description: "Shows a bar chart in the chat.",
    parameters: {
      type: "object",
      properties: {
        title: { type: "string", maxLength: 120 },
        bars: {
          type: "array",
          minItems: 1,
          maxItems: 24,
          items: {
            type: "object",
            properties: { label: { type: "string" }, value: { type: "number", minimum: 0 } },
            required: ["label", "value"],
          },
        },
      },
      required: ["bars"],
    },
    idempotent: true,
    execute: ({ bars }: { bars: unknown[] }) => ({ shown: bars.length }),
  },
};

/** Tools that only answer: after a reload in the middle they run again. */
export const HARMLESS = new Set(["read_screen", "confetti", "show_chart"]);
