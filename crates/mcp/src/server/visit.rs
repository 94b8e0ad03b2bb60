//! One request of a caller, while it is open: who asks in which era, and the
//! ways back to it.

#![expect(deprecated, reason = "older clients still listen to log lines")]

use http::HeaderMap;
use http::request::Parts;
use rmcp::model::{
    ClientResult, ElicitRequest, LoggingMessageNotification, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, ServerNotification, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServiceError};
use serde_json::{Map, Value, json};

use super::desk::Fault;

/// An open request.
#[derive(Debug)]
pub struct Visit {
    context: RequestContext<RoleServer>,
}

impl Visit {
    pub(super) fn new(context: RequestContext<RoleServer>) -> Self {
        Self { context }
    }

    /// The head of the HTTP request that brought it.
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.context.extensions.get::<Parts>().map(|parts| &parts.headers)
    }

    /// The era without sessions: questions go back as `input_required`.
    pub fn is_modern(&self) -> bool {
        let version = self.context.protocol_version();
        version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    }

    /// What the client can do, as it declared it.
    pub fn capabilities(&self) -> Value {
        let declared = self.context.client_capabilities();
        declared.and_then(|declared| serde_json::to_value(declared).ok()).unwrap_or_else(|| json!({}))
    }

    /// Fields of the request's `_meta` that are not the protocol's own.
    pub fn meta(&self) -> Value {
        serde_json::to_value(&self.context.meta).unwrap_or_else(|_| Value::Object(Map::new()))
    }

    /// Does the caller want to hear how far it is?
    pub fn wants_progress(&self) -> bool {
        self.context.meta.get_progress_token().is_some()
    }

    /// Says how far it is. Silent if nobody asked.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let mut news = ProgressNotificationParam::new(token, progress);
        news.total = total;
        news.message = message;
        // A caller that has left hears nothing.
        let _ = self.context.peer.notify_progress(news).await;
    }

    /// A line for the caller's log.
    pub async fn log(&self, params: Value) {
        let Ok(params) = serde_json::from_value::<LoggingMessageNotificationParam>(params) else { return };
        let line = LoggingMessageNotification::new(params);
        let _ = self.context.peer.send_notification(ServerNotification::from(line)).await;
    }

    /// Asks a caller of the older era in the middle of its call, with a whole
    /// request `{method, params}`.
    pub async fn ask(&self, request: Value) -> Result<Value, Fault> {
        let unreadable = |e: serde_json::Error| Fault::new(Fault::INTERNAL, format!("The question: {e}"));
        let request = match request["method"].as_str() {
            Some("elicitation/create") => {
                ServerRequest::from(serde_json::from_value::<ElicitRequest>(request).map_err(unreadable)?)
            }
            _ => serde_json::from_value::<ServerRequest>(request).map_err(unreadable)?,
        };
        let answered = self.context.peer.send_request(request).await.map_err(unheard)?;
        serde_json::to_value::<ClientResult>(answered).map_err(unreadable)
    }

    /// Returns when the caller takes its request back or hangs up.
    pub async fn cancelled(&self) {
        self.context.ct.cancelled().await;
    }
}

fn unheard(error: ServiceError) -> Fault {
    match error {
        ServiceError::McpError(error) => {
            Fault { code: error.code.0, message: error.message.into_owned(), data: error.data }
        }
        other => Fault::new(Fault::INTERNAL, format!("The client did not answer: {other}")),
    }
}
