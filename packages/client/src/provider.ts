import { argumentErrors } from "./arguments.js";
import { validateToolDefinitions, type ValidationOptions } from "./definitions.js";
import { messageOf } from "./error.js";
import type { ClientToolDefinition } from "./types.js";

export { argumentErrors };
export { safeValidateToolDefinitions, validateToolDefinitions, type Validation, type ValidationOptions } from "./definitions.js";
export type { ClientToolDefinition, FunctionParameters, JsonSchemaProperty, WrappedToolDefinition } from "./types.js";

/** A call in the form of the model vendors: the arguments are JSON text. */
export interface FunctionCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** The outcome of `execute`. */
export interface FunctionResult {
  toolCallId: string;
  toolName: string;
  success: boolean;
  result: unknown;
  error?: string;
}

/** Where a call belongs. */
export interface CallContext {
  taskId?: string;
  contextId?: string;
  [more: string]: unknown;
}

/**
 * Keeps tools that somebody else brought and hands their calls on: for
 * programs that stand between a model and its clients.
 */
export class ClientToolProvider {
  readonly #tools: Map<string, ClientToolDefinition>;
  readonly #hand: (call: FunctionCall, context: CallContext) => unknown;

  /** Throws `Invalid client tool definitions: …`. */
  constructor(
    options: { tools: unknown; onInputRequired: (call: FunctionCall, context: CallContext) => unknown } & ValidationOptions,
  ) {
    const { tools, onInputRequired, ...rules } = options;
    this.#tools = new Map(validateToolDefinitions(tools, rules).map((tool) => [tool.name, tool]));
    this.#hand = onInputRequired;
  }

  async getTools(): Promise<ClientToolDefinition[]> {
    return [...this.#tools.values()];
  }

  /** What is wrong with the arguments of a call. */
  validateToolArguments(call: FunctionCall): { valid: boolean; errors?: string[] } {
    const tool = this.#tools.get(call.function.name);
    if (!tool) return { valid: false, errors: [`Tool ${call.function.name} not found`] };
    const parsed = parseArguments(call);
    const errors = "error" in parsed ? [parsed.error] : argumentErrors(tool.parameters, parsed.args);
    return errors.length === 0 ? { valid: true } : { valid: false, errors };
  }

  /** Hands the call to its client. It never throws for what a tool did wrong. */
  async execute(call: FunctionCall, context: CallContext = {}): Promise<FunctionResult> {
    const { name } = call.function;
    const failed = (error: string): FunctionResult => {
      return { toolCallId: call.id, toolName: name, success: false, result: null, error };
    };
    if (!this.#tools.has(name)) return failed(`Tool ${name} not found in client tools`);
    const parsed = parseArguments(call);
    if ("error" in parsed) return failed(parsed.error);
    try {
      const answer = await this.#hand(call, context);
      // The callback may answer a whole outcome, or only its value.
      if (isOutcome(answer)) return { ...answer, toolCallId: call.id, toolName: name };
      return { toolCallId: call.id, toolName: name, success: true, result: answer ?? null };
    } catch (thrown) {
      return failed(messageOf(thrown));
    }
  }
}

function isOutcome(answer: unknown): answer is FunctionResult {
  return typeof answer === "object" && answer !== null && "toolCallId" in answer && "success" in answer;
}

function parseArguments(call: FunctionCall): { args: unknown } | { error: string } {
  try {
    return { args: JSON.parse(call.function.arguments) as unknown };
  } catch (thrown) {
    return { error: `Invalid tool arguments JSON: ${messageOf(thrown)}` };
  }
}
