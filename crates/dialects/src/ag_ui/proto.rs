//! The binary form of events.
//!
//! Each event is written from its text form by a table of fields, so that both
//! forms say the same. A frame is four bytes of length, then one message with
//! a single field: the event under its own number.

use serde_json::{Map, Value};

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Int,
    /// Any JSON.
    Any,
    /// A JSON object.
    Object,
    /// A message of its own: its fields.
    Message(&'static [Field]),
    /// A list of any of these.
    Many(&'static Kind),
}

/// A field of a message: its name in JSON, its number, what it holds.
struct Field(&'static str, u32, Kind);

const CALL: &[Field] = &[
    Field("id", 1, Kind::Text),
    Field("type", 2, Kind::Text),
    Field("function", 3, Kind::Message(&[Field("name", 1, Kind::Text), Field("arguments", 2, Kind::Text)])),
];

const SOURCE: &[Field] = &[Field("value", 1, Kind::Text), Field("mimeType", 2, Kind::Text)];
/// A file that a provider holds: its fields stand in another order.
const FILE: &[Field] =
    &[Field("value", 1, Kind::Text), Field("provider", 2, Kind::Text), Field("mimeType", 3, Kind::Text)];

const MESSAGE: &[Field] = &[
    Field("id", 1, Kind::Text),
    Field("role", 2, Kind::Text),
    Field("content", 3, Kind::Text),
    Field("name", 4, Kind::Text),
    Field("toolCalls", 5, Kind::Many(&Kind::Message(CALL))),
    Field("toolCallId", 6, Kind::Text),
    Field("error", 7, Kind::Text),
    Field("metadata", 9, Kind::Object),
    Field("encryptedValue", 11, Kind::Text),
];

const INTERRUPT: &[Field] = &[
    Field("id", 1, Kind::Text),
    Field("reason", 2, Kind::Text),
    Field("message", 3, Kind::Text),
    Field("toolCallId", 4, Kind::Text),
    Field("responseSchema", 5, Kind::Any),
    Field("expiresAt", 6, Kind::Text),
    Field("metadata", 7, Kind::Any),
];

const USAGE: &[Field] = &[
    Field("inputTokens", 3, Kind::Int),
    Field("outputTokens", 4, Kind::Int),
    Field("totalTokens", 5, Kind::Int),
    Field("reasoningTokens", 6, Kind::Int),
    Field("cachedInputTokens", 7, Kind::Int),
    Field("cacheWriteInputTokens", 8, Kind::Int),
];

/// An event: its field in the envelope, its number as a type, its fields.
struct Form(u32, u64, &'static [Field]);

fn form(kind: &str) -> Option<Form> {
    use Kind::{Any, Many, Text};
    Some(match kind {
        "TEXT_MESSAGE_START" => Form(1, 0, &[Field("messageId", 2, Text), Field("role", 3, Text)]),
        "TEXT_MESSAGE_CONTENT" => Form(2, 1, &[Field("messageId", 2, Text), Field("delta", 3, Text)]),
        "TEXT_MESSAGE_END" => Form(3, 2, &[Field("messageId", 2, Text)]),
        "TOOL_CALL_START" => Form(
            4,
            3,
            &[
                Field("toolCallId", 2, Text),
                Field("toolCallName", 3, Text),
                Field("parentMessageId", 4, Text),
            ],
        ),
        "TOOL_CALL_ARGS" => Form(5, 4, &[Field("toolCallId", 2, Text), Field("delta", 3, Text)]),
        "TOOL_CALL_END" => Form(6, 5, &[Field("toolCallId", 2, Text)]),
        "STATE_SNAPSHOT" => Form(7, 6, &[Field("snapshot", 2, Any)]),
        "MESSAGES_SNAPSHOT" => Form(9, 8, &[Field("messages", 2, Many(&Kind::Message(MESSAGE)))]),
        "CUSTOM" => Form(11, 10, &[Field("name", 2, Text), Field("value", 3, Any)]),
        "RUN_STARTED" => Form(
            12,
            11,
            &[Field("threadId", 2, Text), Field("runId", 3, Text), Field("protocolVersion", 6, Text)],
        ),
        "RUN_FINISHED" => Form(
            13,
            12,
            &[
                Field("threadId", 2, Text),
                Field("runId", 3, Text),
                Field("outcome", 5, Text),
                Field("interrupts", 6, Many(&Kind::Message(INTERRUPT))),
                Field("usage", 7, Many(&Kind::Message(USAGE))),
                Field("pendingToolCallIds", 8, Many(&Kind::Text)),
            ],
        ),
        "RUN_ERROR" => Form(14, 13, &[Field("code", 2, Text), Field("message", 3, Text)]),
        "STEP_STARTED" => Form(15, 14, &[Field("stepName", 2, Text)]),
        "STEP_FINISHED" => Form(16, 15, &[Field("stepName", 2, Text)]),
        "SUBAGENT_STARTED" => Form(
            19,
            16,
            &[Field("subagentRunId", 2, Text), Field("name", 3, Text), Field("parentToolCallId", 6, Text)],
        ),
        "SUBAGENT_FINISHED" => Form(20, 17, &[Field("subagentRunId", 2, Text), Field("outcome", 4, Text)]),
        "SUBAGENT_ERROR" => Form(21, 18, &[Field("subagentRunId", 2, Text), Field("message", 3, Text)]),
        "TOOL_CALL_RESULT" => Form(
            22,
            21,
            &[
                Field("messageId", 3, Text),
                Field("toolCallId", 4, Text),
                Field("content", 5, Text),
                Field("role", 6, Text),
            ],
        ),
        "REASONING_START" => Form(25, 24, &[Field("messageId", 3, Text)]),
        "REASONING_MESSAGE_START" => Form(26, 25, &[Field("messageId", 3, Text), Field("role", 4, Text)]),
        "REASONING_MESSAGE_CONTENT" => Form(27, 26, &[Field("messageId", 3, Text), Field("delta", 4, Text)]),
        "REASONING_MESSAGE_END" => Form(28, 27, &[Field("messageId", 3, Text)]),
        "REASONING_END" => Form(30, 29, &[Field("messageId", 3, Text)]),
        _ => return None,
    })
}

/// Turns a body of text frames into one of binary frames.
#[derive(Debug, Default)]
pub struct Recoder {
    rest: Vec<u8>,
    /// So much of `rest` holds no end of a frame: a long one comes in many pieces.
    searched: usize,
}

impl Recoder {
    /// Takes a piece of text and answers the frames that are whole. Comments
    /// have no binary form.
    pub fn push(&mut self, text: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(text);
        let (mut out, mut taken) = (Vec::new(), 0);
        while let Some(end) = self.rest[self.searched..].windows(2).position(|two| two == b"\n\n") {
            let end = self.searched + end;
            for line in self.rest[taken..end].split(|byte| *byte == b'\n') {
                if let Some(json) = line.strip_prefix(b"data: ")
                    && let Ok(Value::Object(event)) = serde_json::from_slice(json)
                {
                    write(event, &mut out);
                }
            }
            (taken, self.searched) = (end + 2, end + 2);
        }
        self.rest.drain(..taken);
        // The last byte may be the first half of an end.
        self.searched = self.rest.len().saturating_sub(1);
        out
    }
}

/// Adds one frame.
fn write(mut json: Map<String, Value>, out: &mut Vec<u8>) {
    let kind = json.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(Form(envelope, number, fields)) = form(&kind) else { return };
    flatten_outcome(&mut json);
    let mut body = Vec::new();
    let mut base = Vec::new();
    int(&mut base, 1, number);
    if let Some(at) = json.get("timestamp").and_then(Value::as_u64) {
        int(&mut base, 2, at);
    }
    bytes(&mut body, 1, &base);
    write_fields(&mut body, fields, &json);
    let mut frame = Vec::with_capacity(body.len() + 8);
    bytes(&mut frame, envelope, &body);
    // A frame is far below four gigabytes: a step's text is bounded.
    out.extend_from_slice(&u32::try_from(frame.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(&frame);
}

/// The binary form holds the kind of an outcome as text and its lists beside it.
fn flatten_outcome(json: &mut Map<String, Value>) {
    let Some(Value::Object(outcome)) = json.remove("outcome") else { return };
    for (key, value) in outcome {
        json.insert(if key == "type" { "outcome".to_owned() } else { key }, value);
    }
}

fn write_fields(out: &mut Vec<u8>, fields: &[Field], json: &Map<String, Value>) {
    for Field(name, number, kind) in fields {
        if let Some(value) = json.get(*name) {
            write_value(out, *number, *kind, value);
        }
    }
    // Content that is a list of parts stands under its own number.
    if let Some(Value::Array(parts)) = json.get("content") {
        for part in parts {
            write_part(out, part);
        }
    }
}

fn write_value(out: &mut Vec<u8>, number: u32, kind: Kind, value: &Value) {
    match (kind, value) {
        (Kind::Text, Value::String(text)) => bytes(out, number, text.as_bytes()),
        (Kind::Int, value) => int(out, number, value.as_u64().unwrap_or_default()),
        (Kind::Any, value) => bytes(out, number, &any(value)),
        (Kind::Object, Value::Object(map)) => bytes(out, number, &object(map)),
        (Kind::Message(fields), Value::Object(map)) => {
            let mut body = Vec::new();
            write_fields(&mut body, fields, map);
            bytes(out, number, &body);
        }
        (Kind::Many(kind), Value::Array(items)) => {
            for item in items {
                write_value(out, number, *kind, item);
            }
        }
        (Kind::Text | Kind::Object | Kind::Message(_) | Kind::Many(_), _) => {}
    }
}

/// A part of a message's content, as far as the binary form knows it.
fn write_part(out: &mut Vec<u8>, part: &Value) {
    let mut body = Vec::new();
    let arm = match part["type"].as_str() {
        Some("text") => {
            bytes(&mut body, 1, part["text"].as_str().unwrap_or_default().as_bytes());
            1
        }
        Some("image") => 2,
        Some("audio") => 3,
        Some("video") => 4,
        Some("document") => 5,
        _ => return,
    };
    if let Value::Object(source) = &part["source"] {
        let (number, fields) = match source.get("type").and_then(Value::as_str) {
            Some("data") => (1, SOURCE),
            Some("url") => (2, SOURCE),
            _ => (3, FILE),
        };
        let (mut held, mut inner) = (Vec::new(), Vec::new());
        write_fields(&mut inner, fields, source);
        bytes(&mut held, number, &inner);
        bytes(&mut body, 1, &held);
    }
    let mut content = Vec::new();
    bytes(&mut content, arm, &body);
    bytes(out, 8, &content);
}

/// Any JSON as the protocol's own value type.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Null => int(&mut out, 1, 0),
        Value::Number(n) => {
            key(&mut out, 2, 1);
            out.extend_from_slice(&n.as_f64().unwrap_or_default().to_le_bytes());
        }
        Value::String(text) => bytes(&mut out, 3, text.as_bytes()),
        Value::Bool(yes) => int(&mut out, 4, u64::from(*yes)),
        Value::Object(map) => bytes(&mut out, 5, &object(map)),
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                bytes(&mut list, 1, &any(item));
            }
            bytes(&mut out, 6, &list);
        }
    }
    out
}

fn object(map: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in map {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, name.as_bytes());
        bytes(&mut entry, 2, &any(value));
        bytes(&mut out, 1, &entry);
    }
    out
}

fn key(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
}

fn int(out: &mut Vec<u8>, number: u32, value: u64) {
    key(out, number, 0);
    varint(out, value);
}

fn bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    key(out, number, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_same_wherever_their_text_is_cut() {
        let text = concat!(
            ": hello\n\n",
            "data: {\"type\":\"STEP_STARTED\",\"stepName\":\"a\"}\n\n",
            "data: {\"type\":\"STEP_FINISHED\",\"stepName\":\"a\"}\n\n",
        );
        let whole = Recoder::default().push(text.as_bytes());
        assert!(!whole.is_empty());
        for size in 1..text.len() {
            let mut recoder = Recoder::default();
            let told: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| recoder.push(piece)).collect();
            assert_eq!(told, whole, "{size}");
            assert!(recoder.rest.is_empty());
        }
    }

    #[test]
    fn a_long_frame_in_many_pieces_is_searched_once() {
        let mut recoder = Recoder::default();
        for n in 1..=1000 {
            assert!(recoder.push(&[b'x'; 100]).is_empty());
            assert_eq!(recoder.searched, n * 100 - 1);
        }
    }
}
