//! The ledger: what runs wait for, who says "mine", who answers.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_protocol::{CallId, RunId, SpaceId, WaitId};

use crate::client::Client;
use crate::error::ClientError;
use crate::wire::Repeat;

/// Rows of one list.
const PAGE: &str = "200";

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    pub id: WaitId,
    pub run_id: RunId,
    #[serde(default)]
    pub smart_space_id: Option<SpaceId>,
    /// `client`, `approval`, `input`, `credential`, `child` or `timer`.
    pub kind: String,
    pub tool_call_id: CallId,
    pub tool_name: String,
    #[serde(default)]
    pub claimed_by: Option<String>,
    #[serde(default)]
    pub may_answer: bool,
    /// The arguments, or the question.
    #[serde(default)]
    pub payload: Option<Value>,
}

/// Which waits are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub run: Option<RunId>,
    pub space: Option<SpaceId>,
    pub kind: Option<&'static str>,
}

/// How long an answer holds beyond its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remember {
    /// This call only.
    Once,
    /// This conversation.
    Session,
    /// Until it is taken back.
    Always,
    /// Until it is taken back, for these arguments.
    AlwaysThese,
}

impl Remember {
    const fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::AlwaysThese => "alwaysThese",
        }
    }
}

/// What is said to a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Allow(Remember),
    /// Allows other arguments than the ones asked for, this once.
    Edit(Value),
    Deny {
        remember: Remember,
        /// Why not; the model reads it.
        message: Option<String>,
    },
    /// The value of an input or a credential.
    Provide(Value),
}

impl Answer {
    pub const fn allow_once() -> Self {
        Self::Allow(Remember::Once)
    }
    pub const fn deny() -> Self {
        Self::Deny { remember: Remember::Once, message: None }
    }

    fn body(&self, args_hash: Option<&str>) -> Value {
        let mut body = match self {
            Self::Allow(remember) => json!({ "decision": "allow", "remember": remember.word() }),
            Self::Edit(args) => json!({ "decision": "allow", "editedArgs": args, "remember": "once" }),
            Self::Deny { remember, message } => {
                let mut body = json!({ "decision": "deny", "remember": remember.word() });
                if let Some(message) = message {
                    body["message"] = json!(message);
                }
                body
            }
            Self::Provide(value) => json!({ "value": value }),
        };
        if let (Some(hash), true) = (args_hash, !matches!(self, Self::Provide(_))) {
            body["argsHash"] = json!(hash);
        }
        body
    }
}

#[derive(Debug, Deserialize)]
struct Page {
    waits: Vec<Wait>,
}

#[derive(Debug, Clone, Copy)]
pub struct Waits<'a>(pub(super) &'a Client);

impl Waits<'_> {
    /// Open waits that this key may see, oldest first, at most 200.
    pub async fn list(&self, filter: &WaitFilter) -> Result<Vec<Wait>, ClientError> {
        let mut target = self.0.below("/api/waits").asking("limit", PAGE);
        if let Some(run) = &filter.run {
            target = target.asking("runId", run.as_str());
        }
        if let Some(space) = &filter.space {
            target = target.asking("smartSpaceId", space.as_str());
        }
        if let Some(kind) = filter.kind {
            target = target.asking("kind", kind);
        }
        let page: Page = self.0.get(target).await?;
        Ok(page.waits)
    }

    /// Says "mine" for a minute, so that two programs do not start the same
    /// work. Again renews it. A claim of somebody else is a conflict.
    pub async fn claim(&self, wait: &WaitId) -> Result<(), ClientError> {
        let body = json!({ "clientId": self.0.id() });
        let _: Value = self.0.post(&format!("/api/waits/{wait}/claim"), &body, Repeat::Safely).await?;
        Ok(())
    }

    pub async fn answer(&self, wait: &WaitId, answer: &Answer) -> Result<(), ClientError> {
        self.send(wait, &answer.body(None)).await
    }

    /// The same, for exactly the arguments that were shown: `payload` is the
    /// question's. Other arguments by now are refused.
    pub async fn answer_shown(
        &self,
        wait: &WaitId,
        answer: &Answer,
        payload: &Value,
    ) -> Result<(), ClientError> {
        self.send(wait, &answer.body(payload.get("argsHash").and_then(Value::as_str))).await
    }

    async fn send(&self, wait: &WaitId, body: &Value) -> Result<(), ClientError> {
        let _: Value = self.0.post(&format!("/api/waits/{wait}/answer"), body, Repeat::Never).await?;
        Ok(())
    }
}
