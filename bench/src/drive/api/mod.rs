//! The servers' protocols, each a few requests: prepare conversations, run an
//! errand in one.

mod direct;
mod floor;
mod native;

use bytes::Bytes;
use serde_json::Value;

pub use direct::Direct;
pub use floor::Floor;
pub use native::{Native, SECRET_KEY};

use super::DriveError;
use super::errand::{Errand, Watch};
use crate::http::Answer;

/// A conversation that a run happens in.
#[derive(Debug, Clone)]
pub struct Seat(pub String);

/// A server as the client sees it.
#[derive(Debug)]
pub enum Api {
    Direct(Direct),
    Floor(Floor),
    Native(Native),
}

impl Api {
    /// Makes a new conversation. Not part of any measurement.
    pub async fn seat(&self) -> Result<Seat, DriveError> {
        match self {
            Self::Direct(api) => Ok(api.seat()),
            Self::Floor(api) => Ok(api.seat()),
            Self::Native(api) => api.seat().await,
        }
    }

    /// Adds a message that starts no run. Not part of any measurement.
    pub async fn add_history(&self, seat: &Seat, text: &str) -> Result<(), DriveError> {
        match self {
            Self::Direct(api) => {
                api.add_history(seat, text);
                Ok(())
            }
            Self::Floor(api) => api.add_history(seat, text).await,
            Self::Native(api) => api.add_history(seat, text).await,
        }
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        match self {
            Self::Direct(api) => api.run(seat, errand).await,
            Self::Floor(api) => api.run(seat, errand).await,
            Self::Native(api) => api.run(seat, errand).await,
        }
    }
}

fn body(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

/// The answer, if the server did what was asked.
async fn accepted(what: &'static str, answer: Answer) -> Result<Answer, DriveError> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let status = answer.status.as_u16();
    let text = String::from_utf8_lossy(&answer.read_all().await?).into_owned();
    Err(DriveError::Refused { what, status, text })
}

/// The whole answer as JSON.
async fn read_json(what: &'static str, answer: Answer) -> Result<Value, DriveError> {
    let body = accepted(what, answer).await?.read_all().await?;
    let unreadable = |_| DriveError::Unexpected { what, text: String::from_utf8_lossy(&body).into_owned() };
    serde_json::from_slice(&body).map_err(unreadable)
}

/// A text inside a JSON answer.
fn text_at(what: &'static str, value: &Value, pointer: &str) -> Result<String, DriveError> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| DriveError::Unexpected { what, text: value.to_string() })
}
