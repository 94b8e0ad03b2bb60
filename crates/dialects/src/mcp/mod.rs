//! An agent for MCP clients: a tool that asks it, and by its configuration its
//! own tools.
//!
//! Everything here is JSON in MCP's words. The transport, the eras and the
//! sessions are `toolyard_mcp::server`'s; this room reads requests
//! ([`command`]), lists tools ([`tools`]), prompts and documents ([`offers`]), follows a run ([`Following`]), and
//! turns what the run waits for into forms and back ([`Open`]).

mod command;
mod following;
mod offers;
mod pause;
mod result;
mod tools;

pub use command::{Asking, Command, Fault, ToolUse, command};
pub use following::{End, Following, Line, Opening, Standing, Until};
pub use offers::{ListedDocument, document_of, prompt, prompt_list, resource, resource_list};
pub use pause::{Able, Given, Open};
pub use result::{call_result, input_required, task, task_created, tool_error};
pub use tools::{LISTED, ask_tool, ask_tool_name, capabilities, instructions, nothing, own_tool, tool_list};

/// Where a run's metadata says that an MCP client started it, and by which tool.
pub const STARTED_BY: &str = "mcpClient";
