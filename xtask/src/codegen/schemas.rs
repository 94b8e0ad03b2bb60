//! JSON Schemas and tables under `api/`, for people and programs that are not
//! written in Rust or TypeScript.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use toolyard_dialects::native::{FrameKind, FrameVisitor, Presence, visit_frames};
use toolyard_protocol::agent::AgentConfig;
use toolyard_protocol::{ErrorCode, Event};
use ts_rs::TS;

/// The log as it is stored: one object per event.
pub(super) fn events() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let forms = Event::schemas(&mut generator)
        .into_iter()
        .map(|(kind, body)| {
            json!({
                "title": kind,
                "allOf": [body],
                "properties": {"v": {"const": 1}, "type": {"const": kind}},
                "required": ["v", "type"],
            })
        })
        .collect::<Vec<_>>();
    document("An event of a run's log, as it is stored", json!({"oneOf": forms}), generator)
}

/// The payloads of the native streams.
pub(super) fn frames() -> String {
    struct Frames {
        generator: SchemaGenerator,
        forms: Vec<Value>,
    }
    impl FrameVisitor for Frames {
        fn visit<B: TS + JsonSchema + 'static>(&mut self, kind: &FrameKind) {
            // Inlined: a payload and a stored event may have the same name.
            let body = B::json_schema(&mut self.generator);
            self.forms.push(frame(kind, body));
        }
    }
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut all = Frames { generator, forms: Vec::new() };
    visit_frames(&mut all);
    let title = "The payload of a frame on a native stream";
    document(title, json!({"anyOf": all.forms}), all.generator)
}

fn frame(kind: &FrameKind, body: Schema) -> Value {
    let mut form = body.to_value();
    let head = [
        ("runId", kind.run_id, json!({"type": "string"})),
        ("seq", kind.seq, json!({"type": "integer"})),
        ("ts", kind.ts, json!({"type": "string"})),
        ("smartSpaceId", kind.smart_space_id, json!({"type": "string"})),
    ];
    let mut required = vec![json!("type")];
    let mut properties = Map::new();
    properties.insert("type".to_owned(), json!({"enum": kind.names}));
    for (name, presence, schema) in head {
        if presence == Presence::Always {
            required.push(json!(name));
        }
        if presence != Presence::Never {
            properties.insert(name.to_owned(), schema);
        }
    }
    if let Some(Value::Object(own)) = form.get_mut("properties").map(Value::take) {
        properties.extend(own);
    }
    if let Some(Value::Array(own)) = form.get_mut("required").map(Value::take) {
        required.extend(own);
    }
    form["title"] = json!(kind.title);
    form["properties"] = Value::Object(properties);
    form["required"] = Value::Array(required);
    form
}

/// What people write in `agents/*.json`.
pub(super) fn agent_config() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let root = AgentConfig::json_schema(&mut generator).to_value();
    document("A Toolyard agent", root, generator)
}

/// Every error code with the HTTP status of native routes.
pub(super) fn errors() -> String {
    let rows = ErrorCode::ALL.iter().map(|code| json!({"code": code.as_str(), "status": code.status()}));
    text(&Value::Array(rows.collect()))
}

/// The fields of a type of the agent configuration that may be left out.
pub(super) fn optional_fields(name: &str) -> Vec<String> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let root = AgentConfig::json_schema(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    let schema = if name == "AgentConfig" { Some(&root) } else { definitions.get(name) };
    let Some(schema) = schema else { return Vec::new() };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    fields.into_iter().map(|(field, _)| field).filter(|field| !required.contains(&json!(field))).collect()
}

fn document(title: &str, mut root: Value, mut generator: SchemaGenerator) -> String {
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!(title);
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        root["$defs"] = Value::Object(definitions);
    }
    text(&root)
}

fn text(value: &Value) -> String {
    // `{:#}` of a JSON value is its indented text.
    format!("{value:#}\n")
}
