//! One message and everything that follows from it: the runs it starts are
//! followed, calls of this program's tools are executed and answered.

mod request;
mod response;
mod stream;

pub use request::Chat;
pub use response::ChatResponse;
pub use stream::{ChatEvent, ChatStream};
