import type { Plugin } from "@toolyard/client";

const nothing = { type: "object" as const, properties: {} };

/** The page that the person looks at. */
export const browserPlugin: Plugin = {
  name: "browser",
  version: "1.0.0",
  tools: [
    { name: "get_page_info", description: "Says the address and the title of the page", parameters: nothing },
    { name: "get_selection", description: "Says which text is selected on the page", parameters: nothing },
    {
      name: "copy_to_clipboard",
      description: "Copies text to the clipboard",
      parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    },
  ],
  executors: {
    get_page_info: () => ({ url: window.location.href, title: document.title }),
    get_selection: () => window.getSelection()?.toString() ?? "",
    copy_to_clipboard: async ({ text }: { text: string }) => {
      await navigator.clipboard.writeText(text);
      return { success: true };
    },
  },
  behaviour: { get_page_info: { idempotent: true }, get_selection: { idempotent: true }, copy_to_clipboard: { idempotent: true } },
};
