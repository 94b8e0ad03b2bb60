import { toolCallOf, type PageToolHandler } from "@toolyard/client";
import type { PageTools } from "./tool.js";

/**
 * The tools of class-based handlers, for `tools`: they run what the agent
 * knows by its schema alone, so nothing is offered for them. A function gives
 * the context that the page has when the call comes.
 */
export function handledTools<Context>(handlers: Iterable<PageToolHandler<Context>>, context: () => Context): PageTools {
  const tools: PageTools = {};
  for (const handler of handlers) {
    for (const name of handler.tools) {
      if (Object.hasOwn(tools, name)) throw new Error(`Tool ${name} has a handler already`);
      tools[name] = (input: unknown, { toolCallId, runId }) =>
        handler.handle(toolCallOf({ toolCallId, toolName: name, args: input, runId }), context());
    }
  }
  return tools;
}
