//! The client-tools extension: a client offers tools, a paused task lists the
//! calls, and the next message brings their results.
//!
//! Everything here is metadata and data parts, as extensions may use them. The
//! form of seeds/001, which may not, is in `literal`.

use serde_json::{Map, Value, json};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, ToolName, ToolOutcome, WaitId, limits};

use super::fault::Fault;
use super::fields::Fields;
use super::model::{Content, Message, Part};

/// The name of the extension. A breaking change gets another name.
pub const CLIENT_TOOLS: &str = "urn:toolyard:a2a:ext/client-tools/v1";

/// What a client offers with a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offer {
    /// Definitions as they were given. None: what the conversation has stays.
    pub tools: Option<Vec<Value>>,
    pub tool_choice: Option<Value>,
    /// The stream stays open over pauses.
    pub hold: bool,
    /// It came as `params.tools`.
    pub literal: bool,
}

impl Offer {
    /// The offer of a message, or of the parameters around it: some clients
    /// can set only those.
    pub(super) fn read(
        message: &Message,
        around: Option<&Map<String, Value>>,
    ) -> Result<Option<Self>, Fault> {
        let own = message.metadata.as_ref().and_then(|m| m.get(CLIENT_TOOLS));
        let (place, given) = match (own, around.and_then(|m| m.get(CLIENT_TOOLS))) {
            (Some(given), _) => ("message.metadata", given),
            (None, Some(given)) => ("metadata", given),
            (None, None) => return Ok(None),
        };
        let fields = Fields::of(&format!("{place}[{CLIENT_TOOLS}]"), given)?;
        Ok(Some(Self {
            tools: fields.list("tools")?.cloned(),
            tool_choice: fields.get("toolChoice").cloned(),
            hold: fields.flag("hold")?.unwrap_or(false),
            literal: false,
        }))
    }
}

/// What a message answers of that which a task waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A client's tool ran.
    Result {
        call: CallId,
        /// Checked against the call if it is given.
        tool: Option<ToolName>,
        outcome: ToolOutcome,
    },
    /// A yes or no.
    Decision { wait: Asked, allow: bool, args: Option<Value>, scope: Option<String> },
    /// A value or a credential.
    Value { wait: Asked, value: Value },
}

/// A wait, by its own name or by its call's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Wait(WaitId),
    Call(CallId),
}

/// The answers among the parts of a message, and the parts that are left.
pub(super) fn answers(parts: Vec<Part>) -> Result<(Vec<Answer>, Vec<Part>), Fault> {
    let mut found = Vec::new();
    let mut left = Vec::new();
    for (i, part) in parts.into_iter().enumerate() {
        match answer(i, &part)? {
            Some(answer) => found.push(answer),
            None => left.push(part),
        }
    }
    if found.len() > limits::RESULT_BATCH {
        let most = limits::RESULT_BATCH;
        return Err(Fault::field("message.parts", format!("must hold at most {most} results")));
    }
    Ok((found, left))
}

fn answer(i: usize, part: &Part) -> Result<Option<Answer>, Fault> {
    let Content::Data(data @ Value::Object(_)) = &part.content else { return Ok(None) };
    let path = format!("message.parts[{i}].data");
    let fields = Fields::of(&path, data)?;
    if let Some(answer) = function_response(part, &fields)? {
        return Ok(Some(answer));
    }
    Ok(match fields.get("type").and_then(Value::as_str) {
        Some("tool-result") => Some(result(&fields)?),
        Some("approval-response") => Some(Answer::Decision {
            wait: asked(&fields)?,
            allow: match fields.need_text("decision")? {
                "allow" => true,
                "deny" => false,
                _ => return Err(fields.wrong("decision", "must be allow or deny")),
            },
            args: fields.get("arguments").cloned(),
            scope: fields.some_text("scope")?.map(str::to_owned),
        }),
        Some("input-response" | "credential-response") => {
            Some(Answer::Value { wait: asked(&fields)?, value: fields.need("value")?.clone() })
        }
        _ => None,
    })
}

fn asked(fields: &Fields<'_>) -> Result<Asked, Fault> {
    match fields.some_text("waitId")? {
        Some(id) => WaitId::parse(id).map(Asked::Wait).map_err(|e| fields.wrong("waitId", e.to_string())),
        None => call(fields, "toolCallId").map(Asked::Call),
    }
}

fn call(fields: &Fields<'_>, name: &str) -> Result<CallId, Fault> {
    CallId::parse(fields.need_text(name)?).map_err(|e| fields.wrong(name, e.to_string()))
}

fn tool(fields: &Fields<'_>, name: &str) -> Result<Option<ToolName>, Fault> {
    let text = fields.some_text(name)?;
    text.map(|text| ToolName::parse(text).map_err(|e| fields.wrong(name, e.to_string()))).transpose()
}

/// The result object of seeds/001: `{toolCallId, toolName, success, result | error}`.
pub(super) fn result(fields: &Fields<'_>) -> Result<Answer, Fault> {
    let success = match fields.flag("success")? {
        Some(success) => success,
        None => fields.get("error").is_none(),
    };
    let outcome = match success {
        true => ToolOutcome::Ok(fields.get("result").cloned().unwrap_or(Value::Null)),
        false => {
            let error = fields.need("error")?;
            ToolOutcome::Failed(error.as_str().map_or_else(|| error.to_string(), str::to_owned))
        }
    };
    Ok(Answer::Result { call: call(fields, "toolCallId")?, tool: tool(fields, "toolName")?, outcome })
}

/// The answer of an agent framework that marks its parts by private keys.
fn function_response(part: &Part, fields: &Fields<'_>) -> Result<Option<Answer>, Fault> {
    let kind = part.metadata.as_ref().and_then(|m| m.get("adk_type")).and_then(Value::as_str);
    if kind != Some("function_response") {
        return Ok(None);
    }
    let value = fields.get("response").cloned().unwrap_or(Value::Null);
    Ok(Some(Answer::Result {
        call: call(fields, "id")?,
        tool: tool(fields, "name")?,
        outcome: ToolOutcome::Ok(value),
    }))
}

/// Something a paused task waits for, as far as its reader may know it.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    pub wait: WaitId,
    pub kind: WaitKind,
    pub call: CallId,
    pub tool: ToolName,
    /// The arguments or the prompt; none if they are hidden.
    pub payload: Option<Value>,
}

impl OpenCall {
    /// The part that a program reads. Arguments are always an object.
    pub(super) fn part(&self) -> Option<Part> {
        let Self { wait, kind, call, tool, payload } = self;
        let arguments = payload.clone().unwrap_or_else(|| json!({}));
        let (name, data) = match kind {
            WaitKind::Client => (
                "tool-call",
                json!({ "type": "tool-call", "toolCallId": call, "toolName": tool, "arguments": arguments }),
            ),
            WaitKind::Approval => ("approval-request", {
                let mut data = json!({ "type": "approval-request", "waitId": wait, "toolCallId": call,
                    "toolName": tool });
                data["request"] = arguments;
                data
            }),
            WaitKind::Input => (
                "input-request",
                json!({ "type": "input-request", "waitId": wait, "toolCallId": call, "toolName": tool,
                    "request": arguments }),
            ),
            WaitKind::Credential => (
                "credential-request",
                json!({ "type": "credential-request", "waitId": wait, "toolCallId": call, "toolName": tool,
                    "request": arguments }),
            ),
            WaitKind::Child | WaitKind::Timer => return None,
        };
        let mut part = Part::data(data);
        part.media_type = Some("application/json".to_owned());
        part.metadata = json!({ CLIENT_TOOLS: { "type": name } }).as_object().cloned();
        Some(part)
    }

    /// The sentence that a person reads.
    pub(super) fn sentence(&self) -> Option<String> {
        let tool = &self.tool;
        Some(match self.kind {
            WaitKind::Client => format!("Waiting for the result of the client's tool {tool}."),
            WaitKind::Approval => format!("The tool {tool} needs a permission before it runs."),
            WaitKind::Input => format!("The tool {tool} asks for input."),
            WaitKind::Credential => format!("The tool {tool} needs a credential."),
            WaitKind::Child | WaitKind::Timer => return None,
        })
    }

    /// As seeds/001 writes a call.
    pub(super) fn literal(&self) -> Option<Value> {
        let arguments = self.payload.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string);
        (self.kind == WaitKind::Client).then(|| {
            json!({ "id": self.call, "type": "function",
                "function": { "name": self.tool, "arguments": arguments } })
        })
    }
}
