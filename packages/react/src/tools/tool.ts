import type { ClientToolDefinition, FunctionParameters, ProgressReport, Risk } from "@toolyard/client";

/** What a tool of the page learns of its call, beside the arguments. */
export interface PageToolContext {
  toolCallId: string;
  toolName: string;
  runId: string;
  /** Fires when the call timed out. */
  signal: AbortSignal;
  /** Says how far a long call is. Nothing fails if nobody hears it. */
  progress(report: ProgressReport): void;
}

/**
 * Runs a tool of the page. What it returns is the result, what it throws is
 * told as an error. `undefined` means: the result is submitted later, with
 * `useToolResult`.
 */
// `any` lets a handler name the type of its arguments.
export type PageToolExecutor<Input = any> = (input: Input, context: PageToolContext) => unknown;

/** A tool that this page brings: its definition goes with each request, its code stays here. */
export interface PageTool<Input = any> {
  description: string;
  parameters: FunctionParameters;
  execute: PageToolExecutor<Input>;
  /** Milliseconds after which a call has failed. */
  timeoutMs?: number;
  /** A repeat has no second effect: after a reload in the middle it runs again. */
  idempotent?: boolean;
  /** Of the contract, as its owner counts. */
  version?: string;
  risk?: Risk;
  category?: string;
  /** The MCP service behind it, with which it is judged as an MCP tool. */
  serviceId?: string;
}

/**
 * Tools of the page by name. A bare function runs a client tool that the
 * agent's configuration has; nothing is offered for it.
 */
export type PageTools = Record<string, PageTool | PageToolExecutor>;

/** A tool's code and how it behaves. */
export interface Runnable {
  execute: PageToolExecutor;
  timeoutMs?: number | undefined;
  idempotent?: boolean | undefined;
}

/** The tool of a name, if it is there and no part of every object. */
export function runnableOf(tools: PageTools | undefined, name: string): Runnable | undefined {
  const tool = tools && Object.hasOwn(tools, name) ? tools[name] : undefined;
  return typeof tool === "function" ? { execute: tool } : tool;
}

/** A tool as the model gets to know it. */
export function definitionOf(name: string, tool: PageTool): ClientToolDefinition {
  const { execute: _code, idempotent: _here, ...rest } = tool;
  return { name, ...rest };
}
