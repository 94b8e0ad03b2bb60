//! The OpenAPI 3.1 document, made from the table.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use toolyard_protocol::ApiError;

use super::route::{Access, BodyKind, Route};
use super::table::table;

/// The whole document. It depends on the code alone.
pub(crate) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<ApiError>();
    let mut paths: Map<String, Value> = Map::new();
    for route in table() {
        let entry = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        if let Value::Object(entry) = entry {
            entry.insert(route.method.as_str().to_ascii_lowercase(), operation(&route, &mut generator));
        }
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolyard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs an agent's tool loop and sends every tool call to the place that can execute it.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"}
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Error": {
                "description": "Refused: a stable code, a sentence and, if a limit was hit, its number.",
                "content": {"application/json": {"schema": {
                    "type": "object", "required": ["error"], "properties": {"error": error}
                }}}
            }},
            "securitySchemes": {
                "secretKey": {"type": "apiKey", "in": "header", "name": "x-secret-key"},
                "publicKey": {"type": "apiKey", "in": "header", "name": "x-public-key"},
                "user": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            }
        }
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "security": security(route.access),
        "x-access": route.access.as_str(),
        "parameters": parameters(route),
        "responses": {
            route.status.to_string(): response(route, generator),
            "default": {"$ref": "#/components/responses/Error"}
        }
    });
    let body = match (route.body, route.request) {
        (BodyKind::File, own) => {
            let mut content = json!({"*/*": {"schema": {"type": "string", "format": "binary"}}});
            if let Some(schema) = own {
                content["application/json"] = json!({"schema": schema(generator)});
            }
            Some(content)
        }
        (_, Some(schema)) => Some(json!({"application/json": {"schema": schema(generator)}})),
        (_, None) => None,
    };
    if let Some((client, gateway)) = route.messages {
        operation["x-websocket"] = json!({"client": client(generator), "gateway": gateway(generator)});
    }
    if let (Some(content), Value::Object(fields)) = (body, &mut operation) {
        fields.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
    }
    operation
}

fn response(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut response = plain_response(route, generator);
    if route.streams {
        response["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
    }
    response
}

fn plain_response(route: &Route, generator: &mut SchemaGenerator) -> Value {
    match (route.response, route.media) {
        (Some(schema), media) => {
            json!({"description": "Done", "content": {media: {"schema": schema(generator)}}})
        }
        (None, "application/json") => json!({"description": "Done"}),
        (None, media) => json!({"description": "Done", "content": {media: {"schema": {"type": "string"}}}}),
    }
}

fn security(access: Access) -> Value {
    match access {
        Access::Open => json!([]),
        Access::Local => json!([{}, {"secretKey": []}]),
        Access::Secret => json!([{"secretKey": []}]),
        Access::Either | Access::Member => json!([{"secretKey": []}, {"publicKey": [], "user": []}]),
        Access::Signed | Access::Card => json!([{"secretKey": []}, {"publicKey": [], "user": []}, {}]),
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let named = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| name.trim_start_matches('*'));
    let mut all: Vec<Value> = named
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    all.extend(route.query.iter().map(|(name, what)| {
        json!({"name": name, "in": "query", "description": what, "schema": {"type": "string"}})
    }));
    if route.once {
        all.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": toolyard_protocol::limits::IDEMPOTENCY_KEY},
            "description": "The same key with the same body gives the same answer and has one effect."
        }));
    }
    all
}

/// `GET /api/agents/{agent}` → `getAgentsByAgent`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for part in route.path.split('/').filter(|part| !part.is_empty() && *part != "api") {
        let (by, word) = match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
            Some(name) => ("By", name.trim_start_matches('*')),
            None => ("", part),
        };
        id.push_str(by);
        for word in word.split(['-', '.', '_']) {
            let mut letters = word.chars();
            id.extend(letters.next().map(|c| c.to_ascii_uppercase()));
            id.push_str(letters.as_str());
        }
    }
    // The same address with a slash behind it is another line of the table.
    if route.path.len() > 1 && route.path.ends_with('/') {
        id.push_str("Slash");
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let mut seen = HashSet::new();
        for route in table() {
            assert!(seen.insert(operation_id(&route)), "{route:?}");
        }
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        let document = document();
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(to)) = fields.get("$ref") {
                        let found = document.pointer(to.trim_start_matches('#'));
                        assert!(found.is_some(), "{to}");
                    }
                    open.extend(fields.values());
                }
                Value::Array(items) => open.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }
}
