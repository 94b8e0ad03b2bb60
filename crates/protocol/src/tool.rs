//! A tool as a run knows it: its contract, where it executes and who may see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::agent::execution::{BasicMode, Execution};
use crate::hash::Hash;
use crate::name::ToolName;
use crate::risk::Risk;

/// Where a call executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// An executor of this gateway.
    Gateway,
    /// An MCP server.
    Mcp,
    /// Another agent, here or far away.
    Agent,
    /// A program that holds a key: a browser, a laptop, a robot.
    Client,
    /// As `Client`, named `external` on the wire by its configuration.
    External,
}

impl Place {
    /// The name callers know (`executionTarget`).
    pub const fn target(self) -> &'static str {
        match self {
            Self::Gateway | Self::Mcp | Self::Agent => "server",
            Self::Client => "client",
            Self::External => "external",
        }
    }
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::External)
    }
}

/// Whether a public key sees a tool's input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Visibility {
    Private,
    Public,
}

/// What the owner of a tool says about permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    Allow,
    Ask,
    Deny,
}

/// Who may answer a tool's waits, as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Answerers {
    #[default]
    Trigger,
    Members,
    Admin,
}

/// What happens to a client call when no client is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum IfAbsent {
    #[default]
    Wait,
    Fail,
}

/// A tool of a run. Stored in a toolset by hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct ToolSpec {
    pub name: ToolName,
    pub description: String,
    pub input_schema: Value,
    pub execution: Execution,
    pub place: Place,
    pub risk: Risk,
    pub visibility: Visibility,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerers: Option<Answerers>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub expires_ms: Option<u64>,
    #[serde(default)]
    pub if_absent: IfAbsent,
    /// A repeat with the same call id has no second effect.
    #[serde(default)]
    pub idempotent: bool,
    /// Its results do not taint the run.
    #[serde(default)]
    pub trusted: bool,
    /// The MCP service behind a client tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The version of its contract, as its owner counts (row L29).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A request brought it, under this name; it is not the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<ToolName>,
}

impl ToolSpec {
    /// The name that permissions and selections use: `<service>:<tool>`, or
    /// the tool's own name.
    pub fn key(&self) -> String {
        match (&self.execution, &self.service_id) {
            (Execution::Mcp(call), _) => format!("{}:{}", call.server, call.tool),
            (Execution::Plugin(call), _) => format!("{}:{}", call.plugin, self.name),
            (_, Some(service)) => format!("{service}:{}", self.name),
            (_, None) => self.name.to_string(),
        }
    }
    /// Hash of what a permission was given for. A change voids it.
    pub fn fingerprint(&self) -> Hash {
        // What it does counts as much as what it says: another address is another tool.
        Hash::of_json(&serde_json::json!([
            self.name,
            self.description,
            self.input_schema,
            self.place,
            self.service_id,
            self.execution,
            self.version
        ]))
    }
    /// A crash in the middle of the call is mended by running it again: its
    /// effect is our own commit, or it has none, or its owner says so.
    pub fn repeats_safely(&self) -> bool {
        match &self.execution {
            Execution::Basic(_) | Execution::Waiting(_) | Execution::Compute(_) => true,
            Execution::Prebuilt(_) | Execution::AiAgent(_) => true,
            // Code that reaches nothing has no effect.
            Execution::Plugin(call) => !call.fetches || self.idempotent,
            Execution::Request(_)
            | Execution::ImageGenerator(_)
            | Execution::Recorder(_)
            | Execution::Mcp(_)
            | Execution::RemoteAgent(_) => self.idempotent,
        }
    }
    /// Results come from outside the gateway's own trust.
    pub fn taints(&self) -> bool {
        let foreign = match &self.execution {
            Execution::Request(_) | Execution::Mcp(_) | Execution::RemoteAgent(_) => true,
            Execution::Plugin(call) => call.fetches,
            // Documents are written by whoever wrote them.
            Execution::Prebuilt(prebuilt) => {
                matches!(prebuilt.action.as_str(), "searchKnowledge" | "queryKnowledge")
            }
            Execution::Basic(_)
            | Execution::Waiting(_)
            | Execution::Compute(_)
            | Execution::AiAgent(_)
            | Execution::ImageGenerator(_)
            | Execution::Recorder(_) => matches!(self.place, Place::Mcp | Place::Agent),
        };
        foreign && !self.trusted
    }
    /// A client runs it; the gateway only waits.
    pub fn is_client(&self) -> bool {
        matches!(&self.execution, Execution::Basic(basic) if basic.mode == BasicMode::NoExecution)
    }
}

/// The tools of a run, in the order the model sees them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(transparent)]
pub struct Toolset(pub Vec<ToolSpec>);

impl Toolset {
    pub fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.0.iter().find(|t| t.name.as_str() == name)
    }
    pub fn hash(&self) -> Hash {
        Hash::of(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }
}
