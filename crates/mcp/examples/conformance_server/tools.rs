//! The tools that the suite calls.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_mcp::server::{Change, Fault, Visit};

use crate::desk::{Fixtures, PNG};
use crate::{asking, tasks};

/// An empty sound.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const MOMENT: Duration = Duration::from_millis(50);

pub(crate) fn list() -> Vec<Value> {
    let plain = |name: &str| {
        json!({ "name": name, "description": format!("The fixture {name}"),
            "inputSchema": { "type": "object", "properties": {} } })
    };
    let with = |name: &str, field: &str| {
        let mut tool = plain(name);
        tool["inputSchema"]["properties"] = json!({ field: { "type": "string" } });
        tool["inputSchema"]["required"] = json!([field]);
        tool
    };
    let mut tools: Vec<Value> = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_progress",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_missing_capability",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_streaming_elicitation",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_tampered_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_capabilities",
    ]
    .into_iter()
    .map(plain)
    .collect();
    tools.extend(tasks::list());
    tools.push(with("test_sampling", "prompt"));
    tools.push(with("test_elicitation", "message"));
    let mut headed = with("test_headers", "region");
    headed["inputSchema"]["properties"]["region"]["x-mcp-header"] = json!("Region");
    tools.push(headed);
    tools.push(json!({
        "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" }, "email": { "type": "string" } },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        },
    }));
    tools
}

fn text(text: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

pub(crate) async fn call(fixtures: &Fixtures, params: &Value, visit: &Visit) -> Result<Value, Fault> {
    let name = params["name"].as_str().unwrap_or_default();
    if let Some(answer) = asking::call(name, params, visit)? {
        return Ok(answer);
    }
    if let Some(answer) = tasks::call(&fixtures.tasks, params, visit).await? {
        return Ok(answer);
    }
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    match name {
        "test_simple_text" => Ok(text("This is a simple text response for testing.")),
        "test_image_content" => Ok(json!({ "content": [image] })),
        "test_audio_content" => {
            Ok(json!({ "content": [{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }] }))
        }
        "test_embedded_resource" => Ok(json!({ "content": [{ "type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain",
            "text": "This is an embedded resource content." } }] })),
        "test_multiple_content_types" => Ok(json!({ "content": [
            { "type": "text", "text": "Multiple content types test:" }, image,
            { "type": "resource", "resource": { "uri": "test://mixed-content-resource",
              "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}" } }] })),
        "test_error_handling" => {
            let mut failed = text("This tool intentionally returns an error for testing");
            failed["isError"] = json!(true);
            Ok(failed)
        }
        "test_tool_with_progress" => {
            for share in [0.0, 50.0, 100.0] {
                visit.progress(share, Some(100.0), None).await;
                tokio::time::sleep(MOMENT).await;
            }
            Ok(text("Done, with progress."))
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                // In the newer era a request says that it wants to hear lines.
                if !visit.is_modern() || visit.meta().get("io.modelcontextprotocol/logLevel").is_some() {
                    visit.log(json!({ "level": "info", "data": line })).await;
                }
                tokio::time::sleep(MOMENT).await;
            }
            Ok(text("Done, with lines for the log."))
        }
        "test_missing_capability" => match visit.capabilities().get("sampling") {
            Some(_) => Ok(text("The client can sample.")),
            None => Err(Fault::needs("sampling")),
        },
        "test_trigger_tool_change" | "test_trigger_prompt_change" => {
            let change = if name.contains("tool_change") { Change::Tools } else { Change::Prompts };
            let _ = fixtures.changes.send(change);
            Ok(text("It has changed."))
        }
        "test_headers" | "json_schema_2020_12_tool" => Ok(text("Heard.")),
        "test_sampling"
        | "test_elicitation"
        | "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums" => ask(name, &params["arguments"], visit).await,
        other => Err(Fault::params(format!("Unknown tool: {other}"))),
    }
}

/// The tools that ask in the middle of a call, as the older era does.
async fn ask(name: &str, arguments: &Value, visit: &Visit) -> Result<Value, Fault> {
    let form = |message: &Value, schema: Value| json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } });
    if name == "test_sampling" {
        let asked = asking::sampling(arguments["prompt"].as_str().unwrap_or_default(), 100);
        let answer = visit.ask(asked).await?;
        let content = &answer["content"];
        let said = content["text"].as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
        return Ok(text(format!("LLM response: {said}")));
    }
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let (message, schema) = match name {
        "test_elicitation" => {
            let mut schema = object(json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" } }));
            schema["required"] = json!(["username", "email"]);
            (arguments["message"].clone(), schema)
        }
        "test_elicitation_sep1034_defaults" => (
            json!("Please fill in"),
            object(json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true } })),
        ),
        _ => (
            json!("Please choose"),
            object(json!({
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": [{ "const": "value1", "title": "First Option" },
                { "const": "value2", "title": "Second Option" }, { "const": "value3", "title": "Third Option" }] },
            "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"] },
            "untitledMulti": { "type": "array", "items": { "type": "string",
                "enum": ["option1", "option2", "option3"] } },
            "titledMulti": { "type": "array", "items": { "anyOf": [{ "const": "value1", "title": "First Choice" },
                { "const": "value2", "title": "Second Choice" }, { "const": "value3", "title": "Third Choice" }] } } })),
        ),
    };
    let answer = visit.ask(form(&message, schema)).await?;
    let (action, content) = (answer["action"].as_str().unwrap_or_default(), &answer["content"]);
    Ok(text(match name {
        "test_elicitation" => format!("User response: action: {action}, content: {content}"),
        _ => format!("Elicitation completed: action={action}, content={content}"),
    }))
}
