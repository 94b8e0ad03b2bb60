//! Runs: look, follow, cancel, hand in results.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::{CallId, RunId, SpaceId};

use crate::client::Client;
use crate::error::ClientError;
use crate::journal::Outcome;
use crate::stream::EventStream;
use crate::wire::Repeat;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub id: RunId,
    /// `queued`, `running`, `waiting_tool`, `completed`, `failed`, `canceled`.
    pub status: String,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub agent_name: Option<String>,
    #[serde(default)]
    pub smart_space_id: Option<SpaceId>,
    #[serde(default)]
    pub error_code: Option<String>,
    #[serde(default)]
    pub last_seq: i64,
}

impl Run {
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed" | "canceled")
    }
}

/// What the gateway did with a result.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    pub tool_call_id: CallId,
    /// `accepted`, or `repeated` if the same result came before.
    pub status: String,
}

#[derive(Debug, Deserialize)]
struct One {
    run: Run,
}

#[derive(Debug, Deserialize)]
struct AllTaken {
    results: Vec<Taken>,
}

#[derive(Debug, Clone, Copy)]
pub struct Runs<'a>(pub(super) &'a Client);

fn result(call: &CallId, outcome: &Outcome) -> Value {
    match outcome {
        Ok(value) => json!({ "toolCallId": call, "result": value }),
        Err(text) => json!({ "toolCallId": call, "error": text }),
    }
}

impl Runs<'_> {
    pub async fn get(&self, id: &RunId) -> Result<Run, ClientError> {
        let one: One = self.0.get(self.0.below(&format!("/api/runs/{id}"))).await?;
        Ok(one.run)
    }

    /// Follows a run from its beginning to its end.
    pub fn stream(&self, id: &RunId) -> EventStream {
        EventStream::new(self.0.clone(), format!("/api/runs/{id}/stream"), None)
    }

    /// Follows a run after a position.
    pub fn stream_after(&self, id: &RunId, after: i64) -> EventStream {
        EventStream::new(self.0.clone(), format!("/api/runs/{id}/stream"), Some(after))
    }

    /// Asks a run to stop (secret key).
    pub async fn cancel(&self, id: &RunId, reason: &str) -> Result<(), ClientError> {
        let body = json!({ "reason": reason });
        let _: Value = self.0.post(&format!("/api/runs/{id}/cancel"), &body, Repeat::Safely).await?;
        Ok(())
    }

    /// Hands in the outcome of one call.
    pub async fn submit(&self, run: &RunId, call: &CallId, outcome: &Outcome) -> Result<Taken, ClientError> {
        let mut body = result(call, outcome);
        body["clientId"] = json!(self.0.id());
        let taken = self.send(run, &body).await?;
        taken.into_iter().next().ok_or_else(|| ClientError::Unreadable("results: is empty".to_owned()))
    }

    /// Hands in several outcomes: all are taken, or none.
    pub async fn submit_all(
        &self,
        run: &RunId,
        outcomes: &[(CallId, Outcome)],
    ) -> Result<Vec<Taken>, ClientError> {
        let results: Vec<Value> = outcomes.iter().map(|(call, outcome)| result(call, outcome)).collect();
        self.send(run, &json!({ "results": results, "clientId": self.0.id() })).await
    }

    /// The same result again is the same result: it may be repeated.
    async fn send(&self, run: &RunId, body: &Value) -> Result<Vec<Taken>, ClientError> {
        let path = format!("/api/runs/{run}/tool-results");
        let taken: AllTaken = self.0.post(&path, body, Repeat::Safely).await?;
        Ok(taken.results)
    }

    pub(crate) async fn progress(&self, run: &RunId, body: &Value) -> Result<(), ClientError> {
        let path = format!("/api/runs/{run}/tool-progress");
        let _: Value = self.0.post(&path, body, Repeat::Never).await?;
        Ok(())
    }
}
