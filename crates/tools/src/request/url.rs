//! The address of a request. Scheme, host and port come from the configuration
//! alone; a value of the input is at most one path segment or query value.

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use toolyard_egress::{Door, EgressError, Target};

use super::Values;
use crate::template::{self, Piece};

/// The address, with every mark replaced.
pub(super) fn compose(text: &str, args: &Value, values: &Values) -> Result<String, String> {
    let mut out = String::new();
    let mut filled = false;
    for piece in template::parse(text)? {
        match piece {
            Piece::Text(text) => out.push_str(&text),
            Piece::Reference(reference) => {
                let value = values.get(&reference).map(ExposeSecret::expose_secret).unwrap_or_default();
                // A whole base address may be a reference; behind the host it is a value.
                if is_past_host(&out) { out.push_str(&encode(value)) } else { out.push_str(value) }
            }
            Piece::Input(name) => {
                if !is_past_host(&out) {
                    return Err(in_host(&name));
                }
                let value = template::find(args, &name).ok_or_else(|| missing(&name))?;
                let value = template::text_of(value).ok_or_else(|| not_text(&name))?;
                if value.is_empty() && !out.contains('?') {
                    return Err(format!("{name} must not be empty"));
                }
                filled = true;
                out.push_str(&encode(&value));
            }
        }
    }
    if let Some(fragment) = out.find('#') {
        out.truncate(fragment);
    }
    if filled && has_dots(&out) {
        return Err("A value must not be . or .. in the path".to_owned());
    }
    Ok(out)
}

pub(super) fn in_host(name: &str) -> String {
    format!("{{{{{name}}}}} must not be part of the scheme, host or port")
}

pub(super) fn missing(name: &str) -> String {
    format!("Missing input: {name}")
}

pub(super) fn not_text(name: &str) -> String {
    format!("{name} must be text, a number or true or false")
}

/// Whether what follows can no longer change the host.
pub(super) fn is_past_host(text: &str) -> bool {
    const ENDS: [char; 4] = ['/', '?', '#', '\\'];
    text.split_once("://").is_some_and(|(_, rest)| !rest.starts_with(ENDS) && rest.contains(ENDS))
}

/// Parsers walk up at `..`, also when its dots are encoded.
fn has_dots(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    path.split('/').any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}

/// Everything but letters, digits and `-_.~` in percents.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Adds a parameter to the query.
pub(super) fn add(url: &mut String, name: &str, value: &str) {
    let mark = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    url.push_str(&format!("{mark}{}={}", encode(name), encode(value)));
}

/// The address as the door reads it. What follows the host has not moved it.
pub(super) fn target(door: &Door, url: &SecretString) -> Result<Target, EgressError> {
    let text = url.expose_secret();
    let target = door.target(text)?;
    let host = text.split_once("://").map_or(0, |(scheme, _)| scheme.len() + 3);
    let end = text[host..].find(['/', '?']).map_or(text.len(), |i| host + i);
    if door.target(&text[..end])?.origin() != target.origin() {
        return Err(EgressError::Refused("a value must not change the host"));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::template::Reference;
    use serde_json::json;
    use toolyard_protocol::SecretName;

    fn made(text: &str, args: &Value) -> Result<String, String> {
        let env = |name| Reference::Env(SecretName::parse(name).unwrap());
        let values = Values::from([
            (env("BASE"), SecretString::from("https://api.example/v1")),
            (env("KEY"), SecretString::from("a/b?c&d=e")),
        ]);
        compose(text, args, &values)
    }

    #[test]
    fn g10_a_value_fills_one_segment_or_one_parameter() {
        let args = json!({"id": "7", "evil": "../../admin?x=1#y", "n": 3, "t": true, "o": {"p": "q"}, "e": "",
            "dots": "..", "dot": ".", "coded": "%2e%2e", "host": "evil.example", "list": [1]});
        let cases = [
            ("https://a.example/o/{{id}}", "https://a.example/o/7"),
            ("https://a.example/o/{{evil}}/x", "https://a.example/o/..%2F..%2Fadmin%3Fx%3D1%23y/x"),
            ("https://a.example/{{n}}/{{t}}/{{o.p}}", "https://a.example/3/true/q"),
            ("https://a.example/?q={{evil}}", "https://a.example/?q=..%2F..%2Fadmin%3Fx%3D1%23y"),
            ("https://a.example/?q={{e}}", "https://a.example/?q="),
            ("https://a.example/o/{{coded}}", "https://a.example/o/%252e%252e"),
            ("https://a.example/x.{{dot}}.y", "https://a.example/x...y"),
            ("${env.BASE}/o/{{id}}", "https://api.example/v1/o/7"),
            ("https://a.example/?k=${env.KEY}", "https://a.example/?k=a%2Fb%3Fc%26d%3De"),
            ("https://a.example/x#{{id}}", "https://a.example/x"),
        ];
        for (text, expected) in cases {
            assert_eq!(made(text, &args).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "https://{{host}}/",
            "https://{{host}}.example/",
            "https://a.example:{{n}}/",
            "https://a.example{{host}}/",
            "{{host}}",
            "{{host}}://a.example/",
            "https:///{{host}}/",
            "https:{{host}}/",
            "https:/{{host}}/",
            "https://\\{{host}}/",
            "https://?{{host}}",
            "https://a.example/{{dots}}",
            "https://a.example/{{dot}}/x",
            "https://a.example/{{dot}}{{dot}}/x",
            "https://a.example/%2e{{dot}}/x",
            "https://a.example/{{e}}",
            "https://a.example/{{unknown}}",
            "https://a.example/{{list}}",
            "https://a.example/{{o}}",
        ] {
            assert!(made(text, &args).is_err(), "{text}: {:?}", made(text, &args));
        }
    }
}
