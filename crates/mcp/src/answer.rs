//! The result of a call, read leniently from the untouched JSON. Nothing is
//! lost: what is not understood is kept as it came.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One piece of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text {
        text: String,
        for_user_only: bool,
    },
    Image {
        mime: String,
        data: String,
    },
    Audio {
        mime: String,
        data: String,
    },
    /// A resource inside the result.
    Resource {
        uri: String,
        mime: Option<String>,
        text: Option<String>,
        blob: Option<String>,
    },
    /// A resource elsewhere. Never fetched by itself.
    Link {
        uri: String,
        name: Option<String>,
        mime: Option<String>,
        description: Option<String>,
    },
    /// A kind that this gateway does not know, or one that misses something.
    Unknown(Value),
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub blocks: Vec<Block>,
    /// `null` is a value; `None` means that there was none.
    pub structured: Option<Value>,
    pub is_error: bool,
    /// It had not the form of a result; all of it is in one unknown block.
    pub malformed: bool,
    /// The result as it came, for the log.
    pub raw: Value,
}

impl Answer {
    pub fn read(raw: Value) -> Self {
        let object = raw.as_object();
        let content = object.and_then(|object| object.get("content"));
        let structured = object.and_then(|object| object.get("structuredContent")).cloned();
        let (blocks, malformed) = match content {
            Some(Value::Array(blocks)) => (blocks.iter().map(Block::read).collect(), false),
            // Some servers answer one block, or bare text, where a list belongs.
            Some(Value::String(text)) => (vec![Block::text(text)], true),
            Some(block @ Value::Object(_)) => (vec![Block::read(block)], true),
            None if structured.is_some() => (Vec::new(), false),
            _ => (vec![Block::Unknown(raw.clone())], true),
        };
        let is_error =
            object.and_then(|object| object.get("isError")).and_then(Value::as_bool).unwrap_or(false);
        Self { blocks, structured, is_error, malformed, raw }
    }

    /// The text for the model. Servers repeat structured content as text, so
    /// the model gets one of them: the text if there is any.
    pub fn for_model(&self) -> String {
        let parts: Vec<String> = self.blocks.iter().filter_map(Block::for_model).collect();
        match (&self.structured, parts.is_empty()) {
            (Some(structured), true) => structured.to_string(),
            (_, _) => parts.join("\n"),
        }
    }
}

impl Block {
    fn text(text: &str) -> Self {
        Self::Text { text: text.to_owned(), for_user_only: false }
    }

    fn read(value: &Value) -> Self {
        Self::known(value).unwrap_or_else(|| Self::Unknown(value.clone()))
    }

    fn known(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let text = |key: &str| string(object, key);
        Some(match object.get("type")?.as_str()? {
            "text" => Self::Text { text: text("text")?, for_user_only: for_user_only(object) },
            "image" => Self::Image { mime: text("mimeType")?, data: text("data")? },
            "audio" => Self::Audio { mime: text("mimeType")?, data: text("data")? },
            "resource" => {
                let inner = object.get("resource")?.as_object()?;
                Self::Resource {
                    uri: string(inner, "uri")?,
                    mime: string(inner, "mimeType"),
                    text: string(inner, "text"),
                    blob: string(inner, "blob"),
                }
            }
            "resource_link" => Self::Link {
                uri: text("uri")?,
                name: text("name").or_else(|| text("title")),
                mime: text("mimeType"),
                description: text("description"),
            },
            _ => return None,
        })
    }

    fn for_model(&self) -> Option<String> {
        let size = |data: &str| data.len() / 4 * 3;
        Some(match self {
            Self::Text { for_user_only: true, .. } => return None,
            Self::Text { text, .. } => text.clone(),
            Self::Image { mime, data } => format!("[image {mime}, about {} bytes]", size(data)),
            Self::Audio { mime, data } => format!("[audio {mime}, about {} bytes]", size(data)),
            Self::Resource { uri, mime, text, blob } => {
                let mime = mime.as_deref().unwrap_or("unknown type");
                match (text, blob) {
                    (Some(text), _) => format!("[resource {uri}, {mime}]\n{text}"),
                    (None, Some(blob)) => format!("[resource {uri}, {mime}, about {} bytes]", size(blob)),
                    (None, None) => format!("[resource {uri}, {mime}]"),
                }
            }
            Self::Link { uri, name, mime, description } => {
                let parts = [name, mime, description].into_iter().flatten();
                let about: Vec<&str> = parts.map(String::as_str).collect();
                format!("[link {uri}] {}", about.join(", ")).trim_end().to_owned()
            }
            Self::Unknown(value) => value.to_string(),
        })
    }
}

fn string(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A block whose audience is the user alone.
fn for_user_only(object: &Map<String, Value>) -> bool {
    let audience = object.get("annotations").and_then(|all| all.get("audience")).and_then(Value::as_array);
    audience.is_some_and(|who| !who.is_empty() && who.iter().all(|one| one.as_str() == Some("user")))
}

/// A call that waits for input (2026-07-28). This is the whole state of it:
/// any process may go on with it later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Paused {
    /// The questions by the server's keys.
    #[serde(default)]
    pub requests: Map<String, Value>,
    /// The server's own note to itself. Secret: it goes back and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// How often this call has asked.
    pub round: u32,
}

impl Paused {
    /// The questions, readable.
    pub fn questions(&self) -> impl Iterator<Item = (&str, crate::Question)> {
        self.requests.iter().map(|(key, request)| (key.as_str(), crate::Question::read(request)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_lost_of_an_odd_result() {
        let raw = json!({ "content": [
            { "type": "text", "text": "a" },
            { "type": "text", "text": "for the user", "annotations": { "audience": ["user"] } },
            { "type": "text", "text": "b", "annotations": { "audience": ["robot"] } },
            { "type": "hologram", "x": 1 },
            { "type": "resource_link", "uri": "file:///x" },
            { "type": "image", "data": "AAAA" },
            7,
        ], "structuredContent": null, "isError": true, "extra": [1] });
        let answer = Answer::read(raw.clone());
        assert_eq!(answer.blocks.len(), 7);
        assert_eq!(
            (answer.is_error, answer.malformed, &answer.structured),
            (true, false, &Some(Value::Null))
        );
        assert_eq!(answer.raw, raw);
        assert_eq!(
            answer.for_model(),
            "a\nb\n{\"type\":\"hologram\",\"x\":1}\n[link file:///x]\n{\"data\":\"AAAA\",\"type\":\"image\"}\n7"
        );
    }

    #[test]
    fn the_model_gets_the_text_or_the_structure_and_not_both() {
        let both =
            json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }], "structuredContent": { "a": 1 } });
        assert_eq!(Answer::read(both).for_model(), "{\"a\":1}");
        assert_eq!(Answer::read(json!({ "structuredContent": [1, 2] })).for_model(), "[1,2]");
        let odd = Answer::read(json!("just text"));
        assert!(odd.malformed);
        assert_eq!(odd.for_model(), "\"just text\"");
    }
}
