//! The messages of `/api/clients/connect`: one JSON object per WebSocket text
//! message, told apart by `type`. Unknown fields are passed over, so that a
//! newer program talks to an older gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolyard_protocol::wait::Wait;
use toolyard_protocol::{
    ApiError, CallId, ClientId, ConnectionId, ErrorCode, OutcomeKind, RunId, SpaceId, Timestamp, ToolName,
    Viewer, WaitId,
};
use ts_rs::TS;

use super::view::wait_view;

/// What a program says.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema, TS)]
#[serde(tag = "type")]
pub enum ClientMessage {
    /// Who it is and which tools it executes. The first message, once.
    #[serde(rename = "client.register", alias = "register")]
    Register(RegisterClient),
    /// A call is done. The answer is `tool.result.accepted` or `error`.
    #[serde(rename = "tool.result")]
    Result(CallResults),
    /// News of a call that takes long. It also renews the claim.
    #[serde(rename = "tool.progress")]
    Progress(CallProgress),
    /// Still at it: renews the claim without telling anybody.
    #[serde(rename = "tool.claim")]
    Claim(ClaimCall),
    /// Are you there. The answer is `pong`.
    #[serde(rename = "ping")]
    Ping(Ping),
}

/// `client.register`
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct RegisterClient {
    /// Its own stable id; missing gets a new one. A second connection with the
    /// same id replaces the first.
    #[serde(default, alias = "clientKey")]
    pub client_id: Option<ClientId>,
    /// `browser`, `node`, `robot`, …
    #[serde(default)]
    pub client_type: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub capabilities: Option<Value>,
    /// The tools that it executes, by name.
    #[serde(default)]
    pub tools: Vec<HeldTool>,
    /// Keys, for programs that cannot set headers, as pages in a browser.
    #[serde(default)]
    pub auth: Option<SocketAuth>,
}

/// A tool by its name, or by anything that has one.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema, TS)]
#[serde(untagged)]
pub enum HeldTool {
    Name(ToolName),
    Named { name: ToolName },
}

impl HeldTool {
    pub fn into_name(self) -> ToolName {
        match self {
            Self::Name(name) | Self::Named { name } => name,
        }
    }
}

/// `secretKey`, or `publicKey` and `token`.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct SocketAuth {
    #[serde(default)]
    pub secret_key: Option<String>,
    #[serde(default)]
    pub public_key: Option<String>,
    /// The user's JWT.
    #[serde(default)]
    pub token: Option<String>,
}

/// Keys are not printed.
impl std::fmt::Debug for SocketAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SocketAuth")
    }
}

/// `tool.result`: one result, or several of one run, which are taken together.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct CallResults {
    pub run_id: RunId,
    #[serde(flatten)]
    pub one: CallResult,
    #[serde(default)]
    pub results: Option<Vec<CallResult>>,
}

/// How a call went. `null` is a result too, so absent and `null` differ.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct CallResult {
    /// The call, by either of its documented names.
    #[serde(default, alias = "callId")]
    pub tool_call_id: Option<CallId>,
    /// What the tool answered.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Value>,
    /// Why it has no answer, instead of `result`.
    #[serde(default)]
    pub error: Option<String>,
}

fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(d).map(Some)
}

/// `tool.progress`, and the body of `POST /api/runs/{run}/tool-progress`
/// beside its ids. At least one of the three is there.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct CallProgress {
    /// On a socket always there; over HTTP the path has it.
    #[serde(default)]
    pub run_id: Option<RunId>,
    #[serde(alias = "callId")]
    pub tool_call_id: CallId,
    /// From 0 to 1.
    #[serde(default)]
    pub fraction: Option<f64>,
    /// For people.
    #[serde(default)]
    pub message: Option<String>,
    /// What is known of the result so far.
    #[serde(default)]
    pub preliminary: Option<Value>,
    /// Which program works on it (HTTP): its claim is renewed.
    #[serde(default)]
    pub client_id: Option<ClientId>,
}

/// `tool.claim`
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCall {
    pub run_id: RunId,
    #[serde(alias = "callId")]
    pub tool_call_id: CallId,
}

/// `ping`
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct Ping {
    /// Comes back with the `pong`.
    #[serde(default)]
    pub id: Option<Value>,
}

/// What the gateway says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(tag = "type")]
pub enum GatewayMessage {
    #[serde(rename = "client.registered")]
    Registered(Registered),
    /// Execute this tool and answer with `tool.result`.
    #[serde(rename = "tool.call")]
    Call(Box<SocketCall>),
    /// A call that this program holds ended without it: stop.
    #[serde(rename = "tool.ended")]
    Ended(CallEnded),
    #[serde(rename = "tool.result.accepted")]
    ResultAccepted(ResultAccepted),
    #[serde(rename = "tool.progress.accepted")]
    ProgressAccepted(ProgressAccepted),
    #[serde(rename = "tool.claimed")]
    Claimed(CallClaimed),
    #[serde(rename = "pong")]
    Pong(Pong),
    #[serde(rename = "error")]
    Error(SocketError),
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    pub client_id: ClientId,
    pub connection_id: ConnectionId,
    /// How many tools it holds.
    pub tools: u32,
    /// How often the gateway pings.
    pub ping_seconds: u32,
    /// How long the connection may be silent.
    pub silence_seconds: u32,
}

/// A call for this program alone, until the claim lapses.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct SocketCall {
    pub run_id: RunId,
    pub root_run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart_space_id: Option<SpaceId>,
    pub wait_id: WaitId,
    pub tool_call_id: CallId,
    pub tool_name: ToolName,
    /// The arguments, if this key may see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    pub opened_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub claimed_until: Timestamp,
}

impl SocketCall {
    /// A wait as the viewer may see it.
    pub fn new(
        wait: &Wait,
        space: Option<&SpaceId>,
        args: Option<&Value>,
        viewer: &Viewer,
        claimed_until: Timestamp,
    ) -> Self {
        let view = wait_view(wait, space, args, viewer);
        Self {
            run_id: view.run_id,
            root_run_id: view.root_run_id,
            smart_space_id: view.smart_space_id,
            wait_id: view.id,
            tool_call_id: view.tool_call_id,
            tool_name: view.tool_name,
            input: view.payload,
            opened_at: view.opened_at,
            expires_at: view.expires_at,
            claimed_until,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct CallEnded {
    pub run_id: RunId,
    pub tool_call_id: CallId,
    pub tool_name: ToolName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeKind>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct ResultAccepted {
    pub run_id: RunId,
    pub results: Vec<TakenResult>,
}

/// What became of one result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct TakenResult {
    pub tool_call_id: CallId,
    pub status: TakenStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum TakenStatus {
    Accepted,
    /// The same result came before.
    Repeated,
    /// The call has ended with another one.
    Late,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct ProgressAccepted {
    pub run_id: RunId,
    pub tool_call_id: CallId,
    /// How often the call may tell more.
    #[ts(type = "number")]
    pub left: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub struct CallClaimed {
    pub run_id: RunId,
    pub tool_call_id: CallId,
    pub claimed_until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct Pong {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
}

/// A message that changed nothing, and why.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct SocketError {
    pub code: ErrorCode,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
}

impl SocketError {
    pub fn new(error: ApiError, run_id: Option<RunId>, tool_call_id: Option<CallId>) -> Self {
        let ApiError { code, message, limit } = error;
        Self { code, message, limit, run_id, tool_call_id }
    }
}
