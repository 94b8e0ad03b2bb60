import type { ToolyardClient } from "@toolyard/client";
import { useSession } from "../context.js";

/** The client of the nearest provider, for every route of the gateway. */
export function useToolyardClient(): ToolyardClient {
  return useSession().client;
}
