//! What both kinds of request share: parts, tools, the form of the answer.

use serde_json::{Map, Value};
use toolyard_protocol::message::Part;
use toolyard_protocol::{ApiError, ErrorCode};

use crate::history::plain_tool;

/// The form that the answer must have.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Format {
    #[default]
    Text,
    /// Any JSON object.
    Json,
    Schema {
        name: String,
        schema: Value,
        strict: bool,
    },
}

pub(super) fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message)
}

/// `response_format` of chat completions, `text.format` of responses: the same
/// but for a wrapper.
pub(super) fn format(at: &str, value: Option<&Value>) -> Result<Format, ApiError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Format::Text) };
    match value["type"].as_str() {
        Some("text") => Ok(Format::Text),
        Some("json_object") => Ok(Format::Json),
        Some("json_schema") => {
            let held = value.get("json_schema").unwrap_or(value);
            let schema = held.get("schema").filter(|schema| schema.is_object());
            let schema = schema.ok_or_else(|| ApiError::missing(&format!("{at}.schema")))?;
            let name = held["name"].as_str().unwrap_or("answer").to_owned();
            Ok(Format::Schema { name, schema: schema.clone(), strict: held["strict"] == true })
        }
        _ => Err(bad(format!("{at}.type: must be text, json_object or json_schema"))),
    }
}

/// Definitions of the client's tools. Only functions can run at a client.
pub fn tool_definitions(value: Option<&Value>) -> Result<Vec<Value>, ApiError> {
    let tools = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(bad("tools: must be a list")),
    };
    let define = |(i, tool): (usize, &Value)| {
        if tool["type"].as_str() != Some("function") {
            return Err(bad(format!("tools[{i}].type: only function tools can be run by a client")));
        }
        let held = tool.get("function").unwrap_or(tool);
        let name = held.get("name").filter(|name| name.is_string());
        let name = name.ok_or_else(|| ApiError::missing(&format!("tools[{i}].name")))?;
        Ok(plain_tool(name, held))
    };
    tools.iter().enumerate().map(define).collect()
}

/// `tool_choice: "none"` takes the client's tools away; `auto` is what happens
/// anyway. The agent decides what it calls, so more than that is refused.
pub(super) fn choice(value: Option<&Value>) -> Result<bool, ApiError> {
    match value {
        None | Some(Value::Null) => Ok(true),
        Some(Value::String(word)) if word == "auto" => Ok(true),
        Some(Value::String(word)) if word == "none" => Ok(false),
        Some(_) => Err(bad("tool_choice: must be auto or none; the agent chooses its tools")),
    }
}

pub(super) fn text(body: &Map<String, Value>, field: &str) -> Result<Option<String>, ApiError> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(bad(format!("{field}: must be text"))),
    }
}

pub(super) fn flag(body: &Map<String, Value>, field: &str) -> Result<bool, ApiError> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(yes)) => Ok(*yes),
        Some(_) => Err(bad(format!("{field}: must be true or false"))),
    }
}

/// The thread that a program wants to go on with: `metadata.thread_id`.
pub(super) fn thread(body: &Map<String, Value>) -> Option<String> {
    let metadata = body.get("metadata")?;
    metadata["thread_id"].as_str().filter(|name| !name.is_empty()).map(ToOwned::to_owned)
}

/// Text, or a list of parts.
pub(super) fn parts(at: &str, content: Option<&Value>) -> Result<Vec<Part>, ApiError> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text.clone())]),
        Some(Value::Array(items)) => items.iter().map(|item| part(at, item)).collect(),
        Some(_) => Err(bad(format!("{at}: must be text or a list of parts"))),
    }
}

fn part(at: &str, item: &Value) -> Result<Part, ApiError> {
    let said = |field: &str| item[field].as_str().map(ToOwned::to_owned);
    match item["type"].as_str() {
        Some("text" | "input_text" | "output_text" | "refusal") => {
            Ok(Part::text(said("text").or_else(|| said("refusal")).unwrap_or_default()))
        }
        Some("image_url" | "input_image") => {
            let url = item["image_url"]["url"].as_str().or_else(|| item["image_url"].as_str());
            file(at, "image/*", None, url)
        }
        Some("file" | "input_file") => {
            let held = item.get("file").unwrap_or(item);
            let name = held["filename"].as_str().map(ToOwned::to_owned);
            let url = held["file_data"].as_str().or_else(|| held["file_url"].as_str());
            file(at, "application/octet-stream", name, url)
        }
        Some("input_audio") => {
            let held = &item["input_audio"];
            let media = match held["format"].as_str() {
                Some("mp3") => "audio/mpeg",
                _ => "audio/wav",
            };
            let data = held["data"].as_str().map(|data| format!("data:{media};base64,{data}"));
            file(at, media, None, data.as_deref())
        }
        _ => Err(bad(format!("{at}: a part is text, an image, a file or audio"))),
    }
}

fn file(at: &str, media: &str, name: Option<String>, url: Option<&str>) -> Result<Part, ApiError> {
    let url = url.filter(|url| !url.is_empty());
    let url = url.ok_or_else(|| bad(format!("{at}: a file needs its data or a URL")))?;
    let held = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
    let media_type = held.filter(|media| !media.is_empty()).unwrap_or(media).to_owned();
    Ok(Part::File { media_type, file: None, url: Some(url.to_owned()), name })
}
