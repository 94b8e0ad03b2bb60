//! Names that people choose: tools, agents, secrets. Parsed once, then trusted.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::limits;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("Invalid tool name {0:?}: use 1 to {max} letters, digits, hyphens and underscores", max = limits::TOOL_NAME)]
    Tool(String),
    #[error(
        "Invalid agent name {0:?}: start with a letter or digit, then up to 63 letters, digits, dots, hyphens and underscores"
    )]
    Agent(String),
    #[error("Agent name {0:?} is reserved: {list} cannot be agent names", list = RESERVED.join(", "))]
    Reserved(String),
    #[error(
        "Invalid secret name {0:?}: start with a letter or _, then up to {max} letters, digits and underscores in all",
        max = limits::SECRET_NAME
    )]
    Secret(String),
    #[error(
        "Invalid plugin id {0:?}: start with a small letter or digit, then up to {max} small letters, digits, dots, hyphens and underscores in all",
        max = limits::PLUGIN_ID
    )]
    Plugin(String),
    #[error("Plugin id {0:?} is reserved: {list} cannot be plugin ids", list = RESERVED_PLUGINS.join(", "))]
    ReservedPlugin(String),
    #[error(
        "Invalid curator id {0:?}: start with a small letter or digit, then up to {max} small letters, digits, dots, hyphens and underscores in all",
        max = limits::PLUGIN_ID
    )]
    Curator(String),
}

/// Words that are route segments beside plugins.
const RESERVED_PLUGINS: [&str; 4] = ["sign", "install", "revoke", "revocations"];

/// Words that are route segments of the A2A dialect.
const RESERVED: [&str; 4] = ["message", "tasks", "v1", "v0.3"];

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS)]
        #[serde(try_from = "String")]
        #[ts(type = "string")]
        pub struct $name(#[schemars(with = "String")] Arc<str>);
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::parse(&text)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A tool's name as its owner gave it. Vendors' aliases are made from it.
    ToolName
);
name!(
    /// An agent's name: part of URLs on several dialects.
    AgentName
);

name!(
    /// What `${secret.NAME}` and `${env.NAME}` call a secret.
    SecretName
);

name!(
    /// A plugin's id. Only small ASCII letters: two ids that look alike are alike.
    PluginId
);

name!(
    /// Who signs plugins.
    CuratorId
);

fn is_plain(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fine = |c: char| letter(c) || matches!(c, '.' | '_' | '-');
    text.starts_with(letter) && text.len() <= limits::PLUGIN_ID && text.chars().all(fine)
}

impl PluginId {
    pub fn parse(text: &str) -> Result<Self, BadName> {
        if !is_plain(text) {
            return Err(BadName::Plugin(shown(text)));
        }
        if RESERVED_PLUGINS.contains(&text) {
            return Err(BadName::ReservedPlugin(text.to_owned()));
        }
        Ok(Self(Arc::from(text)))
    }
}

impl CuratorId {
    pub fn parse(text: &str) -> Result<Self, BadName> {
        if !is_plain(text) {
            return Err(BadName::Curator(shown(text)));
        }
        Ok(Self(Arc::from(text)))
    }
}

impl SecretName {
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts || text.len() > limits::SECRET_NAME || !text.chars().all(fine) {
            return Err(BadName::Secret(shown(text)));
        }
        Ok(Self(Arc::from(text)))
    }
}

impl ToolName {
    /// Stands for the name of a call that the model gave none.
    pub fn unnamed() -> Self {
        Self(Arc::from("unnamed"))
    }
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if text.is_empty() || text.len() > limits::TOOL_NAME || !text.chars().all(fine) {
            return Err(BadName::Tool(shown(text)));
        }
        Ok(Self(Arc::from(text)))
    }
}

impl AgentName {
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts || text.len() > limits::AGENT_NAME || !text.chars().all(fine) {
            return Err(BadName::Agent(shown(text)));
        }
        if RESERVED.contains(&text) {
            return Err(BadName::Reserved(text.to_owned()));
        }
        Ok(Self(Arc::from(text)))
    }
}
