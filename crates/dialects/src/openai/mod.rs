//! What programs that speak OpenAI's API send and expect: chat completions and
//! responses, streamed or whole. The agent is the model's name.
//!
//! The client's tools are calls that it answers with its next request. Tools
//! of the gateway are not shown: their results are in the answer.

mod answer;
pub mod chat;
mod error;
mod input;
mod models;
pub mod responses;

pub use error::{error_body, error_status};
pub use input::{Format, tool_definitions};
pub use models::{ModelEntry, model_list, model_view};
