//! What the worker must do, derived from the state. Effects have an identity:
//! the worker performs what is due and not in flight, and aborts what is in
//! flight and no longer due.

use std::sync::Arc;

use serde_json::Value;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::{CallId, Hash, Timestamp, ToolName};

use crate::call::Call;
use crate::state::Tools;

/// The identity of an effect. Two effects with one identity are one effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EffectId {
    Model { step: u32, attempt: u32 },
    Tool { call: CallId, round: u32 },
    Route { call: CallId, round: u32 },
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    CallModel {
        step: u32,
        attempt: u32,
        tools: Tools,
    },
    /// The executor runs this call; the call id is its idempotency key.
    RunTool {
        call: CallId,
        tool: ToolName,
        args: Arc<Value>,
        place: Place,
        risk: Risk,
        visibility: Visibility,
        idempotent: bool,
        untrusted: bool,
        expires: Option<Timestamp>,
        fingerprint: Option<Hash>,
        /// What an input or credential answer gave.
        provided: Option<Arc<Value>>,
        /// What the far side wants back with it.
        state: Option<Arc<Value>>,
        /// What the far side works on already: wait for its end.
        ticket: Option<Arc<Value>>,
        round: u32,
    },
    /// Check the arguments and decide again, then say [`crate::Input::Routed`].
    Route {
        call: CallId,
        tool: ToolName,
        args: Arc<Value>,
        visibility: Visibility,
        /// The arguments are an answerer's: they were never checked.
        edited: bool,
        /// Somebody allowed exactly these arguments.
        approved: bool,
        /// What an input or credential answer gave.
        provided: Option<Arc<Value>>,
        /// The tool as it was when somebody was asked.
        fingerprint: Option<Hash>,
        /// The round of the next question, if one must be asked.
        round: u32,
    },
}

impl Effect {
    pub fn id(&self) -> EffectId {
        match self {
            Self::CallModel { step, attempt, .. } => EffectId::Model { step: *step, attempt: *attempt },
            Self::RunTool { call, round, .. } => EffectId::Tool { call: call.clone(), round: *round },
            Self::Route { call, round, .. } => EffectId::Route { call: call.clone(), round: *round },
        }
    }
    pub(crate) fn run_tool(call: &Call) -> Self {
        Self::RunTool {
            call: call.id.clone(),
            tool: call.tool.clone(),
            args: Arc::clone(&call.args),
            place: call.place,
            risk: call.risk,
            visibility: call.visibility,
            idempotent: call.idempotent,
            untrusted: call.untrusted,
            expires: call.expires,
            fingerprint: call.fingerprint.clone(),
            provided: call.provided.clone(),
            state: call.state.clone(),
            ticket: call.ticket.clone(),
            round: call.round,
        }
    }
    pub(crate) fn route(call: &Call) -> Self {
        Self::Route {
            call: call.id.clone(),
            tool: call.tool.clone(),
            args: Arc::clone(&call.args),
            visibility: call.visibility,
            edited: call.edited,
            approved: call.approved,
            provided: call.provided.clone(),
            fingerprint: call.fingerprint.clone(),
            round: call.round,
        }
    }
}
