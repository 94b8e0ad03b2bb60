//! How a chat client wants to hear: which form, and what its version knows.

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolyard_dialects::ai_sdk::{ChatTelling, Options, UiStream};
use toolyard_dialects::data_stream_v1::DataStream;
use toolyard_dialects::telling::Start;
use toolyard_protocol::{RunId, SpaceId, Viewer};

use crate::http::Refusal;
use crate::routes::call::Call;
use crate::sse;

/// `POST /api/chat`. Fields that are not known are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "the dialect reads the body itself; this documents it")]
pub(super) struct ChatRequest {
    /// The client's name of the conversation, or the id of a space.
    id: String,
    /// The conversation as UI messages.
    messages: Option<Vec<Value>>,
    /// Only the last of them.
    message: Option<Value>,
    /// `submit-message` or `regenerate-message`.
    trigger: Option<String>,
    /// The message that goes on, is tried again, or is said in other words.
    message_id: Option<String>,
    /// Who answers; the default agent if it is missing.
    agent: Option<String>,
    /// Instead of the agent's own.
    model: Option<String>,
    /// Tools that this client runs, for this request. Also `tools`.
    client_tools: Option<Vec<Value>>,
    /// Only the agent's tools of these categories, and those without one.
    selected_tool_categories: Option<Vec<String>>,
    /// Of the agent's tools only these.
    exact_tool_names: Option<Vec<String>>,
    /// None of these.
    excluded_tools: Option<Vec<String>>,
    /// Whom a secret key speaks for.
    entity_id: Option<String>,
    /// Kept with the run.
    metadata: Option<Value>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Wire {
    /// The data stream of older clients.
    lines: bool,
    without_approvals: bool,
    without_reason: bool,
    metadata: bool,
    /// An SDK asks: the platform's own tools for its pages are left out.
    pub(super) mcp_mode: bool,
}

impl Wire {
    pub(super) fn of(call: &Call) -> Result<Self, Refusal> {
        let ask = |name: &str| call.query.get(name).map(String::as_str);
        let header =
            |name: HeaderName| call.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let mcp_mode = header(HeaderName::from_static("x-mcp-mode")).eq_ignore_ascii_case("true");
        let accept = header(ACCEPT);
        let plain = accept.contains("text/plain") && !accept.contains("text/event-stream");
        let version = ask("ui");
        if let Some(other) = version.filter(|v| !matches!(*v, "4" | "5" | "6" | "7")) {
            let shown: String = other.chars().take(16).collect();
            return Err(Refusal::bad_request(format!("ui: {shown:?} is not known: it is 4, 5, 6 or 7")));
        }
        let lines = mcp_mode || plain || version == Some("4");
        Ok(Self {
            lines,
            without_approvals: version == Some("5"),
            without_reason: ask("finishReason") == Some("off"),
            metadata: ask("metadata") == Some("on"),
            mcp_mode,
        })
    }

    /// Answers with a run.
    pub(super) fn tell(
        self,
        call: Call,
        viewer: Viewer,
        (space, run): (SpaceId, RunId),
        start: Start,
        held: Options,
    ) -> Response {
        let options = Options { without_approvals: self.without_approvals, metadata: self.metadata, ..held };
        let (seen, of) = (viewer.clone(), run.clone());
        let (telling, media, mark): (Box<dyn toolyard_dialects::telling::Telling>, _, _) = if self.lines {
            let telling = ChatTelling::new(DataStream, seen, of, start, options);
            (Box::new(telling), "text/plain; charset=utf-8", "x-vercel-ai-data-stream")
        } else {
            let voice = UiStream { without_reason: self.without_reason };
            let telling = ChatTelling::new(voice, seen, of, start, options);
            (Box::new(telling), "text/event-stream", "x-vercel-ai-ui-message-stream")
        };
        let mut response = sse::tell(call, viewer, run, Some(space), telling);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        headers.insert(HeaderName::from_static(mark), HeaderValue::from_static("v1"));
        response
    }
}
