//! What MCP clients see of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::parse::BadConfig;
use super::prompt::{self, ServedPrompt};
use crate::limits;

/// The agent as an MCP server, at `/mcp/{agent}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct McpServing {
    /// The tool `ask_<agent>`. Missing means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<bool>,
    /// Which of the agent's own tools clients may call without its model:
    /// `"all"`, or their names (`<service>:<tool>` for those of MCP servers).
    /// Missing means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ServedTools>,
    /// Prompts that clients offer to their users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<ServedPrompt>>,
    /// The documents that the caller may read (`/api/knowledge`), as
    /// resources. Missing means no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(untagged)]
pub enum ServedTools {
    All(AllTools),
    Named(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "lowercase")]
pub enum AllTools {
    All,
}

impl McpServing {
    /// Is there a tool that asks the agent?
    pub fn asks(&self) -> bool {
        self.ask.unwrap_or(true)
    }

    pub fn prompts(&self) -> &[ServedPrompt] {
        self.prompts.as_deref().unwrap_or_default()
    }

    /// Are documents resources?
    pub fn shows_knowledge(&self) -> bool {
        self.knowledge.unwrap_or(false)
    }

    /// May clients call the tool of this name, or of this key?
    pub fn serves(&self, name: &str, key: &str) -> bool {
        match &self.tools {
            None => false,
            Some(ServedTools::All(_)) => true,
            Some(ServedTools::Named(names)) => names.iter().any(|one| one == name || one == key),
        }
    }
}

pub(super) fn check(serving: &McpServing) -> Result<(), BadConfig> {
    prompt::check(serving.prompts())?;
    let Some(ServedTools::Named(names)) = &serving.tools else { return Ok(()) };
    if names.len() > limits::MCP_TOOLS {
        let why = format!("at most {} tools are allowed", limits::MCP_TOOLS);
        return Err(BadConfig::at("mcpServer.tools", why));
    }
    match names.iter().position(|name| name.trim().is_empty()) {
        Some(i) => Err(BadConfig::at(format!("mcpServer.tools[{i}]"), "must not be empty")),
        None => Ok(()),
    }
}
