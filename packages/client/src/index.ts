export { toolCallOf, type ToolCall, type ToolCallLike } from "./call.js";
export type { ApprovalRequest, ChatChunk } from "./chat/chunk.js";
export type { ApprovalAnswer, ChatOptions } from "./chat/options.js";
export type { ChatResponse } from "./chat/response.js";
export { ChatStream } from "./chat/stream.js";
export { ToolyardClient, type EntityView, type ToolyardClientOptions } from "./client.js";
export {
  isToolName,
  MAX_PROPERTIES,
  MAX_SCHEMA_DEPTH,
  safeValidateToolDefinitions,
  validateToolDefinitions,
  type NameRule,
  type Validation,
  type ValidationOptions,
} from "./definitions.js";
export type { Auth } from "./door.js";
export { ToolyardError, type ClientErrorCode } from "./error.js";
export type { ClientEvents } from "./events.js";
export { ToolHandlers, type PageToolHandler } from "./handlers.js";
export type { ResultBody, ResultsTaken } from "./native/tools.js";
export { Serving, type ServeOptions, type ToolHandler } from "./native/serve.js";
export type { MessagePosted, NewMessage, SpaceView } from "./native/spaces.js";
export { Subscription, type StreamEvent, type SubscribeOptions, type SubscriptionEvents } from "./native/subscription.js";
export type { WaitAnswer, WaitQuery } from "./native/waits.js";
export { memoryOutcomes, storageOutcomes, type OutcomeStore, type StoredOutcome } from "./outcomes.js";
export type { Plugin, PluginHooks } from "./plugin.js";
export type * from "./protocol.js";
export { inRange } from "./range.js";
export { EventSplitter, eventsOf, type ServerEvent } from "./sse.js";
export type {
  ChatMessage,
  ChatRequest,
  ClientToolDefinition,
  ClientToolOptions,
  FunctionParameters,
  JsonSchemaProperty,
  JsonSchemaType,
  MessagePart,
  ProgressReport,
  ToolBehaviour,
  ToolContext,
  ToolExecutor,
  ToolRegistration,
  ToolResult,
  WrappedToolDefinition,
} from "./types.js";
export { VERSION } from "./version.js";
