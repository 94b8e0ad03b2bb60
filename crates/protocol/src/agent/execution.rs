//! What a tool does when it is called, by execution type (rows G9 to G15).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

/// The execution of a tool, parsed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Execution {
    Basic(Basic),
    Request(Request),
    ImageGenerator(ImageGenerator),
    AiAgent(AiAgent),
    Waiting(Waiting),
    Compute(Compute),
    Prebuilt(Prebuilt),
    Recorder(Recorder),
    Mcp(McpCall),
    Plugin(PluginCall),
    RemoteAgent(RemoteAgent),
}

impl Execution {
    /// The name in configurations and error texts.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Basic(_) => "basic",
            Self::Request(_) => "request",
            Self::ImageGenerator(_) => "image-generator",
            Self::AiAgent(_) => "ai-agent",
            Self::Waiting(_) => "waiting",
            Self::Compute(_) => "compute",
            Self::Prebuilt(_) => "prebuilt",
            Self::Recorder(_) => "recorder",
            Self::Mcp(_) => "mcp",
            Self::Plugin(_) => "plugin",
            Self::RemoteAgent(_) => "remote-agent",
        }
    }
}

/// A tool without code of its own (row G9).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Basic {
    pub mode: BasicMode,
    /// What `static` answers beside `success: true`.
    pub output: Map<String, Value>,
    /// Replace `{{name}}` in `output` by the input's values.
    pub template: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "kebab-case")]
pub enum BasicMode {
    /// A client executes it and the run waits.
    #[default]
    NoExecution,
    Static,
    PassThrough,
}

/// An HTTP request (row G10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct Request {
    pub url: String,
    #[serde(default)]
    pub method: Method,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub query_params: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    Post,
    Put,
    Delete,
    Patch,
}

/// An image from a prompt (row G11).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct ImageGenerator {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    #[serde(rename = "baseURL", skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    pub include_context: bool,
}

/// Another agent (row G12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct AiAgent {
    /// An inline configuration, or the name of a stored agent.
    pub agent_config: Value,
    #[serde(default)]
    pub include_context: bool,
    #[serde(default)]
    pub stream: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout: Option<u64>,
}

/// A durable pause (row G13).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct Waiting {
    /// Milliseconds, unless the input says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A computation on the gateway (row G14).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct Compute {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

/// A tool of the gateway itself (row G15).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct Prebuilt {
    pub action: String,
    /// For `sendNotification`: where it may go. Missing means the inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<Channel>>,
}

/// A way to reach a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// The gateway's own list of notifications.
    Inbox,
    Email,
    Webhook,
}

impl Channel {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Email => "email",
            Self::Webhook => "webhook",
        }
    }
}

/// A tool for crash tests: each execution becomes one line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recorder {
    pub file: String,
}

/// An agent elsewhere that speaks A2A, by the address of its card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct RemoteAgent {
    /// Where the agent card is, or the address below which it is well known.
    pub card: String,
    /// Sent to the agent, and to no other host than the card's.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Milliseconds for the whole call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout: Option<u64>,
}

/// A tool of an MCP server. No configuration writes it: the server brings it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpCall {
    /// The server's name in the configuration.
    pub server: String,
    /// The server's own name of the tool.
    pub tool: String,
    /// Hash of all that the server says of it.
    pub pin: crate::hash::Hash,
}

impl McpCall {
    /// The gateway's own way in to a server that wants a login. No tool of a
    /// server has an empty name.
    pub fn login(server: &str) -> Self {
        let pin = crate::hash::Hash::of(b"login");
        Self { server: server.to_owned(), tool: String::new(), pin }
    }
    pub fn is_login(&self) -> bool {
        self.tool.is_empty()
    }
}

/// A tool of an installed plugin. No configuration writes it: the plugin brings it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginCall {
    pub plugin: crate::name::PluginId,
    pub version: crate::manifest::PluginVersion,
    /// Hash of what was signed. Another plugin of that name is another one.
    pub pin: crate::hash::Hash,
    /// It may reach hosts outside.
    pub fetches: bool,
}
