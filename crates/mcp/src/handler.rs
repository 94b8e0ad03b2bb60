//! What a server may ask of us: answer a ping, hear progress and changes, put
//! a question to the user. Sampling and roots are not declared and refused.

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorCode, ErrorData, Extensions, Implementation, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::Notify;

use crate::ask::{Question, Reply};
use crate::flight::{Flights, Progress};
use crate::settings::ServerName;

/// Our side of one connection.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) server: ServerName,
    pub(crate) flights: Arc<Flights>,
    /// The server says that its tools changed.
    pub(crate) changed: Arc<Notify>,
}

/// What we say of ourselves: elicitation of both kinds, and tasks.
fn config() -> ClientConfig {
    let capabilities: ClientCapabilities = serde_json::from_value(serde_json::json!({
        "elicitation": { "form": {}, "url": {} },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    }))
    .unwrap_or_default();
    let mut config =
        ClientConfig::new(capabilities, Implementation::new("toolyard", env!("CARGO_PKG_VERSION")));
    config.protocol_version = ProtocolVersion::V_2025_11_25;
    config
}

impl Handler {
    async fn question(&self, params: &Value, extensions: &Extensions) -> Reply {
        let origin = extensions.get::<InboundStreamOrigin>();
        let request = match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id.to_string()),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        self.flights.ask(request.as_deref(), Question::of_params(params)).await
    }
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(&request).unwrap_or(Value::Null);
        Ok(match self.question(&params, &context.extensions).await {
            Reply::Accept(content) if content.is_null() => ElicitResult::new(ElicitationAction::Accept),
            Reply::Accept(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            Reply::Decline => ElicitResult::new(ElicitationAction::Decline),
            Reply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    /// A question in a form that rmcp does not know is still a question.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "elicitation/create" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let params = request.params.unwrap_or(Value::Null);
        Ok(CustomResult(self.question(&params, &context.extensions).await.to_value()))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = params.message.map(|text| toolyard_schema::clean(&text, 1024).text);
        let progress = Progress { progress: params.progress, total: params.total, message };
        self.flights.progressed(&params.progress_token.0.to_string(), progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    #[expect(deprecated, reason = "servers of the older era still log this way")]
    async fn on_logging_message(
        &self,
        params: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(server = %self.server, level = ?params.level, data = %params.data, "an MCP server logs");
    }

    fn get_info(&self) -> ClientConfig {
        config()
    }
}
