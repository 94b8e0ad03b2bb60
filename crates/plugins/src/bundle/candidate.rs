//! A document that is well-formed. Nothing says yet that it may run.

use std::collections::HashSet;

use serde_json::Value;
use toolyard_protocol::limits::{
    self, LABEL_CHARS, PLUGIN_CODE_BYTES, PLUGIN_HOSTS, PLUGIN_SIGNATURES, PLUGIN_TEXT_CHARS, PLUGIN_TOOLS,
};
use toolyard_protocol::manifest::{PluginDocument, PluginVersion};
use toolyard_protocol::{Hash, PluginId};
use toolyard_schema::{Limits, ToolSchema};

use super::{canonical, strict};

/// Why bytes are not a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// Row H49.
    #[error("Invalid plugin: missing required fields")]
    Missing,
    #[error("Invalid plugin: {0}")]
    Malformed(String),
}

impl BadDocument {
    fn because(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}

/// A well-formed document, with the bytes that a signature must be over.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(super) value: Value,
    pub(super) document: PluginDocument,
    pub(super) signed_bytes: Vec<u8>,
    pub(super) content_hash: Hash,
}

impl Candidate {
    /// Parses once; every later question is asked of what came out here.
    pub fn read(text: &[u8]) -> Result<Self, BadDocument> {
        let candidate = Self::read_again(text)?;
        for (i, tool) in candidate.document.tools.iter().enumerate() {
            ToolSchema::compile(&tool.parameters, &Limits::request())
                .map_err(|e| BadDocument::because(format!("tools[{i}].parameters: {e}")))?;
        }
        Ok(candidate)
    }

    /// The same without compiling the schemas, for a document that was read
    /// before: whoever offers the tools compiles them anyway.
    pub fn read_again(text: &[u8]) -> Result<Self, BadDocument> {
        let value = strict::read(text).map_err(BadDocument::Malformed)?;
        Self::of(value)
    }

    pub(super) fn of(value: Value) -> Result<Self, BadDocument> {
        if !has_the_basics(&value) {
            return Err(BadDocument::Missing);
        }
        let document: PluginDocument = serde_path_to_error::deserialize(&value).map_err(|e| {
            let path = e.path().to_string();
            BadDocument::because(format!("{path}: {}", e.into_inner()))
        })?;
        check(&document)?;
        let signed_bytes = canonical::signed_bytes(&value).map_err(BadDocument::Malformed)?;
        let content_hash = canonical::content_hash(&value).map_err(BadDocument::Malformed)?;
        Ok(Self { value, document, signed_bytes, content_hash })
    }

    pub fn id(&self) -> &PluginId {
        &self.document.id
    }
    pub fn version(&self) -> &PluginVersion {
        &self.document.version
    }
    pub fn document(&self) -> &PluginDocument {
        &self.document
    }
    /// Of all that is signed: two documents of one hash do the same.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.signed_bytes)
    }
    /// The document as text, as it is kept and handed on.
    pub fn text(&self) -> String {
        self.value.to_string()
    }
    pub fn is_signed(&self) -> bool {
        self.document.signature.is_some() || !self.document.signatures.is_empty()
    }
}

/// Id, name and something to run (row H49).
fn has_the_basics(value: &Value) -> bool {
    let text = |field: &str| value.get(field).and_then(Value::as_str).is_some_and(|t| !t.trim().is_empty());
    let tools =
        value.get("tools").is_some_and(|tools| tools.as_array().is_none_or(|tools| !tools.is_empty()));
    let hooks = value.get("hooks").and_then(Value::as_object).is_some_and(|hooks| !hooks.is_empty());
    text("id") && text("name") && (tools || hooks)
}

fn check(document: &PluginDocument) -> Result<(), BadDocument> {
    let id = document.id.as_str();
    if crate::shipped::SHIPPED.contains(&id) {
        return Err(BadDocument::because(format!("id: {id} is a plugin of the gateway itself")));
    }
    short("name", &document.name, LABEL_CHARS)?;
    if let Some(text) = &document.description {
        short("description", text, PLUGIN_TEXT_CHARS)?;
    }
    if let Some(url) = &document.source_url {
        short("sourceUrl", url, LABEL_CHARS)?;
        let fine = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !fine {
            return Err(BadDocument::because("sourceUrl: must start with https:// or http://"));
        }
    }
    few("tools", document.tools.len(), PLUGIN_TOOLS)?;
    few("permissions.fetch", document.permissions.fetch.len(), PLUGIN_HOSTS)?;
    few("signatures", document.signatures.len(), PLUGIN_SIGNATURES)?;
    for (name, code) in &document.hooks {
        small(&format!("hooks.{}", name.as_str()), code)?;
    }
    let mut names = HashSet::new();
    for (i, tool) in document.tools.iter().enumerate() {
        let at = |field: &str| format!("tools[{i}].{field}");
        if !names.insert(&tool.name) {
            return Err(BadDocument::because(format!("{}: {} stands twice", at("name"), tool.name)));
        }
        short(&at("description"), &tool.description, PLUGIN_TEXT_CHARS)?;
        small(&at("executorCode"), &tool.executor_code)?;
        let most = limits::SANDBOX_TIME_MAX_MS;
        if tool.timeout_ms.is_some_and(|ms| ms == 0 || ms > most) {
            return Err(BadDocument::because(format!("{}: must be 1 to {most}", at("timeoutMs"))));
        }
        if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(BadDocument::because(format!("{}: must be an object schema", at("parameters"))));
        }
    }
    Ok(())
}

/// A text that people read: not empty, not long, nothing that hides.
fn short(field: &str, text: &str, most: usize) -> Result<(), BadDocument> {
    if text.trim().is_empty() {
        return Err(BadDocument::because(format!("{field}: must not be empty")));
    }
    if text.chars().count() > most {
        return Err(BadDocument::because(format!("{field}: at most {most} characters")));
    }
    let hides = |c: char| (c.is_control() && !matches!(c, '\n' | '\t' | '\r')) || is_unseen(c);
    if text.chars().any(hides) {
        return Err(BadDocument::because(format!("{field}: has characters that nobody sees")));
    }
    Ok(())
}

/// Turns the direction of text, or has no width: a reader sees other words than a machine.
pub(super) const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn small(field: &str, code: &str) -> Result<(), BadDocument> {
    let most = PLUGIN_CODE_BYTES;
    if code.trim().is_empty() {
        return Err(BadDocument::because(format!("{field}: must not be empty")));
    }
    if code.len() > most {
        return Err(BadDocument::because(format!("{field}: at most {most} bytes of code")));
    }
    Ok(())
}

fn few(field: &str, count: usize, most: usize) -> Result<(), BadDocument> {
    if count > most {
        return Err(BadDocument::because(format!("{field}: at most {most}")));
    }
    Ok(())
}
