//! Requests that nobody can answer, refused as JSON-RPC errors. rmcp says such
//! things in plain text, some of it in words of its own insides. The status
//! stays, since clients go by it, except that a body that is no message is the
//! client's fault and not its media type's. What rmcp says in JSON is right.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use toolyard_protocol::limits;

use super::{Body, SESSION};

const JSON: &[u8] = b"application/json";

const NOT_JSON: i32 = -32700;
const NO_REQUEST: i32 = -32600;
const BAD_PARAMS: i32 = -32602;
const BROKEN: i32 = -32603;
/// As the official servers say it.
const NO_SESSION: i32 = -32001;

/// What a refusal is about.
pub(super) struct Asked {
    method: Method,
    /// Its media type is JSON's.
    says_json: bool,
    has_session: bool,
    body: Bytes,
}

impl Asked {
    pub(super) fn of(request: &http::Request<Bytes>) -> Self {
        let kind = request.headers().get(CONTENT_TYPE);
        Self {
            method: request.method().clone(),
            says_json: kind.is_some_and(|kind| kind.as_bytes().starts_with(JSON)),
            has_session: request.headers().contains_key(SESSION),
            body: request.body().clone(),
        }
    }

    pub(super) fn no_session(&self) -> Response<Body> {
        let text = "This session is not open here: it has ended, or the gateway was started again. Open one with initialize";
        self.refuse(StatusCode::NOT_FOUND, NO_SESSION, text)
    }

    pub(super) fn too_many_sessions(&self) -> Response<Body> {
        let text = format!("The limit is {} open sessions", limits::MCP_SERVER_SESSIONS);
        self.refuse(StatusCode::SERVICE_UNAVAILABLE, BROKEN, &text)
    }

    /// The answer as it is, unless it is a refusal in plain text.
    pub(super) async fn in_json(&self, response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !(status.is_client_error() || status.is_server_error()) || kind.starts_with(JSON) {
            return response;
        }
        let (head, body) = response.into_parts();
        let told = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let (status, code, text) = self.translate(status, &String::from_utf8_lossy(&told));
        let mut refused = self.refuse(status, code, &text);
        // What else the head says holds on, as which methods are allowed.
        for (name, value) in
            head.headers.iter().filter(|(name, _)| ![CONTENT_TYPE, CONTENT_LENGTH].contains(name))
        {
            refused.headers_mut().insert(name.clone(), value.clone());
        }
        refused
    }

    fn translate(&self, status: StatusCode, told: &str) -> (StatusCode, i32, String) {
        match status {
            StatusCode::NOT_ACCEPTABLE if self.method == Method::GET => {
                (status, NO_REQUEST, "Accept must name text/event-stream".to_owned())
            }
            StatusCode::NOT_ACCEPTABLE => (
                status,
                NO_REQUEST,
                "Accept must name both application/json and text/event-stream".to_owned(),
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE if self.says_json => self.no_message(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                (status, NO_REQUEST, "Content-Type must be application/json".to_owned())
            }
            StatusCode::NOT_FOUND if self.has_session => {
                (status, NO_SESSION, "This session is not open here: open one with initialize".to_owned())
            }
            StatusCode::BAD_REQUEST if told.ends_with("Session ID is required") => self.no_opening(),
            StatusCode::METHOD_NOT_ALLOWED => (
                status,
                NO_REQUEST,
                format!("{} is not for this address: send messages by POST", self.method),
            ),
            StatusCode::PAYLOAD_TOO_LARGE => {
                (status, NO_REQUEST, format!("The limit is {} bytes", limits::MCP_SERVER_BODY_BYTES))
            }
            _ if status.is_server_error() => {
                (status, BROKEN, "Something went wrong inside the gateway".to_owned())
            }
            _ => {
                let said = told.split_once(": ").map_or(told, |(_, said)| said);
                (status, NO_REQUEST, said.to_owned())
            }
        }
    }

    /// A body that is not what its media type promises, or no message.
    fn no_message(&self) -> (StatusCode, i32, String) {
        let (code, text) = match serde_json::from_slice::<Value>(&self.body) {
            Err(e) => (NOT_JSON, format!("The body is not JSON: {e}")),
            Ok(Value::Array(_)) => (NO_REQUEST, "Send one message at a time, not a list".to_owned()),
            Ok(_) => {
                let text = "The body is no JSON-RPC message: it needs \"jsonrpc\": \"2.0\" and a method, and a request an id that is a text or a whole number";
                (NO_REQUEST, text.to_owned())
            }
        };
        (StatusCode::BAD_REQUEST, code, text)
    }

    /// A request of the older era without a session, or one that should have opened it.
    fn no_opening(&self) -> (StatusCode, i32, String) {
        let opens = self.message().is_some_and(|message| message["method"] == "initialize");
        let (code, text) = if opens {
            (
                BAD_PARAMS,
                "The params of initialize do not fit: it needs protocolVersion, capabilities and clientInfo, and an id",
            )
        } else {
            (
                NO_REQUEST,
                "Mcp-Session-Id is missing: open a session with initialize, or send what 2026-07-28 wants in _meta",
            )
        };
        (StatusCode::BAD_REQUEST, code, text.to_owned())
    }

    fn message(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Names the request if it has a name: a client waits for the answer to it.
    fn refuse(&self, status: StatusCode, code: i32, text: &str) -> Response<Body> {
        let id = self.message().and_then(|mut message| message.get_mut("id").map(Value::take));
        let id = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64()).unwrap_or_default();
        let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
