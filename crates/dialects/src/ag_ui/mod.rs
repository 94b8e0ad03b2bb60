//! AG-UI 1.0 and 0.x, and what CopilotKit's clients need beside it.
//!
//! [`parse`] reads a request, [`AgUi`] writes the stream. Which of the two
//! generations is spoken follows from the request's `protocolVersion`.

mod calls;
mod input;
mod names;
mod pause;
mod pen;
mod proto;
mod restore;
mod steps;
mod telling;
mod transcript;
mod wire;

pub use input::{Context, Resume, RunInput, Version, parse};
pub use names::stored_name;
pub use pause::{Resolved, resolve};
pub use pen::{Encoding, PROTOBUF};
pub use proto::Recoder;
pub use restore::{CONTEXT, restored};
pub use telling::{AgUi, Opening};
