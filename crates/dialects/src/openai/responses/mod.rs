//! `/v1/responses`.

mod items;
mod request;
mod telling;
mod wire;

pub use request::{Approval, ResponsesRequest, parse};
pub use telling::{Opening, Responses};
pub use wire::run_of;
