//! The spelling of each version, inwards.

use serde_json::{Map, Value};

use super::fault::{Fault, FaultKind};
use super::fields::Fields;
use super::model::{Content, Message, Part, Role, State};
use super::version::Version;
use super::write::state_word;

/// Parts of one message at most.
pub const MESSAGE_PARTS: usize = 256;

/// How strictly a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    Whole,
    /// Of seeds/001: `messageId` and `kind` may be missing.
    Literal,
}

pub(super) fn message(fields: &Fields<'_>, version: Version, how: Strictness) -> Result<Message, Fault> {
    let id = match (how, fields.some_text("messageId")?) {
        (Strictness::Whole, _) => fields.need_text("messageId")?.to_owned(),
        (Strictness::Literal, id) => id.unwrap_or_default().to_owned(),
    };
    let role = match (version, fields.need_text("role")?) {
        (Version::V10, "ROLE_USER") | (Version::V03, "user") => Role::User,
        (Version::V10, "ROLE_AGENT") | (Version::V03, "agent") => Role::Agent,
        (Version::V10, _) => return Err(fields.wrong("role", "must be ROLE_USER or ROLE_AGENT")),
        (Version::V03, _) => return Err(fields.wrong("role", "must be user or agent")),
    };
    let list = fields.list("parts")?.ok_or_else(|| fields.wrong("parts", "is required"))?;
    if list.is_empty() {
        return Err(fields.wrong("parts", "must have at least one part"));
    }
    if list.len() > MESSAGE_PARTS {
        return Err(fields.wrong("parts", format!("must have at most {MESSAGE_PARTS} parts")));
    }
    let parts = list
        .iter()
        .enumerate()
        .map(|(i, value)| part(&Fields::of(&fields.at(&format!("parts[{i}]")), value)?, version, how))
        .collect::<Result<_, Fault>>()?;
    Ok(Message {
        id,
        role,
        parts,
        context: fields.some_text("contextId")?.map(str::to_owned),
        task: fields.some_text("taskId")?.map(str::to_owned),
        metadata: fields.map("metadata")?,
        extensions: fields.texts("extensions")?,
        references: fields.texts("referenceTaskIds")?,
    })
}

fn part(fields: &Fields<'_>, version: Version, how: Strictness) -> Result<Part, Fault> {
    match version {
        Version::V10 => part_10(fields),
        Version::V03 => part_03(fields, how),
    }
}

fn part_10(fields: &Fields<'_>) -> Result<Part, Fault> {
    // A data part may hold `null`: only here is `null` a value.
    let given: Vec<&str> =
        ["text", "raw", "url", "data"].into_iter().filter(|name| fields.has(name)).collect();
    let content = match given.as_slice() {
        ["text"] => Content::Text(fields.text("text")?.unwrap_or_default().to_owned()),
        ["raw"] => Content::Raw(base64(fields, "raw")?),
        ["url"] => Content::Url(fields.need_text("url")?.to_owned()),
        ["data"] => Content::Data(fields.get("data").cloned().unwrap_or(Value::Null)),
        [] => return Err(fields.wrong("", "must have one of text, raw, url and data")),
        _ => return Err(fields.wrong("", "must have only one of text, raw, url and data")),
    };
    Ok(Part {
        content,
        media_type: fields.some_text("mediaType")?.map(str::to_owned),
        filename: fields.some_text("filename")?.map(str::to_owned),
        metadata: fields.map("metadata")?,
    })
}

fn part_03(fields: &Fields<'_>, how: Strictness) -> Result<Part, Fault> {
    let mut metadata = fields.map("metadata")?;
    let kind = match fields.text("kind")? {
        None if how == Strictness::Literal && fields.get("text").is_some() => "text",
        None => return Err(fields.wrong("kind", "is required")),
        Some(kind) => kind,
    };
    let mut names = (None, None);
    let content = match kind {
        "text" => {
            let text = fields.text("text")?.ok_or_else(|| fields.wrong("text", "is required"))?;
            Content::Text(text.to_owned())
        }
        "data" => {
            let data = fields.map("data")?.ok_or_else(|| fields.wrong("data", "is required"))?;
            Content::Data(unwrapped(data, &mut metadata))
        }
        "file" => {
            let file = fields.object("file")?.ok_or_else(|| fields.wrong("file", "is required"))?;
            names =
                (file.some_text("mimeType")?.map(str::to_owned), file.some_text("name")?.map(str::to_owned));
            match (file.get("bytes").is_some(), file.get("uri").is_some()) {
                (true, false) => Content::Raw(base64(&file, "bytes")?),
                (false, true) => Content::Url(file.need_text("uri")?.to_owned()),
                _ => return Err(fields.wrong("file", "must have either bytes or uri")),
            }
        }
        _ => return Err(fields.wrong("kind", "must be text, file or data")),
    };
    Ok(Part { content, media_type: names.0, filename: names.1, metadata })
}

/// The bridge of 0.3 wraps what is no object; here it comes out again.
fn unwrapped(mut data: Map<String, Value>, metadata: &mut Option<Map<String, Value>>) -> Value {
    let wrapped = metadata.as_ref().is_some_and(|m| m.get("data_part_compat") == Some(&Value::Bool(true)));
    if !wrapped {
        return Value::Object(data);
    }
    if let Some(given) = metadata {
        given.remove("data_part_compat");
        if given.is_empty() {
            *metadata = None;
        }
    }
    data.remove("value").unwrap_or(Value::Null)
}

fn base64(fields: &Fields<'_>, name: &str) -> Result<String, Fault> {
    let text = fields.need_text(name)?;
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_' | b'=');
    if text.bytes().all(fine) { Ok(text.to_owned()) } else { Err(fields.wrong(name, "must be base64")) }
}

pub(super) fn state(text: &str) -> Option<State> {
    let spelled =
        |state: &State| state_word(*state, Version::V10) == text || state_word(*state, Version::V03) == text;
    State::ALL.into_iter().find(spelled)
}

/// The bytes of a body as JSON.
pub(super) fn json(body: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(body).map_err(|_| Fault::new(FaultKind::NotJson, "The body is not JSON"))
}
