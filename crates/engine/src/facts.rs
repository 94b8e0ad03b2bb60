//! Facts: what any node may write without a lease, inside the store's
//! transaction. Pure functions from ledger rows and a request to events.
//!
//! The store has compared and set the wait before it appends what these
//! return. Who may answer is decided by `protocol::wait::may_answer`, not here.

use serde_json::{Map, Value, json};
use toolyard_protocol::event::{Answered, BlobRef, Decision, MessageTaken, Spent, ToolReturned};
use toolyard_protocol::outcome::{DENIED_TEXT, SUPERSEDED_TEXT};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::wait::{Wait, WaitKind};
use toolyard_protocol::{ApiError, ErrorCode, Event, Guarded, MessageId, Timestamp, ToolOutcome};

/// Why a fact is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("The run has ended")]
    RunEnded,
    /// As above, and the call has somebody's result.
    #[error("The run has ended, and a different result for this call was accepted before")]
    RunEndedWithAnother,
    #[error("This was answered before")]
    WaitEnded,
    #[error("A different result for this call was accepted before")]
    ResultConflict,
    /// Send what this kind of wait takes.
    #[error("A wait of kind {} does not take {given}", kind.as_str())]
    WrongAnswer { kind: WaitKind, given: &'static str },
}

impl Refusal {
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::RunEnded | Self::RunEndedWithAnother => ErrorCode::RunEnded,
            Self::WaitEnded => ErrorCode::WaitEnded,
            Self::ResultConflict => ErrorCode::ResultConflict,
            Self::WrongAnswer { .. } => ErrorCode::BadRequest,
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}

/// What somebody says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Allow {
        /// Other arguments than the ones asked for.
        edited: Option<Value>,
    },
    Deny {
        message: Option<String>,
    },
    /// The value that an input or credential wait asks for.
    Provide(Value),
}

/// A client hands in the result of its call.
pub fn submit_result(
    wait: &Wait,
    outcome: ToolOutcome,
    blob: Option<BlobRef>,
    by: Actor,
) -> Result<Vec<Event>, Refusal> {
    match wait.kind {
        WaitKind::Client => Ok(vec![returned(wait, outcome, blob, by)]),
        WaitKind::Approval | WaitKind::Input | WaitKind::Credential | WaitKind::Child | WaitKind::Timer => {
            Err(Refusal::WrongAnswer { kind: wait.kind, given: "a result" })
        }
    }
}

/// A child run ended, in the same transaction as this.
pub fn end_child(
    wait: &Wait,
    outcome: ToolOutcome,
    blob: Option<BlobRef>,
    spent: Option<Spent>,
) -> Result<Vec<Event>, Refusal> {
    match wait.kind {
        WaitKind::Child => {
            let mut end = returned(wait, outcome, blob, Actor::Gateway {});
            if let Event::ToolReturned(end) = &mut end {
                end.spent = spent.map_or(Guarded::Hidden, Guarded::Shown);
            }
            Ok(vec![end])
        }
        WaitKind::Client | WaitKind::Approval | WaitKind::Input | WaitKind::Credential | WaitKind::Timer => {
            Err(Refusal::WrongAnswer { kind: wait.kind, given: "a child's end" })
        }
    }
}

/// Somebody answers a question. A denial ends the call.
pub fn answer(wait: &Wait, answer: Answer, by: Actor) -> Result<Vec<Event>, Refusal> {
    let wrong = |given| Err(Refusal::WrongAnswer { kind: wait.kind, given });
    match (wait.kind, answer) {
        (WaitKind::Approval, Answer::Allow { edited }) => {
            Ok(vec![answered(wait, Decision::Allow, edited, by)])
        }
        (WaitKind::Input | WaitKind::Credential, Answer::Provide(value)) => {
            Ok(vec![answered(wait, Decision::Provide, Some(value), by)])
        }
        (WaitKind::Approval | WaitKind::Input | WaitKind::Credential, Answer::Deny { message }) => {
            let text = message.unwrap_or_else(|| DENIED_TEXT.to_owned());
            Ok(vec![
                answered(wait, Decision::Deny, None, by.clone()),
                returned(wait, ToolOutcome::Denied(text), None, by),
            ])
        }
        (WaitKind::Approval, Answer::Provide(_)) => wrong("a value"),
        (WaitKind::Input | WaitKind::Credential, Answer::Allow { .. }) => wrong("an approval"),
        (WaitKind::Client | WaitKind::Child | WaitKind::Timer, _) => wrong("an answer"),
    }
}

/// The time of a wait is over. Nothing happens before it is.
pub fn expire(wait: &Wait, at: Timestamp) -> Vec<Event> {
    let Some(due) = wait.expires_at.filter(|due| *due <= at) else {
        return Vec::new();
    };
    let ms = due.since(wait.opened_at);
    let expired = ToolOutcome::Expired(format!("Expired: nobody answered within {ms} ms"));
    let by = Actor::Gateway {};
    match wait.kind {
        WaitKind::Client | WaitKind::Child => vec![returned(wait, expired, None, by)],
        WaitKind::Approval | WaitKind::Input | WaitKind::Credential => {
            vec![answered(wait, Decision::Expire, None, by.clone()), returned(wait, expired, None, by)]
        }
        WaitKind::Timer => {
            vec![returned(wait, ToolOutcome::Ok(timer_value(wait, ms, at)), None, by)]
        }
    }
}

/// The triggering entity writes on while the run is parked: its open waits
/// end, and the same run hears the messages.
pub fn supersede(waits: &[Wait], messages: Vec<MessageId>, by: Actor) -> Vec<Event> {
    let mut events = Vec::new();
    for wait in waits {
        if wait.kind.wakes_when_answered() {
            events.push(answered(wait, Decision::Withdraw, None, by.clone()));
        }
        let canceled = ToolOutcome::Canceled(SUPERSEDED_TEXT.to_owned());
        events.push(returned(wait, canceled, None, by.clone()));
    }
    events.push(MessageTaken { messages }.into());
    events
}

/// Do these facts make a parked run runnable? `waits_left` counts the run's
/// own waits that stay open after them.
pub fn wakes(events: &[Event], waits_left: usize) -> bool {
    events.iter().any(|event| match event {
        Event::Answered(_) | Event::CancelRequested(_) | Event::MessageTaken(_) => true,
        // What the run waits for has changed: its owner says so and lies down again.
        Event::ChildAsked(_) | Event::ChildAnswered(_) => true,
        Event::ToolReturned(_) => waits_left == 0,
        Event::RunCreated(_)
        | Event::RunStarted(_)
        | Event::StepRestarted(_)
        | Event::ModelReplied(_)
        | Event::Asked(_)
        | Event::ToolCallRequested(_)
        | Event::ToolProgressed(_)
        | Event::ReplyAmended(_)
        | Event::ResultAmended(_)
        | Event::ToolsetReplaced(_)
        | Event::ChildStarted(_)
        | Event::MessageQueued(_)
        | Event::HistoryCompacted(_)
        | Event::PluginEmitted(_)
        | Event::PluginStateSaved(_)
        | Event::RunPaused(_)
        | Event::RunFinished(_) => false,
    })
}

/// A repeat of the answer that was accepted.
pub fn same_answer(stored: &Event, answer: &Answer) -> bool {
    let Event::Answered(stored) = stored else { return false };
    let edited = stored.edited.shown();
    match answer {
        Answer::Allow { edited: given } => stored.decision == Decision::Allow && edited == given.as_ref(),
        Answer::Deny { .. } => stored.decision == Decision::Deny,
        Answer::Provide(value) => stored.decision == Decision::Provide && edited == Some(value),
    }
}

/// A repeat of the result that was accepted. Blobs are compared by hash: what
/// stands in the event is only their preview.
pub fn same_result(stored: &ToolReturned, outcome: &ToolOutcome, blob: Option<&BlobRef>) -> bool {
    match (stored.blob.shown(), blob) {
        (Some(a), Some(b)) => a == b && stored.outcome == outcome.kind(),
        (None, None) => stored.outcome() == *outcome,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn returned(wait: &Wait, outcome: ToolOutcome, blob: Option<BlobRef>, by: Actor) -> Event {
    let (call, tool) = (wait.call.clone(), wait.tool.clone());
    let mut end = ToolReturned::new(call, tool, wait.visibility, outcome, by);
    end.blob = blob.map_or(Guarded::Hidden, Guarded::Shown);
    end.into()
}

fn answered(wait: &Wait, decision: Decision, edited: Option<Value>, by: Actor) -> Event {
    Answered {
        wait: wait.id.clone(),
        kind: wait.kind,
        call: wait.call.clone(),
        visibility: wait.visibility,
        decision,
        edited: edited.map_or(Guarded::Hidden, Guarded::Shown),
        recount: false,
        by: Guarded::Shown(by),
    }
    .into()
}

/// `{success, waited, reason, timestamp}` (row G13); the payload knows best.
fn timer_value(wait: &Wait, ms: u64, at: Timestamp) -> Value {
    let mut value = match &wait.payload {
        Value::Object(payload) => payload.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    value.insert("success".to_owned(), json!(true));
    value.entry("waited").or_insert_with(|| json!(ms));
    value.entry("reason").or_insert(Value::Null);
    value.entry("timestamp").or_insert_with(|| json!(at.to_string()));
    Value::Object(value)
}
