//! A plugin as one JSON document: what people write, curators sign and
//! gateways run.
//!
//! The form is flat: who signed stands beside what was signed. These types say
//! the form only. Whether a document may be trusted is said by the `plugins`
//! crate, which alone makes something of it that runs.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::name::{CuratorId, PluginId, ToolName};
use crate::risk::Risk;
use crate::time::Timestamp;

/// The whole document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct PluginDocument {
    pub id: PluginId,
    pub name: String,
    pub version: PluginVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub tools: Vec<PluginTool>,
    /// Code by the point of the loop where it runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<HookName, String>,
    /// A hook that fails stops the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// A hook may change the text of an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewrites: bool,
    #[serde(default, skip_serializing_if = "PluginPermissions::is_empty")]
    pub permissions: PluginPermissions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<PluginRequires>,
    /// After this moment it must not run any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whose signature `signature` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curator_id: Option<CuratorId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_url: Option<String>,
    /// SHA-256 of the canonical JSON of `tools`, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Of further curators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<PluginSignature>,
    /// A browser's note of when it took the plugin. Nobody signs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<String>,
}

/// A tool and its code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct PluginTool {
    pub name: ToolName,
    pub description: String,
    /// A JSON Schema of an object.
    pub parameters: Value,
    /// The body of an async function of `args`.
    pub executor_code: String,
    /// A name that sounds riskier counts more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(type = "number", optional)]
    pub timeout_ms: Option<u64>,
    /// A repeat with the same arguments has no second effect outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
}

/// A point of the loop.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS,
)]
#[serde(rename_all = "camelCase")]
pub enum HookName {
    Initialize,
    OnUserMessage,
    OnTextChunk,
    OnTextEnd,
    OnBeforeToolCall,
    OnAfterToolCall,
    OnAgentResponse,
    OnError,
    Destroy,
}

impl HookName {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::OnUserMessage => "onUserMessage",
            Self::OnTextChunk => "onTextChunk",
            Self::OnTextEnd => "onTextEnd",
            Self::OnBeforeToolCall => "onBeforeToolCall",
            Self::OnAfterToolCall => "onAfterToolCall",
            Self::OnAgentResponse => "onAgentResponse",
            Self::OnError => "onError",
            Self::Destroy => "destroy",
        }
    }
}

/// What the code asks for beyond computing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PluginPermissions {
    /// Hosts that `fetch` may reach: `api.example.com` or `api.example.com:8443`.
    pub fetch: Vec<FetchHost>,
}

impl PluginPermissions {
    pub fn is_empty(&self) -> bool {
        self.fetch.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginRequires {
    /// Versions of the gateway that it works with.
    pub toolyard: VersionRange,
}

/// One more signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginSignature {
    pub curator_id: CuratorId,
    /// Base64.
    pub signature: String,
}

/// Why a text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    #[error("{0:?} is not a version such as 1.2.0")]
    Version(String),
    #[error("{0:?} is not a range of versions such as ^1.2 or >=1, <3")]
    Range(String),
    #[error("{0:?} is not a host such as api.example.com or api.example.com:8443, in small letters")]
    Host(String),
}

macro_rules! text_form {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = BadManifest;
            fn try_from(text: String) -> Result<Self, BadManifest> {
                Self::parse(&text)
            }
        }
        impl From<$name> for String {
            fn from(it: $name) -> Self {
                it.to_string()
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// A plugin's version, with the order of semver. What follows a `+` would make
/// two versions of equal rank, so there is none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string")]
pub struct PluginVersion(#[schemars(with = "String")] semver::Version);

impl PluginVersion {
    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        let version = semver::Version::parse(text).ok().filter(|v| v.build.is_empty() && text.len() <= 64);
        version.map(Self).ok_or_else(|| BadManifest::Version(shown(text)))
    }
}

impl fmt::Display for PluginVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
text_form!(PluginVersion);

/// Versions that will do.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string")]
pub struct VersionRange(#[schemars(with = "String")] semver::VersionReq);

impl VersionRange {
    /// A bare version means that very one.
    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        let bad = || BadManifest::Range(shown(text));
        if text.len() > 128 {
            return Err(bad());
        }
        let exact = semver::Version::parse(text).is_ok();
        let text = if exact { format!("={text}") } else { text.to_owned() };
        semver::VersionReq::parse(&text).map(Self).map_err(|_| bad())
    }
    pub fn has(&self, version: &PluginVersion) -> bool {
        self.0.matches(&version.0)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
text_form!(VersionRange);

/// A host by its name or address, with a port if it is not the usual one.
/// There are no patterns: who signs sees every host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(try_from = "String", into = "String")]
#[ts(type = "string")]
pub struct FetchHost(String);

impl FetchHost {
    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let named = !host.is_empty()
            && host.len() <= 253
            && host.chars().all(letter)
            && host.split('.').all(|part| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-'));
        let number = |port: &str| {
            !port.starts_with('0') && port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        if !named || !port.is_none_or(number) {
            return Err(BadManifest::Host(shown(text)));
        }
        Ok(Self(text.to_owned()))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FetchHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
text_form!(FetchHost);
