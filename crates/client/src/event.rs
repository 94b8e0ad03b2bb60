//! What a stream tells, typed. Names and fields that this release does not
//! know are kept in [`Event::data`] and never an error.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_protocol::sse::SseEvent;
use toolyard_protocol::{CallId, MessageId, RunId, WaitId};

/// One frame of a run's or a space's stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The position, of durable events only. A reader comes back after it.
    pub id: Option<i64>,
    pub run: Option<RunId>,
    /// The frame's own name, as in the documentation of events.
    pub name: String,
    pub kind: EventKind,
    /// The whole payload.
    pub data: Value,
}

/// The events that clients act on.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    TextDelta(Delta),
    ReasoningDelta(Delta),
    /// The model has replied: one whole step. It replaces what was streamed.
    Replied(Reply),
    /// What was streamed of this step is void.
    StepRestarted {
        step: u32,
    },
    /// Replaces what the reader had of a step.
    StepSoFar(StepSoFar),
    /// A call waits for a yes or no, a value or a credential.
    Asked(Asked),
    Answered(Answered),
    /// A call may run from here on.
    CallReady(CallReady),
    Progressed(Progressed),
    /// A call has ended.
    Returned(Returned),
    /// Only waits are left.
    Waiting(Waiting),
    /// A run below this one asks somebody.
    ChildAsked(ChildAsked),
    MessageQueued {
        message_id: MessageId,
    },
    /// Somebody wrote into the space.
    Message(Value),
    /// The reader's position is ahead of the log: forget all, go on from here.
    Reset,
    /// The run is over.
    Finished(Finished),
    /// Everything else; see [`Event::name`] and [`Event::data`].
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Delta {
    pub step: u32,
    /// The part that it belongs to.
    pub id: String,
    pub delta: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    pub step: u32,
    pub message_id: MessageId,
    #[serde(default)]
    pub parts: Vec<Value>,
    pub finish_reason: Option<String>,
    /// Cut short by a cancel or a message.
    #[serde(default)]
    pub partial: bool,
}

impl Reply {
    /// The text of the step.
    pub fn text(&self) -> String {
        self.said("text")
    }
    pub fn reasoning(&self) -> String {
        self.said("reasoning")
    }
    fn said(&self, kind: &str) -> String {
        let parts = self.parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some(kind));
        parts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepSoFar {
    pub step: u32,
    #[serde(default)]
    pub parts: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    pub wait_id: WaitId,
    /// `approval`, `input` or `credential`.
    pub kind: String,
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub execution_target: Option<String>,
    pub risk: Option<String>,
    /// This key may answer.
    #[serde(default)]
    pub may_answer: bool,
    /// The exact arguments, or the question.
    pub payload: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    pub wait_id: WaitId,
    pub decision: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallReady {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub input: Option<Value>,
    /// `server`, `client` or `external`.
    pub execution_target: Option<String>,
    pub step: Option<u32>,
    pub risk: Option<String>,
    pub wait_id: Option<WaitId>,
    #[serde(default)]
    pub may_answer: bool,
}

impl CallReady {
    /// A client executes it, and this key may hand in the result.
    pub fn is_for_clients(&self) -> bool {
        self.may_answer && matches!(self.execution_target.as_deref(), Some("client" | "external"))
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progressed {
    pub tool_call_id: CallId,
    pub tool_name: Option<String>,
    pub fraction: Option<f64>,
    pub message: Option<String>,
    pub preliminary: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Returned {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub output: Option<Value>,
    pub error: Option<String>,
    /// `ok`, `failed`, `denied`, `expired`, `canceled` or `uncertain`.
    pub outcome: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The most urgent wait.
    pub reason: String,
    #[serde(default)]
    pub pending_tool_calls: Vec<Pending>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub wait_id: WaitId,
    pub kind: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildAsked {
    pub child_run_id: RunId,
    pub wait_id: WaitId,
    pub kind: String,
    #[serde(default)]
    pub may_answer: bool,
    pub payload: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// `completed`, `failed` or `canceled`.
    pub status: String,
    pub error: Option<RunError>,
    pub message: Option<String>,
    pub usage: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunError {
    pub code: String,
    pub message: Option<String>,
}

impl Event {
    /// Reads a frame. One that cannot be read is [`EventKind::Other`].
    pub fn read(frame: &SseEvent) -> Self {
        let data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
        let typed = data.get("type").and_then(Value::as_str);
        let name = typed.or(frame.event.as_deref()).unwrap_or_default().to_owned();
        let run = data.get("runId").and_then(Value::as_str).and_then(|text| RunId::parse(text).ok());
        let id = frame.id.as_deref().and_then(|id| id.parse().ok());
        let kind = EventKind::read(&name, &data).unwrap_or(EventKind::Other);
        Self { id, run, name, kind, data }
    }
}

impl EventKind {
    fn read(name: &str, data: &Value) -> Option<Self> {
        fn of<T: DeserializeOwned>(data: &Value) -> Option<T> {
            T::deserialize(data).ok()
        }
        Some(match name {
            "text-delta" => Self::TextDelta(of(data)?),
            "reasoning-delta" => Self::ReasoningDelta(of(data)?),
            "message.assistant" => Self::Replied(of(data)?),
            "step.restarted" => {
                Self::StepRestarted { step: u32::try_from(data.get("step")?.as_u64()?).ok()? }
            }
            "step-so-far" => Self::StepSoFar(of(data)?),
            "tool-approval-request" | "input-required" | "auth-required" => Self::Asked(of(data)?),
            "wait.answered" => Self::Answered(of(data)?),
            "tool-input-available" => Self::CallReady(of(data)?),
            "tool.progress" => Self::Progressed(of(data)?),
            "tool-output-available" | "tool-error" => Self::Returned(of(data)?),
            "run.waiting_tool" | "run.parked" => Self::Waiting(of(data)?),
            "child.asked" => Self::ChildAsked(of(data)?),
            "message.queued" => Self::MessageQueued { message_id: of(data.get("messageId")?)? },
            "smartSpace.message" => Self::Message(data.get("message")?.clone()),
            "reset" => Self::Reset,
            "run.completed" | "run.failed" | "run.canceled" => Self::Finished(of(data)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(name: &str, data: &str) -> Event {
        Event::read(&SseEvent {
            id: Some("7".to_owned()),
            event: Some(name.to_owned()),
            data: data.to_owned(),
        })
    }

    #[test]
    fn unknown_names_unknown_fields_and_broken_payloads_are_kept_and_never_an_error() {
        let known = read(
            "text-delta",
            r#"{"type":"text-delta","runId":"run_1","step":1,"id":"0","delta":"hi","later":{"x":1}}"#,
        );
        let delta = Delta { step: 1, id: "0".to_owned(), delta: "hi".to_owned() };
        assert_eq!((known.kind, known.id), (EventKind::TextDelta(delta), Some(7)));
        for (name, data) in
            [("hologram", r#"{"type":"hologram"}"#), ("text-delta", "{"), ("text-delta", "[1]")]
        {
            let event = read(name, data);
            assert_eq!((event.kind, event.name.as_str()), (EventKind::Other, name));
        }
    }
}
