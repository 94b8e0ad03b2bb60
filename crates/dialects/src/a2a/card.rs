//! Agent cards: who an agent is and how it is reached.
//!
//! The card at the root is a hybrid: the members of 1.0, and beside them those
//! of 0.3, so that clients of both read it. Strict validators find a pure card
//! under `/v1` and `/v0.3`.

use serde_json::{Map, Value, json};
use toolyard_protocol::limits;

use super::client_tools::CLIENT_TOOLS;

/// Which card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Face {
    Hybrid,
    V10,
    V03,
}

/// What a card says of an agent. Nothing of its prompt, model or private tools.
#[derive(Debug, Clone, PartialEq)]
pub struct CardFacts {
    pub name: String,
    pub description: String,
    pub version: String,
    /// `scheme://host[:port]` as the caller reached it.
    pub base: String,
    /// The agent's path, without a closing slash: `/a2a/assistant`.
    pub path: String,
    /// Who calls must show a key.
    pub keyed: bool,
    pub push: bool,
    /// Skills: id, name, description.
    pub skills: Vec<Skill>,
    /// Extensions beside client tools that must be asked for.
    pub required: Vec<String>,
    /// How long a client's call may stay open, in seconds.
    pub call_timeout_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
}

/// Media that go in and out.
const INPUT: [&str; 3] = ["text/plain", "application/json", "application/octet-stream"];
const OUTPUT: [&str; 3] = ["text/plain", "application/json", "application/octet-stream"];

pub fn card(facts: &CardFacts, face: Face) -> Value {
    let mut card = common(facts);
    match face {
        Face::V10 => extend(&mut card, part_10(facts, false)),
        Face::V03 => extend(&mut card, part_03(facts)),
        Face::Hybrid => {
            extend(&mut card, part_03(facts));
            extend(&mut card, part_10(facts, true));
            if facts.keyed {
                card.insert("securitySchemes".to_owned(), schemes_both());
            }
            extend_capabilities(&mut card, facts);
        }
    }
    Value::Object(card)
}

fn extend(card: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        card.extend(more);
    }
}

fn common(facts: &CardFacts) -> Map<String, Value> {
    let skills: Vec<Value> = facts
        .skills
        .iter()
        .map(|s| json!({ "id": s.id, "name": s.name, "description": s.description, "tags": s.tags }))
        .collect();
    let common = json!({
        "name": facts.name,
        "description": facts.description,
        "version": facts.version,
        "defaultInputModes": INPUT,
        "defaultOutputModes": OUTPUT,
        "skills": skills,
    });
    match common {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn extensions(facts: &CardFacts) -> Vec<Value> {
    let mut list = vec![json!({
        "uri": CLIENT_TOOLS,
        "description": "The client offers tools with a message, gets their calls when the task pauses, and sends the results.",
        "required": false,
        "params": {
            "maxResultBytes": limits::RESULT_BODY_BYTES,
            "maxResults": limits::RESULT_BATCH,
            "schemaDialect": "https://json-schema.org/draft/2020-12/schema",
            "parallelCalls": true,
            "callTimeoutSeconds": facts.call_timeout_seconds,
            "dialects": ["doc-001"],
            "methods": ["tasks/resume"],
        },
    })];
    list.extend(facts.required.iter().map(|uri| json!({ "uri": uri, "required": true })));
    list
}

fn part_10(facts: &CardFacts, both: bool) -> Value {
    let url = format!("{}{}", facts.base, facts.path);
    let mut interfaces = vec![
        json!({ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }),
        json!({ "url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" }),
    ];
    if both {
        interfaces.push(json!({ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3" }));
    }
    let mut card = json!({
        "supportedInterfaces": interfaces,
        "capabilities": {
            "streaming": true,
            "pushNotifications": facts.push,
            "extendedAgentCard": false,
            "extensions": extensions(facts),
        },
    });
    if facts.keyed {
        card["securitySchemes"] = json!({
            "secretKey": { "apiKeySecurityScheme": { "location": "header", "name": "x-secret-key" } },
            "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } },
        });
        card["securityRequirements"] = json!([
            { "schemes": { "secretKey": { "list": [] } } },
            { "schemes": { "bearer": { "list": [] } } },
        ]);
    }
    card
}

fn part_03(facts: &CardFacts) -> Value {
    let url = format!("{}{}", facts.base, facts.path);
    let mut card = json!({
        "url": url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{ "url": url, "transport": "JSONRPC" }],
        "protocolVersion": "0.3.0",
        "supportsAuthenticatedExtendedCard": false,
        "capabilities": {
            "streaming": true,
            "pushNotifications": facts.push,
            "stateTransitionHistory": false,
            "extensions": extensions(facts),
        },
    });
    if facts.keyed {
        card["securitySchemes"] = json!({
            "secretKey": { "type": "apiKey", "in": "header", "name": "x-secret-key" },
            "bearer": { "type": "http", "scheme": "Bearer" },
        });
        card["security"] = json!([{ "secretKey": [] }, { "bearer": [] }]);
    }
    card
}

/// Each version finds its own members in one scheme.
fn schemes_both() -> Value {
    json!({
        "secretKey": {
            "type": "apiKey", "in": "header", "name": "x-secret-key",
            "apiKeySecurityScheme": { "location": "header", "name": "x-secret-key" },
        },
        "bearer": {
            "type": "http", "scheme": "Bearer",
            "httpAuthSecurityScheme": { "scheme": "Bearer" },
        },
    })
}

fn extend_capabilities(card: &mut Map<String, Value>, facts: &CardFacts) {
    card.insert(
        "capabilities".to_owned(),
        json!({
            "streaming": true,
            "pushNotifications": facts.push,
            "extendedAgentCard": false,
            "stateTransitionHistory": false,
            "extensions": extensions(facts),
        }),
    );
}

/// What a reader of 1.0 sees of a card, in the form that is signed: without
/// the members of 0.3, and without what says nothing.
pub fn signed_view(facts: &CardFacts, face: Face) -> Value {
    let mut card = common(facts);
    extend(&mut card, part_10(facts, face == Face::Hybrid));
    without_nothing(Value::Object(card)).unwrap_or_default()
}

/// A value without members and items that say nothing, as readers drop them
/// before they check a signature. `required: false` says nothing either.
fn without_nothing(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            let said = |(name, value): (String, Value)| {
                let silent = name == "required" && value == false;
                without_nothing(value).filter(|_| !silent).map(|value| (name, value))
            };
            let map: Map<String, Value> = map.into_iter().filter_map(said).collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        Value::Array(list) => {
            let list: Vec<Value> = list.into_iter().filter_map(without_nothing).collect();
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Value::String(text) => (!text.is_empty()).then_some(Value::String(text)),
        Value::Null => None,
        plain => Some(plain),
    }
}

/// RFC 8785 of a card without its signatures: keys in the order of their
/// UTF-16 units, no spaces. Cards hold no fractions, so numbers are as they are.
pub fn canonical(card: &Value) -> String {
    let mut out = String::new();
    let unsigned = match card {
        Value::Object(map) => {
            let mut map = map.clone();
            map.remove("signatures");
            Value::Object(map)
        }
        other => other.clone(),
    };
    write_canonical(&unsigned, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}
