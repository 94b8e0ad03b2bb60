//! Answers in the form that a request asked for.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use serde_json::Value;
use toolyard_dialects::a2a::{Binding, CLIENT_TOOLS, Refused, Request, Taste, Version, sse};

use crate::routes::answer;
use crate::routes::call::Call;

const A2A_JSON: &str = "application/a2a+json";

/// What is known of a request when it is answered.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) binding: Binding,
    pub(super) version: Version,
    /// The extensions that it asks for and that are known here.
    extensions: Vec<&'static str>,
    media: &'static str,
    /// It wants a stream although its method does not say so.
    pub(super) wants_stream: bool,
    /// `scheme://host` as the caller reached the gateway.
    pub(super) base: String,
}

pub(super) fn binding(rest: bool) -> Binding {
    if rest { Binding::Rest } else { Binding::JsonRpc(Value::Null) }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// Is the body JSON, by what its sender says?
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media = header(headers, "content-type").split(';').next().unwrap_or_default().trim();
    let media = media.to_ascii_lowercase();
    media == "application/json" || media == A2A_JSON
}

/// The media type of an answer: what the request spoke, or asks for.
fn media(call: &Call, binding: &Binding) -> &'static str {
    let own = header(&call.headers, "content-type").starts_with(A2A_JSON);
    let asked = header(&call.headers, "accept").contains(A2A_JSON);
    if *binding == Binding::Rest && (own || asked) { A2A_JSON } else { "application/json" }
}

/// `scheme://host` of this gateway: configured, or as the request named it.
pub(super) fn base(call: &Call) -> String {
    if let Some(url) = &call.app.config.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = header(&call.headers, "host");
    let host = if host.is_empty() { call.app.config.listen.to_string() } else { host.to_owned() };
    let scheme = if header(&call.headers, "x-forwarded-proto") == "https" { "https" } else { "http" };
    format!("{scheme}://{host}")
}

impl Asked {
    pub(super) fn new(call: &Call, request: &Request) -> Self {
        let listed = ["a2a-extensions", "x-a2a-extensions"].map(|name| header(&call.headers, name));
        let named = listed.iter().any(|list| list.split(',').any(|uri| uri.trim() == CLIENT_TOOLS));
        Self {
            media: media(call, &request.binding),
            binding: request.binding.clone(),
            version: request.version,
            extensions: if named { vec![CLIENT_TOOLS] } else { Vec::new() },
            wants_stream: header(&call.headers, "accept").contains("text/event-stream"),
            base: base(call),
        }
    }

    /// The message itself asks for the extension.
    pub(super) fn with_client_tools(mut self, asked: bool) -> Self {
        if asked && self.extensions.is_empty() {
            self.extensions.push(CLIENT_TOOLS);
        }
        self
    }

    pub(super) fn taste(&self) -> Taste {
        Taste { client_tools: !self.extensions.is_empty(), literal: false }
    }

    pub(super) fn files(&self) -> String {
        format!("{}/api/files/", self.base)
    }

    pub(super) fn answer(&self, result: Value) -> Response {
        self.dress(answer::text(200, self.binding.answer(result).to_string()))
    }

    pub(super) fn refuse(&self, refused: &Refused) -> Response {
        self.dress(refusal(refused))
    }

    /// The same as the one event of a stream.
    pub(super) fn refuse_framed(&self, refused: &Refused) -> Response {
        let value = refused.binding.refusal(&refused.fault, refused.version);
        self.dress_stream(answer::text(200, sse(None, &value)))
    }

    /// The head that clients look for.
    pub(super) fn dress(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media));
        self.extend(headers);
        response
    }

    /// The same for a stream.
    pub(super) fn dress_stream(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        self.extend(headers);
        response
    }

    fn extend(&self, headers: &mut HeaderMap) {
        if !self.extensions.is_empty() {
            let name = HeaderName::from_static(match self.version {
                Version::V10 => "a2a-extensions",
                Version::V03 => "x-a2a-extensions",
            });
            if let Ok(value) = HeaderValue::from_str(&self.extensions.join(",")) {
                headers.insert(name, value);
            }
        }
    }
}

/// A request that was not understood.
pub(super) fn refused(call: &Call, refused: &Refused) -> Response {
    let mut response = refusal(refused);
    let media = media(call, &refused.binding);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn refusal(refused: &Refused) -> Response {
    let Refused { binding, version, fault } = refused;
    answer::text(binding.status(fault), binding.refusal(fault, *version).to_string())
}
