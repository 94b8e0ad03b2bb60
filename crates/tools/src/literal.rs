//! Finds keys that somebody wrote into a configuration as they are, instead of
//! `${secret.NAME}`.

use serde_json::Value;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::tool::ToolSpec;

use crate::template::{self, Piece};

/// Ends of names that call their value a secret, without punctuation.
const ENDS: [&str; 8] =
    ["apikey", "authtoken", "accesstoken", "secret", "password", "authorization", "accesskey", "privatekey"];
/// Whole names that do so.
const NAMES: [&str; 9] = ["token", "key", "cookie", "sig", "bearer", "pass", "passwd", "auth", "credentials"];

/// The path of a literal in a secret field of a tool, if there is one.
pub fn in_tool(spec: &ToolSpec) -> Option<String> {
    match &spec.execution {
        Execution::Request(request) => {
            let body = request.body.as_ref().and_then(|body| in_value(body, "execution.body"));
            in_map(&request.headers, "execution.headers")
                .or_else(|| in_map(&request.query_params, "execution.queryParams"))
                .or(body)
                .or_else(|| in_url(&request.url))
        }
        Execution::ImageGenerator(image) => {
            let literal = image.api_key.as_deref().is_some_and(is_literal);
            literal.then(|| "execution.apiKey".to_owned())
        }
        Execution::RemoteAgent(far) => {
            in_map(&far.headers, "execution.headers").or_else(|| in_url(&far.card))
        }
        Execution::Basic(_)
        | Execution::AiAgent(_)
        | Execution::Waiting(_)
        | Execution::Compute(_)
        | Execution::Prebuilt(_)
        | Execution::Recorder(_)
        | Execution::Mcp(_)
        | Execution::Plugin(_) => None,
    }
}

/// The same of headers, parameters or any other object.
pub fn in_map(map: &serde_json::Map<String, Value>, path: &str) -> Option<String> {
    map.iter().find_map(|(name, value)| {
        let here = format!("{path}.{name}");
        match value {
            Value::String(text) if is_secret(name) && is_literal(text) => Some(here),
            value => in_value(value, &here),
        }
    })
}

fn in_value(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(map) => in_map(map, path),
        Value::Array(items) => items.iter().find_map(|item| in_value(item, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn in_url(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let literal = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .any(|(name, value)| is_secret(name) && is_literal(value));
    literal.then(|| "execution.url".to_owned())
}

fn is_secret(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    NAMES.contains(&plain.as_str()) || ENDS.iter().any(|end| plain.ends_with(end))
}

/// Neither a reference nor anything that a call fills in.
fn is_literal(text: &str) -> bool {
    let pieces = template::parse(text).unwrap_or_default();
    !text.is_empty() && pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn x8_a_key_written_into_a_configuration_is_found() {
        let find = |value: Value| in_map(value.as_object().unwrap(), "h");
        for (name, value) in [
            ("Authorization", "Bearer sk-123"),
            ("X-Api-Key", "abc"),
            ("api_key", "abc"),
            ("x-auth-token", "abc"),
            ("clientSecret", "abc"),
            ("Cookie", "a=b"),
            ("token", "abc"),
        ] {
            assert_eq!(find(json!({name: value})), Some(format!("h.{name}")), "{name}");
            assert_eq!(find(json!({name: format!("{value} ${{secret.K}}")})), None);
            assert_eq!(find(json!({name: "${env.K}"})), None);
            assert_eq!(find(json!({name: "{{value}}"})), None);
            assert_eq!(find(json!({name: ""})), None);
        }
        for name in ["Accept", "idempotency-key", "max_tokens", "page", "x-request-id", "monkey"] {
            assert_eq!(find(json!({name: "abc"})), None, "{name}");
        }
        assert_eq!(find(json!({"a": [{"password": "x"}]})), Some("h.a.password".to_owned()));
        assert!(in_url("https://a.example/?x=1&key=abc").is_some());
        assert!(in_url("https://a.example/?key=${secret.K}&page=2").is_none());
    }
}
