import { GATEWAY_SERVICE, useToolRegistry, useToolSelection } from "@toolyard/react";
import { useEffect, useMemo } from "react";
import { gateway } from "../api/gateway.ts";
import { HARMLESS, PAGE_TOOLS } from "./tools.ts";

/** What this page offers to an agent: tools that run here, and which of the others are wanted. */
export function useOffer() {
  const { definitions } = useToolRegistry();
  const { selection } = useToolSelection();
  const picks = useMemo(() => {
    const off = Object.entries(selection).filter(([, wanted]) => !wanted);
    return Object.fromEntries(off.map(([key]) => [key.startsWith(`${GATEWAY_SERVICE}:`) ? key.slice(GATEWAY_SERVICE.length + 1) : key, false]));
  }, [selection]);
  return { clientTools: [...definitions], picks };
}

/** Lets calls of any space that is open here find the tools of this page and of its plugins. */
export function ServePageTools() {
  const { tools, execute } = useToolRegistry();
  const names = [...new Set([...Object.keys(PAGE_TOOLS), ...tools.filter((tool) => tool.from !== "gateway").map((tool) => tool.name)])].join(" ");
  useEffect(() => {
    const own = names.split(" ");
    for (const name of own) {
      gateway.registerTool({
        name,
        description: name,
        parameters: { type: "object", properties: {} },
        idempotent: HARMLESS.has(name),
        execute: async (args: unknown) => (await execute(name, args)) ?? null,
      });
    }
    return () => own.forEach((name) => gateway.unregisterTool(name));
  }, [names, execute]);
  return null;
}
