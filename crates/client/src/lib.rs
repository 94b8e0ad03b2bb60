//! The Rust SDK: chat, tools, plugins and the MCP bridge, for programs that
//! execute an agent's tools.
//!
//! ```no_run
//! use toolyard_client::{Auth, CallContext, Client, Failure, json, tool};
//!
//! # async fn robot(space: toolyard_client::SpaceId) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder()
//!     .base_url("http://127.0.0.1:8787")
//!     .auth(Auth::secret_key(std::env::var("TOOLYARD_SECRET_KEY")?))
//!     .build()?;
//! client.register_tool(
//!     tool("readSensors")
//!         .describe("Reads the sensors.")
//!         .run(|_args: serde_json::Value, _cx: CallContext| async move {
//!             Ok::<_, Failure>(json!({ "battery": 0.8 }))
//!         }),
//! )?;
//! client.serve_tools(&space).await?;
//! # Ok(()) }
//! ```
//!
//! Rooms: `client` and `wire` talk to the gateway, `api` has its things,
//! `stream` and `event` follow what happens. `tool` and `plugin` are what a
//! program brings. `perform` executes one call, once; `journal` remembers it
//! over a crash; `serve` is the loop of a worker and `chat` that of a
//! conversation. `mcp` bridges MCP servers, `provider` is the document's
//! `ClientToolProvider`, `kit` has plugins that are ready to use.
//!
//! What this crate never does: execute a call that the gateway did not
//! announce, execute one twice that may not be repeated, or open a connection
//! past the operator's door of egress.

mod api;
mod auth;
mod backoff;
mod call;
mod chat;
mod client;
mod error;
mod event;
mod journal;
pub mod kit;
mod mcp;
mod perform;
mod plugin;
mod provider;
mod serve;
mod stream;
mod tool;
mod wire;

pub use api::{
    Answer, Entities, Entity, Member, Message, NewMessage, Posted, Reached, Remember, Run, Runs, Space,
    Spaces, Taken, Wait, WaitFilter, Waits,
};
pub use auth::Auth;
pub use backoff::Backoff;
pub use call::{BadToolCall, ToolCall};
pub use chat::{Chat, ChatEvent, ChatResponse, ChatStream};
pub use client::{Client, ClientBuilder, ClientEvent};
pub use error::{ClientError, Refusal};
pub use event::{
    Answered, Asked, CallReady, ChildAsked, Delta, Event, EventKind, Finished, Pending, Progressed, Reply,
    Returned, RunError, StepSoFar, Waiting,
};
pub use journal::{Begun, Journal, JournalError, Outcome};
pub use mcp::{McpPlugin, McpServer, mcp_plugin, mcp_plugin_from_file};
pub use plugin::{Handled, Plugin, PluginBuilder, PluginError, plugin};
pub use provider::{ClientToolProvider, FunctionResult, TaskContext};
pub use serve::{Scope, ServeTools, Served};
pub use stream::EventStream;
pub use tool::{CallContext, Failure, Tool, ToolBuilder, ToolDefinition, ToolOptions, definition_json, tool};

pub use serde_json::json;
pub use tokio_util::sync::CancellationToken;
pub use toolyard_mcp::LeftOut;
pub use toolyard_protocol::{CallId, ClientId, EntityId, ErrorCode, MessageId, RunId, SpaceId, WaitId};
pub use toolyard_schema::{
    ArgumentsVerdict, ClientToolCall, DefinitionErrors, FunctionCall, Limits, NameRule, Validation,
    safe_validate_tool_definitions, validate_tool_definitions,
};
