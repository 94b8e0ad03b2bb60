import type { Plugin } from "@toolyard/client";

/** Says what time it is, anywhere. */
export const timePlugin: Plugin = {
  name: "time",
  version: "1.0.0",
  tools: [
    {
      name: "get_current_time",
      description: "Says the current time",
      parameters: { type: "object", properties: { timezone: { type: "string", description: "Such as Europe/Oslo; UTC if missing" } } },
    },
  ],
  executors: {
    get_current_time: ({ timezone = "UTC" }: { timezone?: string }) => {
      const now = new Date();
      const formatted = now.toLocaleString("en-GB", { timeZone: timezone, dateStyle: "full", timeStyle: "long" });
      return { time: now.toISOString(), formatted, timezone };
    },
  },
  behaviour: { get_current_time: { idempotent: true } },
};
