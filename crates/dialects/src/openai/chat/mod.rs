//! `/v1/chat/completions`.

mod request;
mod telling;
mod wire;

pub use request::{ChatRequest, parse};
pub use telling::{Chat, Opening};
