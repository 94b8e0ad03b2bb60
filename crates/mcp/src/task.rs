//! Tasks: calls that a server works on after it has answered. The ticket is
//! all that is needed to follow one, also after a restart of the gateway.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, CustomRequest, GetTaskParams, GetTaskRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::call::{Call, Outcome, Tried, attempt, paused, ready};
use crate::link::Link;
use crate::settings::Owner;

/// The pause between two looks at a task if the server names none.
const POLL: Duration = Duration::from_secs(1);
/// No server makes us ask faster, or wait longer.
const POLLS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Looks that may fail in a row before the task is lost.
const FAILURES: u32 = 5;

/// A task of a server. Keep it with the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    pub task_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_ms: Option<u64>,
    /// How long the server keeps the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How often the task has asked for input.
    #[serde(default)]
    pub round: u32,
}

impl Ticket {
    pub(crate) fn read(raw: &Value) -> Option<Self> {
        let inner = raw.get("task").unwrap_or(raw);
        let text = |key: &str| inner.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| inner.get(key).and_then(Value::as_u64);
        Some(Self {
            task_id: text("taskId").filter(|id| !id.is_empty())?,
            poll_ms: number("pollIntervalMs").or_else(|| number("pollInterval")),
            ttl_ms: number("ttlMs").or_else(|| number("ttl")),
            message: text("statusMessage").map(|text| toolyard_schema::clean(&text, 1024).text),
            round: 0,
        })
    }

    fn pause(&self) -> Duration {
        self.poll_ms.map_or(POLL, Duration::from_millis).clamp(POLLS.0, POLLS.1)
    }
}

/// Follows a task to its end, or to its next question.
pub(crate) async fn follow(link: &Arc<Link>, owner: &Owner, mut ticket: Ticket, call: &Call) -> Outcome {
    let mut failures = 0;
    loop {
        let request =
            ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(ticket.task_id.clone())));
        match ask(link, owner, call, request).await {
            Ok(raw) => {
                failures = 0;
                if let Some(newer) = Ticket::read(&raw) {
                    ticket = Ticket { round: ticket.round, ..newer };
                }
                if let Some(outcome) = judge(&raw, &ticket) {
                    return outcome;
                }
            }
            Err(Tried::Canceled) => return abandon(link, owner, &ticket, call).await,
            Err(Tried::Error(error)) => {
                return Outcome::Failed(format!(
                    "the server lost the task: error {}: {}",
                    error.code.0,
                    toolyard_schema::clean(&error.message, 500).text
                ));
            }
            // Looking again does no harm.
            Err(_) => failures += 1,
        }
        if failures >= FAILURES {
            return Outcome::Unknown(format!(
                "Outcome unknown: MCP server {} works on task {} and cannot be asked about it.",
                link.settings.name, ticket.task_id
            ));
        }
        tokio::select! {
            () = call.cancel.cancelled() => return abandon(link, owner, &ticket, call).await,
            () = tokio::time::sleep(ticket.pause()) => {}
        }
    }
}

/// The outcome, if the task has one.
fn judge(raw: &Value, ticket: &Ticket) -> Option<Outcome> {
    let inner = raw.get("task").unwrap_or(raw);
    let found = |key: &str| inner.get(key).or_else(|| raw.get(key)).cloned();
    Some(match inner.get("status").and_then(Value::as_str)? {
        "completed" => Outcome::Done(Answer::read(found("result").unwrap_or(Value::Null))),
        "failed" => {
            let error = found("error").unwrap_or(Value::Null);
            let text = error.get("message").and_then(Value::as_str).or(ticket.message.as_deref());
            Outcome::Failed(format!(
                "the task failed: {}",
                toolyard_schema::clean(text.unwrap_or("no reason given"), 2000).text
            ))
        }
        "cancelled" => Outcome::Canceled,
        "input_required" => match paused(&json!({ "inputRequests": found("inputRequests") }), ticket.round) {
            Outcome::Paused(asked) if !asked.requests.is_empty() => {
                let note = Ticket { round: asked.round, ..ticket.clone() };
                let note = serde_json::to_string(&note).ok();
                Outcome::Paused(crate::Paused {
                    request_state: note.map(|note| format!("{NOTE}{note}")),
                    ..asked
                })
            }
            other => other,
        },
        _ => return None,
    })
}

/// Marks a paused call whose answers belong to a task.
const NOTE: &str = "toolyard-task:";

/// The task behind a paused call, if there is one.
pub(crate) fn ticket_of(paused: &crate::Paused) -> Option<Ticket> {
    serde_json::from_str(paused.request_state.as_deref()?.strip_prefix(NOTE)?).ok()
}

/// Gives a task the input it asked for, then follows it.
pub(crate) async fn answer(
    link: &Arc<Link>,
    owner: &Owner,
    ticket: Ticket,
    answers: &Map<String, Value>,
    call: &Call,
) -> Outcome {
    let params = json!({ "taskId": ticket.task_id, "inputResponses": answers });
    let request = ClientRequest::CustomRequest(CustomRequest::new("tasks/update", Some(params)));
    match ask(link, owner, call, request).await {
        Ok(_) => follow(link, owner, ticket, call).await,
        Err(Tried::Canceled) => abandon(link, owner, &ticket, call).await,
        Err(Tried::Error(error)) => Outcome::Failed(format!(
            "the server refused the input: error {}: {}",
            error.code.0,
            toolyard_schema::clean(&error.message, 500).text
        )),
        // The task knows whether it got the input: it asks again if not.
        Err(_) => follow(link, owner, ticket, call).await,
    }
}

/// Tells the server that nobody waits for the task any more.
async fn abandon(link: &Arc<Link>, owner: &Owner, ticket: &Ticket, call: &Call) -> Outcome {
    if call.leave.is_cancelled() {
        return Outcome::Canceled;
    }
    let params = CancelTaskParams::new(ticket.task_id.clone());
    let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params));
    let quiet = Call { cancel: tokio_util::sync::CancellationToken::new(), ..call.clone() };
    let told = ask(link, owner, &quiet, request);
    let _ = tokio::time::timeout(Duration::from_secs(5), Box::pin(told)).await;
    Outcome::Canceled
}

async fn ask(link: &Arc<Link>, owner: &Owner, call: &Call, request: ClientRequest) -> Result<Value, Tried> {
    let live = match ready(link, call.times.start).await {
        Ok(live) => live,
        Err(_) => return Err(Tried::NeverSent(crate::fault::Fault::never_sent("not ready"))),
    };
    match attempt(&live, owner, call, request).await {
        Tried::Answer(raw) => Ok(raw),
        Tried::NeverSent(fault) => {
            link.order(crate::link::Order::Suspect(fault.clone()));
            Err(Tried::NeverSent(fault))
        }
        other => Err(other),
    }
}
