//! The words of Toolyard: ids, agent configuration, messages, tools, events,
//! waits, limits and errors.
//!
//! Every other crate speaks in these types. Nothing here does IO, waits or
//! reads a clock. Start with [`event`] to see what a run is made of, then
//! [`visible`] for who may see which part of it.

pub mod agent;
pub mod delta;
pub mod error;
pub mod event;
pub mod guarded;
pub mod hash;
pub mod ids;
pub mod limits;
pub mod manifest;
pub mod message;
pub mod name;
pub mod outcome;
pub mod picks;
pub mod principal;
pub mod risk;
pub mod run;
pub mod sse;
pub mod time;
pub mod tool;
pub mod trace;
pub mod visible;
pub mod wait;

pub use error::{ApiError, ErrorCode};
pub use event::Event;
pub use guarded::Guarded;
pub use hash::Hash;
pub use ids::*;
pub use name::{AgentName, CuratorId, PluginId, SecretName, ToolName};
pub use outcome::{OutcomeKind, ToolOutcome};
pub use principal::{KeyKind, Principal, Viewer};
pub use time::Timestamp;
pub use trace::TraceParent;
