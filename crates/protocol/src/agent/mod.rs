//! An agent's configuration: JSON that people write, parsed into types once.
//!
//! Unknown fields are refused, because a misspelt `aproval` must not pass.
//! Every error names the path to the field.

pub mod execution;
mod mcp;
mod parse;
mod plugin;
mod prompt;
mod rule;
mod serving;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

pub use mcp::{
    McpSection, McpServer, McpTransport, is_mcp_server_name, mcp_server_key, mcp_server_name_rule,
};
pub use parse::{BadConfig, parse};
pub use plugin::PluginUse;
pub use prompt::{PromptArgument, ServedPrompt};
pub use rule::PermissionRule;
pub use serving::{AllTools, McpServing, ServedTools};

use crate::name::AgentName;
use crate::risk::Risk;
use crate::run::MessagePolicy;
use crate::tool::{Answerers, Approval, IfAbsent, Visibility};

/// The whole document (row G2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct AgentConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub agent: AgentSection,
    pub model: ModelSection,
    #[serde(default, rename = "loop")]
    pub loop_: LoopSection,
    #[serde(default)]
    pub tools: Vec<ToolConfig>,
    /// `"all"` adds every prebuilt tool that `tools` does not configure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prebuilt: Option<PrebuiltSwitch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpSection>,
    /// What MCP clients see of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServing>,
    /// Plugins of the gateway and installed ones, in the order in which their
    /// hooks are called. Missing means the citation plugin; `[]` means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<Vec<PluginUse>>,
    /// Tools that the vendor runs itself, such as its web search: a list by
    /// vendor name (`openai`, `anthropic`, `gemini`, `bedrock`), passed on as it is.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[ts(type = "{ [vendor in string]?: Array<object> }")]
    pub provider_tools: serde_json::Map<String, Value>,
    #[serde(default)]
    pub permissions: PermissionSection,
    /// Tools that requests bring.
    #[serde(default)]
    pub client_tools: ClientToolsSection,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSection>,
    /// What the model reads when a conversation grows long.
    #[serde(default)]
    pub context: ContextSection,
    /// The form that replies must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSection>,
    /// What runs may use up.
    #[serde(default)]
    pub budget: BudgetSection,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct AgentSection {
    pub name: AgentName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct ModelSection {
    /// A configured provider. Missing means that `name` is one of the
    /// gateway's models, or `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    pub name: String,
    /// Models that take over when this one is out of order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ModelApi>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Passed to the vendor as it is, by vendor name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_options: Option<serde_json::Map<String, Value>>,
}

/// What happens when the conversation outgrows the model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct ContextSection {
    /// Tokens that the model reads at most. Missing means what the gateway
    /// knows of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u32>,
    /// The last messages stay word for word. Missing means 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<u32>,
    pub when_full: WhenFull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// A summary takes the place of what is old.
    #[default]
    Summarize,
    /// What is old is left out.
    Drop,
    /// The run fails.
    Error,
}

/// Replies as JSON of a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct OutputSection {
    pub schema: Value,
    /// Missing means `reply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Vendors that can must refuse what the schema does not allow.
    #[serde(default = "yes")]
    pub strict: bool,
}

fn yes() -> bool {
    true
}

/// What one run may use, and what all runs of the agent may.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct BudgetSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub max_tokens: Option<u64>,
    /// Needs a price of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentBudget>,
}

/// The budget of all runs of an agent in one day or month (UTC).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct AgentBudget {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    pub per: Period,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    #[default]
    Day,
    Month,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum ModelApi {
    Default,
    Responses,
    Chat,
    Completion,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct Reasoning {
    pub enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_reasoning: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
}

/// Row G3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoopSection {
    pub max_steps: u32,
    pub tool_choice: ToolChoice,
    /// Tool failures in a row that stop the run.
    pub max_tool_failures: u32,
    /// What a new message does while a run is live.
    pub on_message: MessagePolicy,
    /// With more tools than this the model gets a tool to search them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_tools_above: Option<u32>,
    /// How plugins change what the model says.
    #[serde(skip_serializing_if = "Rewriting::is_correct")]
    pub rewriting: Rewriting,
}

/// How plugins that rewrite answers do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum Rewriting {
    /// The answer streams, and is corrected at its end.
    #[default]
    Correct,
    /// Nobody sees it before the plugins did.
    Hold,
}

impl Rewriting {
    fn is_correct(&self) -> bool {
        *self == Self::Correct
    }
}

impl Default for LoopSection {
    fn default() -> Self {
        Self {
            max_steps: 5,
            tool_choice: ToolChoice::Auto,
            max_tool_failures: 3,
            on_message: MessagePolicy::Queue,
            search_tools_above: None,
            rewriting: Rewriting::Correct,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum ToolChoice {
    #[default]
    Auto,
    Required,
    None,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct PermissionSection {
    /// The lowest risk that asks, for tools that reach outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_from: Option<Risk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answerers: Option<Answerers>,
    /// The first one that speaks of a call decides; a deny always does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PermissionRule>,
}

/// What a request's own tools may do to this agent (row H65).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct ClientToolsSection {
    /// When a request's tool has the name of one of the agent's. Missing means
    /// what the gateway's configuration says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<OnConflict>,
}

/// What becomes of a request's tool whose name is taken. The agent's own tool
/// is never shadowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The request is refused.
    #[default]
    Error,
    /// The tool is offered as `client_<name>`.
    Prefix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum PrebuiltSwitch {
    All,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct RuntimeSection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSection>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResponseSection {
    #[serde(rename = "type")]
    pub kind: ResponseType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseType {
    UiMessageStream,
}

/// A tool as written. [`parse`] turns it into a [`crate::tool::ToolSpec`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct ToolConfig {
    /// Optional for prebuilt tools: the action names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, alias = "parameters", skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// Missing means `basic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_type: Option<ExecutionType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_target: Option<ClientTarget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answerers: Option<Answerers>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub expires_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_absent: Option<IfAbsent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The version of its contract, as its owner counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Rows G9 to G15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionType {
    #[default]
    Basic,
    Request,
    ImageGenerator,
    AiAgent,
    Waiting,
    Compute,
    Prebuilt,
    /// An agent elsewhere, over A2A.
    RemoteAgent,
    /// Exists only in gateways built to be killed: it writes each execution to a
    /// file. It is no part of what is published.
    #[schemars(skip)]
    #[ts(skip)]
    Recorder,
}

/// Where a client tool runs, as its configuration calls it (row G36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum ClientTarget {
    #[default]
    Client,
    External,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct Display {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DisplayMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_input: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_output: Option<bool>,
    #[serde(rename = "customUI", skip_serializing_if = "Option::is_none")]
    pub custom_ui: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase")]
pub enum DisplayMode {
    Full,
    Minimal,
    Hidden,
}
