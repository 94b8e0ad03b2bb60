//! Model providers: a conversation in, one canonical stream out.
//!
//! Every vendor is a [`Model`]. It turns a [`Request`] into the vendor's words
//! and the vendor's stream into [`Chunk`]s. A stream ends with exactly one
//! [`Chunk::Finish`] or exactly one [`ModelError`]; nothing follows either.
//!
//! This crate never runs tools, never mints call ids, never stores anything
//! and never decides what a key may see. Start at [`Providers`] to get a
//! model, at [`demo`] for the one that needs no vendor, at [`wire`] for what
//! all vendors share.

pub mod anthropic;
#[cfg(feature = "bedrock")]
pub mod bedrock;
mod call_error;
mod chunk;
pub mod clean;
pub mod demo;
pub mod direct;
pub mod embed;
mod error;
mod files;
pub mod gemini;
pub mod images;
mod lenient;
mod model;
mod names;
pub mod openai;
mod order;
mod pairs;
pub mod provider_id;
mod providers;
pub mod registry;
mod request;
pub mod responses;
mod retry;
#[cfg(feature = "scripted")]
pub mod scripted;
mod skills;
mod speakers;
mod sse;
pub mod tck;
mod unknown;
pub mod wire;
mod words;

pub use call_error::CallError;
pub use chunk::Chunk;
pub use embed::{Embed, EmbedRequest, Embedded, Purpose};
pub use error::{Detail, ModelError};
pub use images::{Image, ImageRequest, Images};
pub use model::{Model, ModelStream};
pub use names::{ALIAS_CHARS, Names};
pub use pairs::paired;
pub use providers::{BadProvider, ProviderKind, ProviderSettings, Providers};
pub use registry::{BadRegistry, Candidate, ModelRecord, Price, Registry, Wanted};
pub use request::{ChatTurn, OfferedTool, OutputSchema, PastCall, PastResult, Request};
pub use retry::Retry;
pub use sse::{Listen, SseDecoder};
pub use unknown::{UNKNOWN, UNKNOWN_FIELDS};
