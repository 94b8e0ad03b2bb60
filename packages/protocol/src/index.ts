// What the gateway and its clients say to each other. Everything under
// `generated` comes from the Rust types; this file only opens the door.
export type * from "./generated/agent-config.js";
export * from "./generated/errors.js";
export type * from "./generated/events.js";
export * from "./generated/frames.js";
export type * from "./generated/types.js";
