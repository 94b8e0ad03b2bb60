//! What a client posts to start or continue a run, read once into words of
//! ours. Unknown keys are ignored: clients of later versions send more.

use serde_json::{Map, Value};
use toolyard_protocol::message::Part;
use toolyard_protocol::{ApiError, ErrorCode};

use crate::history::{Entry, EntryCall, plain_tool, result_value};

/// Which events a client understands. Clients before 1.0 name no version, and
/// refuse a whole run for an outcome that they do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    #[default]
    Zero,
    One,
}

impl Version {
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Zero => None,
            Self::One => Some("1.0"),
        }
    }
}

/// A request as it is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInput {
    pub thread: String,
    pub run: String,
    pub version: Version,
    /// What the conversation holds, oldest first.
    pub messages: Vec<Entry>,
    /// The same as the client wrote it: what it has, for snapshots.
    pub history: Vec<Value>,
    pub state: Option<Value>,
    /// Definitions of the client's tools, unread.
    pub tools: Vec<Value>,
    pub context: Vec<Context>,
    pub forwarded: Option<Value>,
    pub resume: Vec<Resume>,
}

/// Something the application wants the model to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub description: String,
    pub value: String,
}

/// An answer to an interrupt.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The wait that the interrupt named.
    pub interrupt: String,
    /// The user walked away.
    pub canceled: bool,
    pub payload: Option<Value>,
}

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message)
}

/// Reads a request. Nothing has happened yet when it is refused.
pub fn parse(body: Value) -> Result<RunInput, ApiError> {
    let Value::Object(mut body) = body else { return Err(bad("The body must be a JSON object")) };
    let thread = text(&body, "threadId")?;
    let run = text(&body, "runId")?;
    let history = list(&mut body, "messages")?.ok_or_else(|| ApiError::missing("messages"))?;
    let messages = history.iter().enumerate().map(|(i, m)| message(i, m)).collect::<Result<Vec<_>, _>>()?;
    let context = list(&mut body, "context")?.unwrap_or_default();
    let tools = list(&mut body, "tools")?.unwrap_or_default();
    let resume = list(&mut body, "resume")?.unwrap_or_default();
    Ok(RunInput {
        thread,
        run,
        version: version(body.get("protocolVersion"))?,
        messages: messages.into_iter().flatten().collect(),
        history,
        state: body.remove("state").filter(|state| !state.is_null()),
        tools: tools.iter().enumerate().map(|(i, t)| tool(i, t)).collect::<Result<_, _>>()?,
        context: context.iter().enumerate().map(|(i, c)| context_of(i, c)).collect::<Result<_, _>>()?,
        forwarded: body.remove("forwardedProps").filter(|props| !props.is_null()),
        resume: resume.iter().enumerate().map(|(i, r)| resume_of(i, r)).collect::<Result<_, _>>()?,
    })
}

fn text(body: &Map<String, Value>, field: &str) -> Result<String, ApiError> {
    match body.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::Null) | None => Err(ApiError::missing(field)),
        Some(_) => Err(bad(format!("{field}: must be text"))),
    }
}

fn list(body: &mut Map<String, Value>, field: &str) -> Result<Option<Vec<Value>>, ApiError> {
    match body.remove(field) {
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(bad(format!("{field}: must be a list"))),
    }
}

fn version(named: Option<&Value>) -> Result<Version, ApiError> {
    match named {
        None | Some(Value::Null) => Ok(Version::Zero),
        Some(Value::String(name)) => {
            let parts =
                name.split_once('.').map(|(major, minor)| (major.parse::<u32>(), minor.parse::<u32>()));
            match parts {
                Some((Ok(0), Ok(_))) => Ok(Version::Zero),
                // What is added after 1.0 is ignored by those who do not know it.
                Some((Ok(_), Ok(_))) => Ok(Version::One),
                _ => Err(bad("protocolVersion: must be two numbers, such as 1.0")),
            }
        }
        Some(_) => Err(bad("protocolVersion: must be text")),
    }
}

/// A message that means something to a model; activities and thoughts do not.
fn message(i: usize, message: &Value) -> Result<Option<Entry>, ApiError> {
    let at = |field: &str| format!("messages[{i}].{field}");
    let Value::Object(fields) = message else { return Err(bad(format!("messages[{i}]: must be an object"))) };
    let role = fields.get("role").and_then(Value::as_str).ok_or_else(|| ApiError::missing(&at("role")))?;
    if matches!(role, "activity" | "reasoning") {
        return Ok(None);
    }
    let id = fields.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| ApiError::missing(&at("id")))?;
    let id = Some(id.to_owned());
    let content = fields.get("content");
    Ok(Some(match role {
        "user" => Entry::User { id, parts: parts(&at("content"), content)? },
        "assistant" => {
            let calls = match fields.get("toolCalls") {
                Some(Value::Array(calls)) => calls
                    .iter()
                    .map(|call| entry_call(&at("toolCalls"), call))
                    .collect::<Result<Vec<_>, _>>()?,
                Some(Value::Null) | None => Vec::new(),
                Some(_) => return Err(bad(format!("{}: must be a list", at("toolCalls")))),
            };
            Entry::Assistant { id, text: plain(&parts(&at("content"), content)?), calls }
        }
        "system" | "developer" => Entry::System { id, text: plain(&parts(&at("content"), content)?) },
        "tool" => {
            let call = fields.get("toolCallId").and_then(Value::as_str);
            let call = call.ok_or_else(|| ApiError::missing(&at("toolCallId")))?.to_owned();
            let error = fields.get("error").and_then(Value::as_str).map(ToOwned::to_owned);
            let value = result_value(&plain(&parts(&at("content"), content)?));
            Entry::Result { call, value, error }
        }
        other => {
            let known = "developer, system, assistant, user, tool, activity and reasoning";
            let other: String = other.chars().take(32).collect();
            return Err(bad(format!("{}: {other:?} is not a role; there are {known}", at("role"))));
        }
    }))
}

fn entry_call(at: &str, call: &Value) -> Result<EntryCall, ApiError> {
    let field = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let (id, name) = (field(&call["id"]), field(&call["function"]["name"]));
    let (Some(id), Some(name)) = (id, name) else {
        return Err(bad(format!("{at}: a call needs an id and function.name")));
    };
    let args = call["function"]["arguments"].as_str().unwrap_or_default();
    Ok(EntryCall { id, name, args: serde_json::from_str(args).unwrap_or_else(|_| Value::Object(Map::new())) })
}

fn plain(parts: &[Part]) -> String {
    toolyard_protocol::message::text_of(parts)
}

fn parts(at: &str, content: Option<&Value>) -> Result<Vec<Part>, ApiError> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text.clone())]),
        Some(Value::Array(items)) => items.iter().map(|item| part(at, item)).collect(),
        Some(_) => Err(bad(format!("{at}: must be text or a list of parts"))),
    }
}

fn part(at: &str, item: &Value) -> Result<Part, ApiError> {
    let name = item["metadata"]["filename"].as_str().or_else(|| item["filename"].as_str());
    let name = name.map(ToOwned::to_owned);
    match item["type"].as_str() {
        Some("text") => Ok(Part::text(item["text"].as_str().unwrap_or_default())),
        Some(kind @ ("image" | "audio" | "video" | "document")) => {
            let source = &item["source"];
            let media_type = source["mimeType"].as_str().unwrap_or(match kind {
                "image" => "image/*",
                "audio" => "audio/*",
                "video" => "video/*",
                _ => "application/octet-stream",
            });
            file(at, media_type, name, source["type"].as_str(), source["value"].as_str())
        }
        // Clients before 1.0 had one part for all of these.
        Some("binary") => {
            let media_type = item["mimeType"].as_str().unwrap_or("application/octet-stream");
            match (item["data"].as_str(), item["url"].as_str()) {
                (Some(data), _) => file(at, media_type, name, Some("data"), Some(data)),
                (None, url) => file(at, media_type, name, Some("url"), url),
            }
        }
        _ => Err(bad(format!("{at}: a part is text, image, audio, video or document"))),
    }
}

fn file(
    at: &str,
    media_type: &str,
    name: Option<String>,
    kind: Option<&str>,
    value: Option<&str>,
) -> Result<Part, ApiError> {
    let media_type = media_type.to_owned();
    let url = match (kind, value) {
        (Some("data"), Some(data)) => format!("data:{media_type};base64,{data}"),
        (Some("url"), Some(url)) => url.to_owned(),
        _ => return Err(bad(format!("{at}: a file needs a source with data or a URL"))),
    };
    Ok(Part::File { media_type, file: None, url: Some(url), name })
}

fn tool(i: usize, item: &Value) -> Result<Value, ApiError> {
    let name = item.get("name").filter(|name| name.is_string());
    Ok(plain_tool(name.ok_or_else(|| ApiError::missing(&format!("tools[{i}].name")))?, item))
}

fn context_of(i: usize, item: &Value) -> Result<Context, ApiError> {
    let field = |name: &str| match &item[name] {
        Value::String(text) => Ok(text.clone()),
        _ => Err(bad(format!("context[{i}].{name}: must be text"))),
    };
    Ok(Context { description: field("description")?, value: field("value")? })
}

fn resume_of(i: usize, item: &Value) -> Result<Resume, ApiError> {
    let interrupt = item["interruptId"].as_str().filter(|id| !id.is_empty());
    let interrupt = interrupt.ok_or_else(|| ApiError::missing(&format!("resume[{i}].interruptId")))?;
    let canceled = match item["status"].as_str() {
        Some("resolved") => false,
        Some("cancelled") => true,
        _ => return Err(bad(format!("resume[{i}].status: must be resolved or cancelled"))),
    };
    let payload = item.get("payload").filter(|payload| !payload.is_null()).cloned();
    Ok(Resume { interrupt: interrupt.to_owned(), canceled, payload })
}
