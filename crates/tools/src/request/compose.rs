//! From a configuration, an input and the values of its references to what
//! goes over the wire. Pure.

use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use toolyard_egress::Header;
use toolyard_protocol::agent::execution::{Method, Request};

use super::Values;
use super::url::{self, missing, not_text};
use crate::template::{self, Piece};

/// What is sent.
pub(super) struct Composed {
    pub(super) url: SecretString,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Bytes>,
}

/// How a text body keeps its values apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyForm {
    Json,
    Form,
    Plain,
    /// Nobody knows how values are escaped in it.
    Other,
}

pub(super) fn compose(request: &Request, args: &Value, values: &Values) -> Result<Composed, String> {
    let fill = Fill { args, values };
    let mut address = url::compose(&request.url, args, values)?;
    for (name, value) in &request.query_params {
        for text in fill.parameter(name, value)? {
            url::add(&mut address, name, &text);
        }
    }
    let mut headers = Vec::new();
    for (name, value) in &request.headers {
        let Some(text) = fill.header(name, value)? else { continue };
        let header = Header::chosen(name, text.into());
        headers.push(header.map_err(|e| format!("Header {name} cannot be sent: {e}"))?);
    }
    let form = form_of(&request.headers, request.body.as_ref());
    let body = fill.body(request, form)?;
    if body.is_some() && form == BodyForm::Plain && !headers.iter().any(|h| h.name() == "content-type") {
        headers.push(Header::plain("content-type", "text/plain; charset=utf-8"));
    }
    Ok(Composed { url: address.into(), headers, body: body.map(Bytes::from) })
}

/// The form of the body, by the configured content type.
pub(super) fn form_of(headers: &Map<String, Value>, body: Option<&Value>) -> BodyForm {
    let named = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let media = named.and_then(|(_, value)| value.as_str()).map(str::to_ascii_lowercase);
    let media = media.as_deref().and_then(|text| text.split(';').next()).map(str::trim);
    match media {
        Some("application/x-www-form-urlencoded") => BodyForm::Form,
        Some("text/plain") => BodyForm::Plain,
        Some(media) if media == "application/json" || media.ends_with("+json") => BodyForm::Json,
        Some(_) => BodyForm::Other,
        None => match body {
            Some(Value::String(text)) if json_text(text).is_none() => BodyForm::Plain,
            _ => BodyForm::Json,
        },
    }
}

/// An object or list that somebody wrote as text.
pub(super) fn json_text(text: &str) -> Option<Value> {
    serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array())
}

struct Fill<'a> {
    args: &'a Value,
    values: &'a Values,
}

impl Fill<'_> {
    /// A text with its marks replaced. A text that is one mark without a value
    /// is left out.
    fn text(&self, text: &str, shape: impl Fn(&str) -> String) -> Result<Option<String>, String> {
        let pieces = template::parse(text)?;
        if let [Piece::Input(name)] = pieces.as_slice()
            && template::find(self.args, name).is_none()
        {
            return Ok(None);
        }
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Reference(reference) => {
                    out.push_str(&shape(
                        self.values.get(&reference).map_or("", |value| value.expose_secret()),
                    ));
                }
                Piece::Input(name) => {
                    let value = template::find(self.args, &name).ok_or_else(|| missing(&name))?;
                    out.push_str(&shape(&template::text_of(value).ok_or_else(|| not_text(&name))?));
                }
            }
        }
        Ok(Some(out))
    }

    /// The values of a parameter: a list stands for several.
    fn parameter(&self, name: &str, value: &Value) -> Result<Vec<String>, String> {
        let filled = self.json(value)?;
        match filled {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| template::text_of(item).ok_or_else(|| not_text(name))).collect()
            }
            Some(value) => Ok(vec![template::text_of(&value).ok_or_else(|| not_text(name))?]),
        }
    }

    fn header(&self, name: &str, value: &Value) -> Result<Option<String>, String> {
        let text = match value {
            Value::String(text) => self.text(text, str::to_owned)?,
            value => Some(template::text_of(value).ok_or_else(|| not_text(name))?),
        };
        if text.as_deref().is_some_and(|text| text.chars().any(char::is_control)) {
            return Err(format!("Header {name} cannot be sent: its value has control characters"));
        }
        Ok(text)
    }

    /// A value with the marks of all its texts replaced. A text that is one
    /// mark becomes the value itself, of whatever type.
    fn json(&self, value: &Value) -> Result<Option<Value>, String> {
        Ok(Some(match value {
            Value::String(text) => {
                if let [Piece::Input(name)] = template::parse(text)?.as_slice() {
                    return Ok(template::find(self.args, name).cloned());
                }
                return Ok(self.text(text, str::to_owned)?.map(Value::String));
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| Ok(self.json(item)?.unwrap_or_default()));
                Value::Array(items.collect::<Result<_, String>>()?)
            }
            Value::Object(map) => {
                let mut out = Map::new();
                for (name, value) in map {
                    if let Some(value) = self.json(value)? {
                        out.insert(name.clone(), value);
                    }
                }
                Value::Object(out)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }))
    }

    fn body(&self, request: &Request, form: BodyForm) -> Result<Option<Vec<u8>>, String> {
        let body = match (&request.body, request.method) {
            (Some(body), _) => body,
            (None, Method::Get | Method::Delete) => return Ok(None),
            (None, Method::Post | Method::Put | Method::Patch) => {
                let text = match form {
                    BodyForm::Form => self.form(self.args)?,
                    _ => self.args.to_string(),
                };
                return Ok(Some(text.into_bytes()));
            }
        };
        let text = match (form, body) {
            (BodyForm::Json, Value::String(text)) => {
                let value = json_text(text).unwrap_or_else(|| body.clone());
                self.json(&value)?.unwrap_or_default().to_string()
            }
            (BodyForm::Form, Value::String(text)) => self.text(text, url::encode)?.unwrap_or_default(),
            (_, Value::String(text)) => self.text(text, str::to_owned)?.unwrap_or_default(),
            (BodyForm::Form, body) => self.form(&self.json(body)?.unwrap_or_default())?,
            (_, body) => self.json(body)?.unwrap_or_default().to_string(),
        };
        Ok(Some(text.into_bytes()))
    }

    /// `a=1&b=2`
    fn form(&self, value: &Value) -> Result<String, String> {
        let Value::Object(map) = value else { return Err("The body must be an object".to_owned()) };
        let mut pairs = Vec::new();
        for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            let items = match value {
                Value::Array(items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            for item in items {
                let text = template::text_of(item).ok_or_else(|| not_text(name))?;
                pairs.push(format!("{}={}", url::encode(name), url::encode(&text)));
            }
        }
        Ok(pairs.join("&"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::template::Reference;
    use serde_json::json;
    use toolyard_protocol::SecretName;

    /// Address, headers and body.
    type Sent = (String, Vec<(String, String)>, Option<String>);

    fn made(config: Value, args: &Value) -> Result<Sent, String> {
        let request: Request = serde_json::from_value(config).unwrap();
        let key = Reference::Secret(SecretName::parse("K").unwrap());
        let values = Values::from([(key, SecretString::from("s3cret {{id}} ${secret.K}"))]);
        let composed = compose(&request, args, &values)?;
        let headers =
            composed.headers.iter().map(|h| (h.name().to_owned(), h.exposed().to_owned())).collect();
        let body = composed.body.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        Ok((composed.url.expose_secret().to_owned(), headers, body))
    }

    #[test]
    fn g10_values_stay_where_they_are_put() {
        let args = json!({"id": 7, "q": "a&b=c", "tags": ["x", "y z"], "o": {"deep": [1]},
            "sly": "\",\"admin\":true,\"x\":\"", "ref": "${secret.K} {{id}}", "variables": {"v": "w"}});
        let (url, headers, body) = made(
            json!({"url": "https://a.example/{{id}}?fixed=1", "method": "POST",
                "headers": {"Authorization": "Bearer ${secret.K}", "X-Id": "{{id}}", "X-None": "{{none}}", "X-N": 5},
                "queryParams": {"q": "{{q}}", "tag": "{{tags}}", "none": "{{none}}", "v": "<{{v}}>"},
                "body": {"id": "{{id}}", "text": "n{{id}}", "sly": "{{sly}}", "o": "{{o}}", "none": "{{none}}",
                         "list": ["{{none}}", "{{ref}}"], "n": null, "key": "${secret.K}"}}),
            &args,
        )
        .unwrap();
        assert_eq!(url, "https://a.example/7?fixed=1&q=a%26b%3Dc&tag=x&tag=y%20z&v=%3Cw%3E");
        let secret = "s3cret {{id}} ${secret.K}";
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        assert_eq!(
            headers,
            [pair("authorization", &format!("Bearer {secret}")), pair("x-id", "7"), pair("x-n", "5")]
        );
        let body: Value = serde_json::from_str(&body.unwrap()).unwrap();
        // What the model says about secrets stays what it says.
        let expected = json!({"id": 7, "text": "n7", "sly": "\",\"admin\":true,\"x\":\"", "o": {"deep": [1]},
            "list": [null, "${secret.K} {{id}}"], "n": null, "key": secret});
        assert_eq!(body, expected);
    }

    #[test]
    fn g10_a_missing_body_is_the_whole_input_for_verbs_that_have_one() {
        let args = json!({"a": 1, "b": "x y"});
        for method in ["POST", "PUT", "PATCH"] {
            let (_, _, body) = made(json!({"url": "https://a.example/", "method": method}), &args).unwrap();
            assert_eq!(body.as_deref(), Some("{\"a\":1,\"b\":\"x y\"}"), "{method}");
        }
        for method in ["GET", "DELETE"] {
            assert_eq!(made(json!({"url": "https://a.example/", "method": method}), &args).unwrap().2, None);
        }
        let form = json!({"content-type": "application/x-www-form-urlencoded"});
        let sent =
            made(json!({"url": "https://a.example/", "method": "POST", "headers": form}), &args).unwrap();
        assert_eq!(sent.2.as_deref(), Some("a=1&b=x%20y"));
    }

    #[test]
    fn g10_a_text_body_keeps_its_form() {
        let args = json!({"q": "a&b=\"c\""});
        let body = |body: Value, kind: Option<&str>| {
            let headers = kind.map_or(json!({}), |kind| json!({"Content-Type": kind}));
            let config =
                json!({"url": "https://a.example/", "method": "POST", "headers": headers, "body": body});
            let (_, headers, body) = made(config, &args).unwrap();
            (headers.first().map(|(_, kind)| kind.clone()), body.unwrap())
        };
        let plain = Some("text/plain; charset=utf-8".to_owned());
        assert_eq!(body(json!("say {{q}}"), None), (plain, "say a&b=\"c\"".to_owned()));
        assert_eq!(body(json!("{\"q\": \"{{q}}\"}"), None), (None, "{\"q\":\"a&b=\\\"c\\\"\"}".to_owned()));
        let form = "application/x-www-form-urlencoded";
        assert_eq!(body(json!("x=1&q={{q}}"), Some(form)).1, "x=1&q=a%26b%3D%22c%22");
        assert_eq!(body(json!({"q": "{{q}}"}), Some(form)).1, "q=a%26b%3D%22c%22");
    }

    #[test]
    fn g10_a_value_cannot_add_a_header() {
        let config = |name: &str| json!({"url": "https://a.example/", "headers": {name: "x{{v}}"}});
        for value in ["a\r\nhost: evil", "a\nb", "a\0b", "\u{7f}", "\u{e9}\r"] {
            let error = made(config("X-A"), &json!({"v": value})).unwrap_err();
            assert!(error.starts_with("Header X-A cannot be sent"), "{error}");
            assert!(!error.contains("evil"), "{error}");
        }
        assert!(made(config("X-A"), &json!({})).unwrap_err().contains("Missing input: v"));
        assert!(made(config("X-A"), &json!({"v": {}})).is_err());
        assert!(made(config("Host"), &json!({"v": "evil"})).is_err());
    }
}
