//! Rows of the store as REST answers show them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_protocol::message::{Message, Speaker, text_of};
use toolyard_protocol::run::{PauseReason, RunStatus};
use toolyard_protocol::visible::{visible_message, visible_payload};
use toolyard_protocol::wait::{Wait, WaitKind, may_answer};
use toolyard_protocol::{
    AgentName, BranchId, CallId, ClientId, EntityId, Hash, MessageId, RunId, SpaceId, Timestamp, ToolName,
    Viewer, WaitId,
};
use ts_rs::TS;

use super::frame::{Frame, Head};
use super::parts::{PartView, is_open, part_views};
use super::wire::SpaceMessage;

/// A message of a space.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct MessageView {
    pub id: MessageId,
    pub smart_space_id: SpaceId,
    #[ts(type = "number")]
    pub seq: i64,
    pub role: Speaker,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<EntityId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub branch_id: BranchId,
    /// The text of all text parts.
    pub content: String,
    #[schemars(with = "Vec<PartView>")]
    #[ts(as = "Vec<PartView>")]
    pub parts: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    pub created_at: Timestamp,
}

/// A message as this viewer may see it.
pub fn message_view(message: &Message, viewer: &Viewer) -> MessageView {
    let seen = visible_message(viewer, message);
    let Message {
        id,
        space,
        seq,
        speaker,
        entity,
        run,
        branch,
        parts,
        show_reasoning: _,
        metadata,
        created_at,
    } = seen.as_ref();
    // A part is plain data with text keys: serializing it cannot fail.
    let views = part_views(parts, viewer).iter().filter_map(|part| serde_json::to_value(part).ok()).collect();
    MessageView {
        id: id.clone(),
        smart_space_id: space.clone(),
        seq: *seq,
        role: *speaker,
        entity_id: entity.clone(),
        run_id: run.clone(),
        branch_id: branch.clone(),
        content: text_of(parts),
        parts: views,
        metadata: metadata.clone(),
        created_at: *created_at,
    }
}

/// `smartSpace.message`: a message on its space's stream. Its id is its place.
pub fn message_frame(message: &Message, viewer: &Viewer) -> Frame {
    let head = Head {
        run: message.run.as_ref(),
        ts: Some(message.created_at),
        space: Some(&message.space),
        seq: None,
    };
    let body = SpaceMessage { message: message_view(message, viewer) };
    let room = body.message.content.len() * 2;
    Frame::write(Some(message.seq), "smartSpace.message", head, &body, room)
}

/// What a run's row says, for [`run_view`].
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    pub id: RunId,
    pub status: RunStatus,
    pub reason: Option<PauseReason>,
    pub agent: AgentName,
    /// Secret.
    pub agent_version: Option<Hash>,
    pub space: Option<SpaceId>,
    pub agent_entity: Option<EntityId>,
    pub triggered_by: Option<EntityId>,
    pub parent: Option<RunId>,
    pub root: RunId,
    /// The code of a failed run.
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_seq: i64,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct RunView {
    pub id: RunId,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<PauseReason>,
    pub agent_name: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart_space_id: Option<SpaceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_entity_id: Option<EntityId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_by_id: Option<EntityId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    pub root_run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[ts(type = "number")]
    pub last_seq: i64,
}

/// A run as this viewer may see it. The agent's version is for secret keys.
pub fn run_view(facts: RunFacts, viewer: &Viewer) -> RunView {
    RunView {
        id: facts.id,
        status: facts.status,
        reason: facts.reason,
        agent_name: facts.agent,
        agent_version: facts.agent_version.filter(|_| viewer.sees_all()),
        smart_space_id: facts.space,
        agent_entity_id: facts.agent_entity,
        triggered_by_id: facts.triggered_by,
        parent_run_id: facts.parent,
        root_run_id: facts.root,
        error_code: facts.error,
        created_at: facts.created_at,
        updated_at: facts.updated_at,
        last_seq: facts.last_seq,
    }
}

/// An open row of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct WaitView {
    pub id: WaitId,
    pub run_id: RunId,
    pub root_run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart_space_id: Option<SpaceId>,
    pub kind: WaitKind,
    pub tool_call_id: CallId,
    pub tool_name: ToolName,
    pub opened_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<ClientId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<Timestamp>,
    /// This key may answer.
    pub may_answer: bool,
    /// The arguments or the prompt: for those who may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// A wait as this viewer may see it. `payload` is what the log says is asked:
/// the prompt of `Asked`, or the arguments of a client's call. Those follow
/// the tool as well, as they do on the stream.
pub fn wait_view(wait: &Wait, space: Option<&SpaceId>, payload: Option<&Value>, viewer: &Viewer) -> WaitView {
    let shown = match wait.kind {
        WaitKind::Client => is_open(viewer, wait.visibility),
        WaitKind::Approval | WaitKind::Input | WaitKind::Credential => true,
        WaitKind::Child | WaitKind::Timer => viewer.sees_all(),
    };
    let payload = payload.filter(|_| shown).and_then(|payload| visible_payload(viewer, &wait.rule, payload));
    WaitView {
        id: wait.id.clone(),
        run_id: wait.run.clone(),
        root_run_id: wait.root.clone(),
        smart_space_id: space.cloned(),
        kind: wait.kind,
        tool_call_id: wait.call.clone(),
        tool_name: wait.tool.clone(),
        opened_at: wait.opened_at,
        expires_at: wait.expires_at,
        claimed_by: wait.claim.as_ref().map(|(client, _)| client.clone()),
        claimed_until: wait.claim.as_ref().map(|(_, until)| *until),
        may_answer: may_answer(viewer, &wait.rule),
        payload: payload.cloned(),
    }
}
