//! The servers' protocols, each a few requests: prepare conversations, run an
//! errand in one.

mod aisdk;
mod direct;
mod floor;
mod kept;
mod langgraph;
mod native;
mod pydantic_ai;

use bytes::Bytes;
use serde_json::Value;

pub use aisdk::AiSdk;
pub use direct::Direct;
pub use floor::Floor;
pub use langgraph::LangGraph;
pub use native::{Native, SECRET_KEY};
pub use pydantic_ai::PydanticAi;

use super::DriveError;
use super::errand::{Errand, Watch};
use crate::frames::{Event, Frames};
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
    AiSdk(AiSdk),
    LangGraph(LangGraph),
    PydanticAi(PydanticAi),
}

impl Api {
    /// Makes a new conversation. Not part of any measurement.
    pub async fn seat(&self) -> Result<Seat, DriveError> {
        match self {
            Self::Direct(api) => Ok(api.seat()),
            Self::Floor(api) => Ok(api.seat()),
            Self::Native(api) => api.seat().await,
            Self::AiSdk(api) => Ok(api.seat()),
            Self::LangGraph(api) => Ok(api.seat()),
            Self::PydanticAi(api) => Ok(api.seat()),
        }
    }

    /// Adds messages that start no run. Not part of any measurement.
    pub async fn add_history(&self, seat: &Seat, texts: &[String]) -> Result<(), DriveError> {
        match self {
            Self::Direct(api) => api.add_history(seat, texts),
            Self::AiSdk(api) => api.add_history(seat, texts),
            Self::PydanticAi(api) => api.add_history(seat, texts),
            Self::LangGraph(api) => api.add_history(seat, texts).await?,
            Self::Floor(api) => api.add_history(seat, texts).await?,
            Self::Native(api) => api.add_history(seat, texts).await?,
        }
        Ok(())
    }

    pub async fn run(&self, seat: &Seat, errand: &Errand) -> Result<Watch, DriveError> {
        match self {
            Self::Direct(api) => api.run(seat, errand).await,
            Self::Floor(api) => api.run(seat, errand).await,
            Self::Native(api) => api.run(seat, errand).await,
            Self::AiSdk(api) => api.run(seat, errand).await,
            Self::LangGraph(api) => api.run(seat, errand).await,
            Self::PydanticAi(api) => api.run(seat, errand).await,
        }
    }
}

/// Reads a stream to its end, event by event.
async fn each_event(
    mut answer: Answer,
    watch: &mut Watch,
    mut take: impl FnMut(Event<'_>, &mut Watch) -> Result<(), DriveError>,
) -> Result<(), DriveError> {
    let mut frames = Frames::default();
    while let Some(bytes) = answer.next().await? {
        watch.read(&bytes);
        frames.push(&bytes);
        while let Some(event) = frames.next_event() {
            take(event, watch)?;
        }
    }
    Ok(())
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
