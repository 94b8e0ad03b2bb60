//! Results that ask back, and the state that comes back with the answers.

use serde_json::{Map, Value, json};
use toolyard_mcp::server::{Fault, Visit};
use toolyard_protocol::Hash;

const SECRET: &str = "of this process";

pub(crate) fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": {
        "type": "object", "properties": { field: { "type": kind } }, "required": [field] } } })
}

pub(crate) fn sampling(text: &str, most: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": { "maxTokens": most,
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] } })
}

pub(crate) fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// Asks what this client can answer.
pub(crate) fn ask(visit: &Visit, requests: &[(&str, Value)], state: Option<&str>) -> Value {
    let able = visit.capabilities();
    let can = |request: &Value| {
        let capability = match request["method"].as_str() {
            Some("elicitation/create") => "elicitation",
            Some("sampling/createMessage") => "sampling",
            _ => "roots",
        };
        able.get(capability).is_some()
    };
    let asked = requests.iter().filter(|(_, request)| can(request));
    let asked: Map<String, Value> =
        asked.map(|(key, request)| ((*key).to_owned(), request.clone())).collect();
    let mut result = json!({ "resultType": "input_required", "inputRequests": asked });
    if let Some(state) = state {
        result["requestState"] = json!(sealed(state));
    }
    result
}

/// An answer that has a form.
pub(crate) fn reply<'p>(params: &'p Value, key: &str) -> Option<&'p Value> {
    params.pointer(&format!("/inputResponses/{key}")).filter(|reply| reply.is_object())
}

fn sealed(state: &str) -> String {
    format!("{state}.{}", Hash::of(format!("{SECRET}{state}").as_bytes()))
}

/// The state that came back, if it is one that was given.
pub(crate) fn opened(params: &Value) -> Result<Option<String>, Fault> {
    let Some(text) = params["requestState"].as_str() else { return Ok(None) };
    let state = text.rsplit_once('.').map(|(state, _)| state).unwrap_or_default();
    if sealed(state) != text {
        return Err(Fault::params("requestState: is not one that this server gave"));
    }
    Ok(Some(state.to_owned()))
}

/// The tools that ask in the newer era.
pub(crate) fn call(name: &str, params: &Value, visit: &Visit) -> Result<Option<Value>, Fault> {
    let said = |text: String| Ok(Some(json!({ "content": [{ "type": "text", "text": text }] })));
    let state = opened(params)?;
    let named = form("What is your name?", "name", "string");
    match name {
        "test_input_required_result_elicitation" => {
            let reply = reply(params, "user_name").and_then(|reply| reply["content"]["name"].as_str());
            match reply {
                Some(name) => said(format!("Hello, {name}!")),
                None => Ok(Some(ask(visit, &[("user_name", named)], None))),
            }
        }
        "test_input_required_result_sampling" => match reply(params, "capital_question") {
            Some(reply) => said(reply["content"]["text"].as_str().unwrap_or("nothing").to_owned()),
            None => {
                let question = sampling("What is the capital of France?", 100);
                Ok(Some(ask(visit, &[("capital_question", question)], None)))
            }
        },
        "test_input_required_result_list_roots" => match reply(params, "client_roots") {
            Some(reply) => said(format!("Roots: {}", reply["roots"])),
            None => Ok(Some(ask(visit, &[("client_roots", roots())], None))),
        },
        "test_input_required_result_request_state" => match (reply(params, "confirm"), state) {
            (Some(_), Some(_)) => said("state-ok".to_owned()),
            _ => {
                let confirm = form("Please confirm", "ok", "boolean");
                Ok(Some(ask(visit, &[("confirm", confirm)], Some("confirming"))))
            }
        },
        "test_input_required_result_tampered_state" => match (reply(params, "confirm"), state) {
            (Some(_), Some(_)) => said("untouched".to_owned()),
            _ => {
                let confirm = form("Please confirm", "ok", "boolean");
                Ok(Some(ask(visit, &[("confirm", confirm)], Some("guarded"))))
            }
        },
        "test_input_required_result_multiple_inputs" => {
            let all = ["user_name", "greeting", "client_roots"];
            if state.is_some() && all.iter().all(|key| reply(params, key).is_some()) {
                return said("All answers are here.".to_owned());
            }
            let requests = [
                ("user_name", named),
                ("greeting", sampling("Generate a greeting", 50)),
                ("client_roots", roots()),
            ];
            Ok(Some(ask(visit, &requests, Some("several"))))
        }
        "test_input_required_result_multi_round" => match state.as_deref() {
            Some("round-2") if reply(params, "step2").is_some() => said("Both steps are done.".to_owned()),
            Some("round-1") if reply(params, "step1").is_some() => {
                let color = form("Step 2: What is your favorite color?", "color", "string");
                Ok(Some(ask(visit, &[("step2", color)], Some("round-2"))))
            }
            _ => {
                let first = form("Step 1: What is your name?", "name", "string");
                Ok(Some(ask(visit, &[("step1", first)], Some("round-1"))))
            }
        },
        "test_input_required_result_capabilities" | "test_streaming_elicitation" => {
            let requests = [("user_name", named), ("greeting", sampling("Generate a greeting", 50))];
            Ok(Some(ask(visit, &requests, Some("able"))))
        }
        _ => Ok(None),
    }
}
