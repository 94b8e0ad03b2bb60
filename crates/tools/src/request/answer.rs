//! What the model gets to read of an answer.

use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use toolyard_egress::Whole;

use super::Values;
use super::url::encode;

/// Headers that speak to the connection, or hand out credentials.
const KEPT_BACK: [&str; 14] = [
    "set-cookie",
    "set-cookie2",
    "authorization",
    "www-authenticate",
    "authentication-info",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "alt-svc",
    "report-to",
    "nel",
];
/// A shorter secret would be found everywhere.
const SHORTEST: usize = 6;

/// `{success, status, data, headers}`
pub(super) fn render(whole: Whole, values: &Values) -> Value {
    let media = whole.headers.iter().find(|(name, _)| name == "content-type").map(|(_, kind)| kind.clone());
    let media = media.unwrap_or_default().to_ascii_lowercase();
    let media = media.split(';').next().unwrap_or_default().trim().to_owned();
    let hide = Hide::new(values);
    let headers: Map<String, Value> = whole
        .headers
        .iter()
        .filter(|(name, _)| !KEPT_BACK.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), Value::String(hide.text(value))))
        .collect();
    let data = hide.value(data(&whole.body, &media));
    json!({
        "success": (200..300).contains(&whole.status),
        "status": whole.status,
        "data": data,
        "headers": headers,
    })
}

fn data(body: &[u8], media: &str) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let is_json = media == "application/json" || media.ends_with("+json");
    if is_json && let Ok(value) = serde_json::from_slice(body) {
        return value;
    }
    match std::str::from_utf8(body) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) if media.starts_with("text/") => Value::String(String::from_utf8_lossy(body).into_owned()),
        // No model reads bytes.
        Err(_) => json!({"mediaType": media, "bytes": body.len()}),
    }
}

/// Takes secrets out of an answer that repeats them.
struct Hide(Vec<(String, String)>);

impl Hide {
    fn new(values: &Values) -> Self {
        let mut forms = Vec::new();
        for (reference, value) in values {
            let value = value.expose_secret();
            if value.len() < SHORTEST {
                continue;
            }
            forms.push((value.to_owned(), reference.to_string()));
            let encoded = encode(value);
            if encoded != value {
                forms.push((encoded, reference.to_string()));
            }
        }
        // A secret may be a part of another one.
        forms.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(forms)
    }

    fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (value, name) in &self.0 {
            if out.contains(value.as_str()) {
                out = out.replace(value.as_str(), name);
            }
        }
        out
    }

    fn value(&self, value: Value) -> Value {
        if self.0.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(map) => {
                Value::Object(map.into_iter().map(|(k, v)| (self.text(&k), self.value(v))).collect())
            }
            // A secret of digits may come back as a number.
            Value::Number(number) => {
                let text = number.to_string();
                let hidden = self.text(&text);
                if hidden == text { Value::Number(number) } else { Value::String(hidden) }
            }
            Value::Null | Value::Bool(_) => value,
        }
    }
}
