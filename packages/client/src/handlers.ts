import { toolCallOf, type ToolCall, type ToolCallLike } from "./call.js";
import { ToolyardError } from "./error.js";

/**
 * Runs tools of the platform that the agent knows by their schema alone: what
 * a page shows or sets. The context is whatever the page gives `dispatch`.
 */
export interface PageToolHandler<Context = unknown> {
  /** The tools that it runs. */
  readonly tools: readonly string[];
  handle(call: ToolCall, context: Context): unknown;
}

/**
 * The handlers of a page, by the name of their tools. They stand beside the
 * tools that a request brings: `onToolCall` leaves those alone.
 */
export class ToolHandlers<Context = unknown> {
  readonly #handlers = new Map<string, PageToolHandler<Context>>();

  constructor(handlers: Iterable<PageToolHandler<Context>> = []) {
    for (const handler of handlers) this.register(handler);
  }

  register(handler: PageToolHandler<Context>): this {
    for (const tool of handler.tools) {
      if (this.#handlers.has(tool)) throw new ToolyardError("conflict", `Tool ${tool} has a handler already`);
    }
    for (const tool of handler.tools) this.#handlers.set(tool, handler);
    return this;
  }

  find(tool: string): PageToolHandler<Context> | undefined {
    return this.#handlers.get(tool);
  }

  /** Runs a call. One that nobody handles is answered in words, for the model. */
  async dispatch(like: ToolCallLike, context: Context): Promise<unknown> {
    const call = toolCallOf(like);
    const handler = this.find(call.toolName);
    return handler ? handler.handle(call, context) : `Tool: ${call.toolName} not found`;
  }

  /** For `chatStream({ onToolCall })`: other calls fall through to plugins and registered tools. */
  readonly onToolCall = (call: ToolCall, context: Context): unknown => this.find(call.toolName)?.handle(call, context);
}
