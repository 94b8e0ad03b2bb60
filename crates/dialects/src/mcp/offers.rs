//! What an agent offers beside tools: prompts of its configuration, and
//! documents as resources.

use serde_json::{Map, Value, json};
use toolyard_protocol::agent::ServedPrompt;
use toolyard_protocol::{DocumentId, Timestamp};

use super::command::Fault;
use super::tools::LISTED;

/// Where documents are, for MCP clients.
const ROOT: &str = "toolyard://knowledge/";

pub fn prompt_list(prompts: &[ServedPrompt]) -> Value {
    let listed = |prompt: &ServedPrompt| {
        let mut out = json!({ "name": prompt.name });
        for (field, text) in [("title", &prompt.title), ("description", &prompt.description)] {
            if let Some(text) = text {
                out[field] = json!(text);
            }
        }
        if let Some(arguments) = &prompt.arguments {
            out["arguments"] = json!(arguments);
        }
        out
    };
    let prompts: Vec<Value> = prompts.iter().map(listed).collect();
    json!({ "prompts": prompts, "ttlMs": LISTED, "cacheScope": "private" })
}

/// A prompt with its arguments in place.
pub fn prompt(prompts: &[ServedPrompt], name: &str, given: &Map<String, Value>) -> Result<Value, Fault> {
    let shown: String = name.chars().take(128).collect();
    let found = prompts.iter().find(|prompt| prompt.name == name);
    let found = found.ok_or_else(|| Fault::params(format!("Unknown prompt: {shown}")))?;
    let text = found.fill(given).map_err(Fault::params)?;
    let mut out = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] });
    if let Some(description) = &found.description {
        out["description"] = json!(description);
    }
    Ok(out)
}

/// A document as a list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDocument {
    pub id: DocumentId,
    pub title: String,
    /// As it was uploaded.
    pub media_type: String,
    pub bytes: i64,
    pub updated_at: Timestamp,
}

impl ListedDocument {
    /// What is read is the text of a document, whatever it was uploaded as.
    fn kind(&self) -> &str {
        let plain = self.media_type.split(';').next().unwrap_or_default().trim();
        let kept = plain.starts_with("text/") && plain != "text/html";
        if kept { plain } else { "text/plain" }
    }
}

pub fn resource_list(documents: &[ListedDocument], next: Option<String>) -> Value {
    let listed = documents.iter().map(|document| {
        json!({
            "uri": format!("{ROOT}{}", document.id),
            "name": document.title,
            "mimeType": document.kind(),
            "size": document.bytes,
            "annotations": { "lastModified": document.updated_at },
        })
    });
    let resources: Vec<Value> = listed.collect();
    let mut out = json!({ "resources": resources, "ttlMs": LISTED, "cacheScope": "private" });
    if let Some(next) = next {
        out["nextCursor"] = json!(next);
    }
    out
}

/// The document that an address names.
pub fn document_of(uri: &str) -> Option<DocumentId> {
    DocumentId::parse(uri.strip_prefix(ROOT)?).ok()
}

pub fn resource(document: &ListedDocument, text: &str) -> Value {
    let uri = format!("{ROOT}{}", document.id);
    json!({
        "contents": [{ "uri": uri, "mimeType": document.kind(), "text": text }],
        "ttlMs": LISTED,
        "cacheScope": "private",
    })
}
