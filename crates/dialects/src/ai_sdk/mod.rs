//! The AI SDK's UI message stream, as versions 5, 6 and 7 of its clients read
//! it: the chunks that all three know, and none of their private keys.
//!
//! [`telling`] turns a run into chunks; [`stream`] writes them. The older data
//! stream is the same chunks in other words, see [`crate::data_stream_v1`].
//! [`request`] reads what clients of both send.

mod calls;
mod chunk;
mod messages;
mod request;
mod socket;
mod sources;
mod stream;
mod telling;

pub use chunk::{Chunk, Finish, Voice};
pub use request::{Asked, BadChat, Replied, Reply};
pub use socket::{AbortFrame, ChatAnswer, ChatFrame, ResumeFrame, SendFrame};
pub use stream::UiStream;
pub use telling::{ChatTelling, Options};
