//! A turn of a conversation whose client keeps the history: one command, one
//! transaction, for every dialect that works like that.
//!
//! The branch rule: what the gateway issued is known by id and comes from the
//! store. From the request are taken new messages, outputs and answers through
//! the ledger, truncation when it is said, and foreign history. A repeat
//! attaches to what runs and calls no model twice.
//!
//! Lock order: the live run, then its waits, then the space.

mod align;
mod attach;
mod context;
mod place;
mod replies;
mod speak;

use std::sync::Arc;

use serde_json::Value;
use toolyard_dialects::telling::Start;
use toolyard_engine::facts::Answer;
use toolyard_models::direct;
use toolyard_protocol::agent::OutputSection;
use toolyard_protocol::message::Speaker;
use toolyard_protocol::picks::Picks;
use toolyard_protocol::{
    AgentName, ApiError, CallId, MessageId, Principal, RunId, SpaceId, ToolName, ToolOutcome, TraceParent,
    Viewer, WaitId,
};
use toolyard_store::{Tx, failpoint};

pub use attach::Following;
pub use toolyard_dialects::history::{Cut, Item};

use crate::client_tools::BroughtTools;
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::{Desk, STARTS};

/// One request of a client that keeps the history.
#[derive(Debug, Clone)]
pub struct Turn {
    /// A secret key may act for an entity; without one it acts for the
    /// tenant's own.
    pub by: Principal,
    /// The agent that is asked for. None means the one of the thread.
    pub agent: Option<AgentName>,
    /// For a new thread, if none is asked for.
    pub default_agent: AgentName,
    /// The client's name of the conversation, or the id of a space that the
    /// caller is a member of.
    pub thread: String,
    /// The conversation as the client holds it, or only its end. Either all
    /// items have a name or none has: without names they are told by their text.
    pub items: Vec<Item>,
    /// Outputs and answers that the history holds, old and new.
    pub replies: Vec<Reply>,
    /// What of the conversation the client takes back.
    pub cut: Option<Cut>,
    /// The client's tools, checked. They hold until the next request.
    pub tools: BroughtTools,
    pub model: Option<String>,
    pub picks: Option<Picks>,
    /// The form of the answer of a run that this request starts.
    pub output: Option<OutputSection>,
    /// Of a run that this request starts.
    pub metadata: Option<Value>,
    /// The caller's span that such a run works for.
    pub trace: Option<TraceParent>,
}

/// What a history says of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub call: CallId,
    pub said: Replied,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Replied {
    /// A client ran it.
    Outcome(ToolOutcome),
    /// Somebody decided, or gave a value. Of this wait, or of the call's only one.
    Answer { wait: Option<WaitId>, answer: Answer },
}

/// Where to look for the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Turned {
    pub space: SpaceId,
    pub run: RunId,
    /// The assistant message that is continued or begun. A message that waits
    /// in the queue may be answered by a later one.
    pub message: MessageId,
    pub start: Start,
    /// Calls whose stored outcome is what the client holds.
    pub kept: Vec<CallId>,
    pub viewer: Viewer,
    /// A run was started for it.
    pub fresh: bool,
    /// How many tools each group has for a run that starts now (row H6).
    pub groups: Vec<(String, usize)>,
}

impl Runtime {
    /// Takes a turn.
    pub async fn turn(self: &Arc<Self>, turn: Turn) -> Result<Turned, ApiError> {
        self.check_model(turn.model.as_deref())?;
        self.bring(turn).await
    }

    /// Takes a turn that calls one tool of the agent, and no model. The call
    /// passes the same gate as a model's would.
    pub async fn turn_directly(
        self: &Arc<Self>,
        mut turn: Turn,
        tool: &ToolName,
        arguments: &Value,
    ) -> Result<Turned, ApiError> {
        turn.model = Some(direct::MODEL.to_owned());
        turn.items = vec![Item {
            name: Some(MessageId::mint().to_string()),
            speaker: Speaker::User,
            parts: vec![direct::part(tool, arguments)],
            metadata: None,
        }];
        self.bring(turn).await
    }

    async fn bring(self: &Arc<Self>, turn: Turn) -> Result<Turned, ApiError> {
        let turn = Arc::new(turn);
        self.starting(STARTS, move |rt, mut desk| {
            let turn = turn.clone();
            Box::new(move |tx| {
                Box::pin(async move {
                    let turned = rt.take_turn(tx, &turn, &mut desk).await?;
                    failpoint::pass("start.before_commit")?;
                    Ok((turned, desk.starts))
                })
            })
        })
        .await
    }

    async fn take_turn(
        self: &Arc<Self>,
        tx: &mut Tx<'_>,
        turn: &Turn,
        desk: &mut Desk,
    ) -> Result<Turned, Refused> {
        let place = self.find_place(tx, turn).await?;
        let tools = match turn.tools.is_empty() {
            true => None,
            false => Some(self.join_client_tools(tx, &turn.by.tenant, &place.agent, &turn.tools).await?),
        };
        let aligned = align::align(tx, turn, &place).await?;
        let taken = replies::take(tx, turn, &place, desk).await?;
        let job = speak::Job { turn, place, tools, taken };
        if aligned.fork.is_some() || !aligned.fresh.is_empty() {
            return self.speak(tx, job, aligned, desk).await;
        }
        self.attach(tx, job, aligned, desk).await
    }
}
