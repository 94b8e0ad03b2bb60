//! Waits of a run as interrupts, and what clients answer to them.

use serde_json::{Value, json};
use toolyard_protocol::event::{Asked, ChildAsked};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ApiError, ErrorCode, ToolName};

use super::input::Resume;
use super::wire::Interrupt;

/// Reasons that AG-UI does not have a word for start with our name.
const CREDENTIAL: &str = "toolyard:credential_required";
const CLIENT_TOOL: &str = "toolyard:client_tool";

/// A question of this run. `event` is already what the viewer may see.
/// `announced` says that the client was told of the call.
pub(super) fn asked(event: &Asked, announced: bool) -> Interrupt {
    let payload = event.payload.shown();
    let mut interrupt = question(event.wait.as_str(), event.kind, Some(&event.tool), payload);
    interrupt.tool_call_id = announced.then(|| event.call.to_string());
    interrupt.expires_at = event.expires.map(|at| at.to_string());
    interrupt
}

/// A question of a run below this one.
pub(super) fn child_asked(event: &ChildAsked) -> Interrupt {
    let payload = event.payload.shown();
    let tool = payload.and_then(|p| p["toolName"].as_str()).and_then(|name| ToolName::parse(name).ok());
    let mut interrupt = question(event.wait.as_str(), event.kind, tool.as_ref(), payload);
    interrupt.tool_call_id = Some(event.call.to_string());
    interrupt
}

fn question(id: &str, kind: WaitKind, tool: Option<&ToolName>, payload: Option<&Value>) -> Interrupt {
    let named = tool.map_or_else(String::new, |tool| format!(" {tool}"));
    let said = payload.and_then(|p| p["message"].as_str().or_else(|| p["prompt"].as_str()));
    let said = said.map(ToOwned::to_owned);
    let (reason, message, schema) = match kind {
        WaitKind::Approval => {
            ("tool_call", format!("May the tool{named} run?"), Some(approval_schema(payload)))
        }
        WaitKind::Credential => {
            (CREDENTIAL, format!("The tool{named} needs a credential."), Some(value_schema(payload)))
        }
        WaitKind::Client => {
            (CLIENT_TOOL, format!("A client is to run the tool{named}."), Some(result_schema()))
        }
        WaitKind::Input | WaitKind::Child | WaitKind::Timer => {
            ("input_required", format!("The tool{named} asks for input."), Some(value_schema(payload)))
        }
    };
    Interrupt {
        id: id.to_owned(),
        reason,
        message: Some(said.unwrap_or(message)),
        tool_call_id: None,
        response_schema: schema,
        expires_at: None,
        metadata: payload.map(|payload| {
            let mut shown = payload.clone();
            if let Value::Object(fields) = &mut shown {
                fields.remove("pin");
            }
            shown
        }),
    }
}

/// What an approval takes. That `editedArgs` is there says that the arguments
/// may be changed; who may not see them cannot change them.
fn approval_schema(payload: Option<&Value>) -> Value {
    let mut fields = json!({
        "approved": { "type": "boolean" },
        "reason": { "type": "string", "description": "Why not; the model reads it" },
    });
    if payload.is_some_and(|p| p.get("args").is_some()) {
        fields["editedArgs"] = json!({ "type": "object", "description": "Replaces all arguments" });
    }
    json!({ "type": "object", "properties": fields, "required": ["approved"] })
}

fn value_schema(payload: Option<&Value>) -> Value {
    let asked = payload.and_then(|p| p.get("schema")).filter(|schema| schema.is_object());
    asked.cloned().unwrap_or_else(|| json!({ "type": "string" }))
}

fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "result": {}, "error": { "type": "string" } },
    })
}

/// What a client says to an interrupt, by the kind of wait that it named.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    Allow { edited: Option<Value> },
    Deny { reason: Option<String> },
    Provide(Value),
    Result(Value),
    Failed(String),
}

const WALKED_AWAY: &str = "The user canceled the request";

/// Reads an answer. A payload of another form than was asked for is refused.
pub fn resolve(entry: &Resume, kind: WaitKind) -> Result<Resolved, ApiError> {
    if entry.canceled {
        return Ok(match kind {
            WaitKind::Client => Resolved::Failed(WALKED_AWAY.to_owned()),
            _ => Resolved::Deny { reason: Some(WALKED_AWAY.to_owned()) },
        });
    }
    let payload = entry.payload.as_ref();
    let bad = |what: &str| {
        let text = format!("resume: the payload for {} {what}", entry.interrupt);
        ApiError::new(ErrorCode::BadRequest, text)
    };
    match kind {
        WaitKind::Approval => {
            let approved = match payload {
                Some(Value::Bool(approved)) => Some(*approved),
                Some(payload) => payload["approved"].as_bool(),
                None => None,
            };
            let approved = approved.ok_or_else(|| bad("must say approved: true or false"))?;
            let payload = payload.cloned().unwrap_or_default();
            if !approved {
                return Ok(Resolved::Deny { reason: payload["reason"].as_str().map(ToOwned::to_owned) });
            }
            let edited = payload.get("editedArgs").filter(|args| !args.is_null()).cloned();
            if edited.as_ref().is_some_and(|args| !args.is_object()) {
                return Err(bad("must have an object as editedArgs"));
            }
            Ok(Resolved::Allow { edited })
        }
        WaitKind::Input | WaitKind::Credential => {
            payload.cloned().map(Resolved::Provide).ok_or_else(|| bad("is missing"))
        }
        WaitKind::Client => {
            let payload = payload.ok_or_else(|| bad("is missing"))?;
            match (payload.get("result"), payload["error"].as_str()) {
                (_, Some(error)) => Ok(Resolved::Failed(error.to_owned())),
                (Some(result), None) => Ok(Resolved::Result(result.clone())),
                (None, None) => Err(bad("must have a result or an error")),
            }
        }
        WaitKind::Child | WaitKind::Timer => Err(bad("answers a wait that only the gateway ends")),
    }
}
