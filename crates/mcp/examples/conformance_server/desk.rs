//! Which request goes where, and what is listed.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolyard_mcp::server::{Card, Change, Desk, Fault, Visit};

use crate::tasks::Tasks;
use crate::{asking, tools};

/// One pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

pub(crate) struct Fixtures {
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) tasks: Tasks,
}

impl Fixtures {
    pub(crate) fn new() -> Self {
        Self { changes: broadcast::channel(64).0, tasks: Tasks::default() }
    }

    async fn reply(&self, method: &str, params: Value, visit: Visit) -> Result<Value, Fault> {
        match method {
            "tools/list" => Ok(cached(json!({ "tools": tools::list() }))),
            "tools/call" => tools::call(self, &params, &visit).await,
            "prompts/list" => Ok(cached(json!({ "prompts": prompts() }))),
            "prompts/get" => prompt(&params, &visit),
            "resources/list" => Ok(cached(json!({ "resources": resources() }))),
            "resources/templates/list" => Ok(cached(json!({ "resourceTemplates": [{
                "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data by id",
                "mimeType": "application/json" }] }))),
            "resources/read" => read(params["uri"].as_str().unwrap_or_default()).map(cached),
            "completion/complete" => {
                Ok(json!({ "completion": { "values": ["paris", "park", "party"], "hasMore": false } }))
            }
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.tasks.answer(method, &params),
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
            other => Err(Fault::method(other)),
        }
    }
}

fn cached(mut result: Value) -> Value {
    result["ttlMs"] = json!(1000);
    result["cacheScope"] = json!("public");
    result
}

impl Desk for Fixtures {
    fn card(&self) -> Card {
        Card {
            name: "fixtures".to_owned(),
            title: None,
            version: "1.0.0".to_owned(),
            instructions: None,
            capabilities: json!({
                "tools": { "listChanged": true }, "prompts": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true }, "completions": {}, "logging": {},
                "extensions": { "io.modelcontextprotocol/tasks": {} },
            }),
        }
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        visit: Visit,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        self.reply(method, params, visit).boxed()
    }

    fn tool(&self, name: &str) -> Option<Value> {
        tools::list().into_iter().find(|tool| tool["name"] == name)
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.changes.subscribe())
    }
}

fn resources() -> Value {
    json!([
        { "uri": "test://static-text", "name": "static-text", "description": "Text", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static-binary", "description": "A pixel", "mimeType": "image/png" },
        { "uri": "test://watched-resource", "name": "watched", "description": "Watched", "mimeType": "text/plain" },
    ])
}

fn read(uri: &str) -> Result<Value, Fault> {
    let text =
        |mime: &str, text: String| json!({ "contents": [{ "uri": uri, "mimeType": mime, "text": text }] });
    match uri {
        "test://static-text" => {
            Ok(text("text/plain", "This is the content of the static text resource.".to_owned()))
        }
        "test://static-binary" => {
            Ok(json!({ "contents": [{ "uri": uri, "mimeType": "image/png", "blob": PNG }] }))
        }
        "test://watched-resource" => Ok(text("text/plain", "Watched.".to_owned())),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id else {
                let mut fault = Fault::new(-32002, "Resource not found");
                fault.data = Some(json!({ "uri": uri }));
                return Err(fault);
            };
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            Ok(text("application/json", data.to_string()))
        }
    }
}

fn prompts() -> Value {
    let argument = |name: &str| json!({ "name": name, "description": name, "required": true });
    json!([
        { "name": "test_simple_prompt", "description": "Simple" },
        { "name": "test_prompt_with_arguments", "description": "With arguments",
          "arguments": [argument("arg1"), argument("arg2")] },
        { "name": "test_prompt_with_embedded_resource", "description": "With a resource",
          "arguments": [argument("resourceUri")] },
        { "name": "test_prompt_with_image", "description": "With a picture" },
        { "name": "test_input_required_result_prompt", "description": "Asks first" },
    ])
}

fn prompt(params: &Value, visit: &Visit) -> Result<Value, Fault> {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default().to_owned();
    let messages = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![user(text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            let said =
                format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2"));
            vec![user(text(&said))]
        }
        "test_prompt_with_embedded_resource" => vec![
            user(json!({ "type": "resource", "resource": { "uri": argument("resourceUri"),
                "mimeType": "text/plain", "text": "Embedded resource content for testing." } })),
            user(text("Please process the embedded resource above.")),
        ],
        "test_prompt_with_image" => vec![
            user(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
            user(text("Please analyze the image above.")),
        ],
        "test_input_required_result_prompt" => {
            let form = asking::form("What context should the prompt use?", "context", "string");
            match asking::reply(params, "user_context") {
                Some(reply) => vec![user(text(&format!("Context: {}", reply["content"]["context"])))],
                None => return Ok(asking::ask(visit, &[("user_context", form)], None)),
            }
        }
        other => return Err(Fault::params(format!("Unknown prompt: {other}"))),
    };
    Ok(json!({ "messages": messages }))
}
