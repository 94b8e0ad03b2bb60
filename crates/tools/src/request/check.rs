//! What is wrong with a `request` before anybody calls it.

use std::collections::HashSet;

use serde_json::Value;
use toolyard_egress::Header;
use toolyard_protocol::agent::execution::{Method, Request};
use toolyard_protocol::limits;

use super::compose::{BodyForm, form_of, json_text};
use super::url::{in_host, is_past_host};
use crate::template::{self, Piece, Reference};

/// Checks a configuration; the error says what is wrong.
pub fn check(request: &Request) -> Result<(), String> {
    references(request)?;
    check_url(&request.url)?;
    for name in request.headers.keys() {
        Header::chosen(name, "x".to_owned().into()).map_err(|e| format!("headers.{name:?}: {e}"))?;
    }
    let scalar = |value: &Value| !value.is_object() && !value.is_array() && !value.is_null();
    if let Some((name, _)) = request.headers.iter().find(|(_, value)| !scalar(value)) {
        return Err(format!("headers.{name:?}: must be text, a number or true or false"));
    }
    if request.method == Method::Get && request.body.is_some() {
        return Err("body: a GET request has no body".to_owned());
    }
    if let Some(Value::String(text)) = &request.body
        && form_of(&request.headers, request.body.as_ref()) == BodyForm::Other
        && json_text(text).is_none()
        && template::parse(text)?.iter().any(|piece| matches!(piece, Piece::Input(_)))
    {
        return Err("body: {{…}} works in JSON, in forms and in plain text".to_owned());
    }
    let most = limits::REQUEST_MAX_MS;
    if request.timeout.is_some_and(|ms| ms == 0 || ms > most) {
        return Err(format!("timeout: must be 1 to {most} ms"));
    }
    Ok(())
}

fn check_url(url: &str) -> Result<(), String> {
    let mut before = String::new();
    for piece in template::parse(url)? {
        match piece {
            Piece::Text(text) => before.push_str(&text),
            // A whole base address may be a reference: it is looked at when it is used.
            Piece::Reference(_) if before.is_empty() => return Ok(()),
            Piece::Reference(_) => before.push('x'),
            Piece::Input(name) if !is_past_host(&before) => return Err(format!("url: {}", in_host(&name))),
            Piece::Input(_) => before.push('x'),
        }
    }
    toolyard_egress::Target::parse(&before).map(drop).map_err(|e| format!("url: {e}"))
}

/// All references of a request.
pub(super) fn references(request: &Request) -> Result<HashSet<Reference>, String> {
    let mut found = HashSet::new();
    gather(&Value::String(request.url.clone()), "url", &mut found)?;
    for (name, value) in &request.headers {
        gather(value, &format!("headers.{name:?}"), &mut found)?;
    }
    for (name, value) in &request.query_params {
        gather(value, &format!("queryParams.{name:?}"), &mut found)?;
    }
    if let Some(body) = &request.body {
        gather(body, "body", &mut found)?;
    }
    Ok(found)
}

fn gather(value: &Value, path: &str, found: &mut HashSet<Reference>) -> Result<(), String> {
    match value {
        Value::String(text) => {
            let pieces = template::parse(text).map_err(|e| format!("{path}: {e}"))?;
            found.extend(pieces.into_iter().filter_map(|piece| match piece {
                Piece::Reference(reference) => Some(reference),
                Piece::Text(_) | Piece::Input(_) => None,
            }));
        }
        Value::Array(items) => items.iter().try_for_each(|item| gather(item, path, found))?,
        Value::Object(map) => map.values().try_for_each(|value| gather(value, path, found))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn g10_a_request_that_cannot_work_is_refused_when_it_is_stored() {
        let checked = |config: Value| check(&serde_json::from_value(config).unwrap());
        for fine in [
            json!({"url": "https://a.example/{{id}}"}),
            json!({"url": "${env.BASE}/x/{{id}}"}),
            json!({"url": "https://a.example/", "method": "DELETE", "body": {"a": "{{b}}"}}),
            json!({"url": "https://a.example/", "headers": {"x-a": 1}, "timeout": 600_000}),
        ] {
            assert_eq!(checked(fine.clone()), Ok(()), "{fine}");
        }
        for (bad, says) in [
            (json!({"url": "https://{{host}}/"}), "url: {{host}} must not be"),
            (json!({"url": "ftp://a.example/"}), "url: "),
            (json!({"url": "https://u:p@a.example/"}), "url: "),
            (json!({"url": ""}), "url: "),
            (json!({"url": "https://a.example/${secret.a-b}"}), "url: Invalid secret name"),
            (json!({"url": "https://a.example/", "headers": {"Host": "b"}}), "headers.\"Host\": "),
            (json!({"url": "https://a.example/", "headers": {"a b": "b"}}), "headers.\"a b\": "),
            (json!({"url": "https://a.example/", "headers": {"a": []}}), "headers.\"a\": "),
            (json!({"url": "https://a.example/", "headers": {"a": "${env.}"}}), "headers.\"a\": "),
            (json!({"url": "https://a.example/", "body": {}}), "body: a GET"),
            (
                json!({"url": "https://a.example/", "method": "POST", "body": "<a>{{b}}</a>",
                       "headers": {"content-type": "text/xml"}}),
                "body: {{…}} works",
            ),
            (json!({"url": "https://a.example/", "timeout": 0}), "timeout: "),
            (json!({"url": "https://a.example/", "timeout": 600_001}), "timeout: must be 1 to 600000"),
        ] {
            let said = checked(bad.clone()).unwrap_err();
            assert!(said.starts_with(says), "{bad}: {said}");
        }
    }
}
