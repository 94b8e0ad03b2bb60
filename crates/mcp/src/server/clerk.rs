//! Requests of both eras, brought to a [`Desk`] and back. rmcp checks what the
//! protocol says of versions, capabilities and result types.

#![expect(deprecated, reason = "what older clients ask is still answered")]

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CreateTaskResult, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use super::desk::{Change, Desk, Fault};
use super::visit::Visit;

/// How soon it is seen that a session has ended.
const GONE: Duration = Duration::from_secs(5);

type Answered<T> = Result<T, ErrorData>;
type Context = RequestContext<RoleServer>;

#[derive(Clone)]
pub(super) struct Clerk {
    desk: Arc<dyn Desk>,
    config: Arc<ServerConfig>,
}

impl Clerk {
    pub(super) fn new(desk: Arc<dyn Desk>) -> Self {
        let card = desk.card();
        let capabilities: ServerCapabilities = serde_json::from_value(card.capabilities).unwrap_or_default();
        let mut info = Implementation::new(card.name, card.version);
        info.title = card.title;
        let mut config = InitializeResult::new(capabilities).with_server_info(info);
        config.instructions = card.instructions;
        Self { desk, config: Arc::new(config) }
    }

    async fn ask(&self, method: &str, params: impl Serialize, context: Context) -> Answered<Value> {
        let params = serde_json::to_value(params).map_err(|e| internal(&e.to_string()))?;
        let mut answer = self.desk.answer(method, params, Visit::new(context)).await.map_err(refused)?;
        // The newer era wants it on every result; rmcp takes it away for the older one.
        if let Value::Object(fields) = &mut answer {
            fields.entry("resultType").or_insert_with(|| "complete".into());
        }
        Ok(answer)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
        context: Context,
    ) -> Answered<T> {
        read(self.ask(method, params, context).await?)
    }
}

fn internal(why: &str) -> ErrorData {
    ErrorData::internal_error(format!("The answer has no form that MCP knows: {why}"), None)
}

fn refused(fault: Fault) -> ErrorData {
    ErrorData::new(ErrorCode(fault.code), fault.message, fault.data)
}

fn read<T: DeserializeOwned>(value: Value) -> Answered<T> {
    serde_json::from_value(value).map_err(|e| internal(&e.to_string()))
}

/// A result that may ask back instead.
fn read_or_ask<T, R>(value: Value) -> Answered<R>
where
    T: DeserializeOwned + Into<R>,
    InputRequiredResult: Into<R>,
{
    match value["resultType"].as_str() {
        Some("input_required") => Ok(read::<InputRequiredResult>(value)?.into()),
        _ => Ok(read::<T>(value)?.into()),
    }
}

/// Why params do not fit a method that this server has; none for the others.
fn misfit(method: &str, params: Value) -> Option<String> {
    fn why<T: DeserializeOwned>(params: Value) -> String {
        let found = serde_json::from_value::<T>(params).err();
        found.map_or_else(|| "they have another form".to_owned(), |e| e.to_string())
    }
    Some(match method {
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            why::<PaginatedRequestParams>(params)
        }
        "tools/call" => why::<CallToolRequestParams>(params),
        "prompts/get" => why::<GetPromptRequestParams>(params),
        "resources/read" => why::<ReadResourceRequestParams>(params),
        "resources/subscribe" => why::<SubscribeRequestParams>(params),
        "resources/unsubscribe" => why::<UnsubscribeRequestParams>(params),
        "completion/complete" => why::<CompleteRequestParams>(params),
        "logging/setLevel" => why::<SetLevelRequestParams>(params),
        "tasks/get" => why::<GetTaskParams>(params),
        "tasks/update" => why::<UpdateTaskParams>(params),
        "tasks/cancel" => why::<CancelTaskParams>(params),
        _ => return None,
    })
}

impl ServerHandler for Clerk {
    fn get_info(&self) -> ServerConfig {
        (*self.config).clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Answered<InitializeResult> {
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.desk.tool(name).and_then(|tool| serde_json::from_value(tool).ok())
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        c: Context,
    ) -> Answered<ListToolsResult> {
        self.get("tools/list", params, c).await
    }

    async fn call_tool(&self, params: CallToolRequestParams, c: Context) -> Answered<CallToolResponse> {
        let answer = self.ask("tools/call", params, c).await?;
        match answer["resultType"].as_str() {
            Some("task") => Ok(read::<CreateTaskResult>(answer)?.into()),
            _ => read_or_ask::<CallToolResult, _>(answer),
        }
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        c: Context,
    ) -> Answered<ListPromptsResult> {
        self.get("prompts/list", params, c).await
    }

    async fn get_prompt(&self, params: GetPromptRequestParams, c: Context) -> Answered<GetPromptResponse> {
        read_or_ask::<GetPromptResult, _>(self.ask("prompts/get", params, c).await?)
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        c: Context,
    ) -> Answered<ListResourcesResult> {
        self.get("resources/list", params, c).await
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        c: Context,
    ) -> Answered<ListResourceTemplatesResult> {
        self.get("resources/templates/list", params, c).await
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        c: Context,
    ) -> Answered<ReadResourceResponse> {
        read_or_ask::<ReadResourceResult, _>(self.ask("resources/read", params, c).await?)
    }

    async fn subscribe(&self, params: SubscribeRequestParams, c: Context) -> Answered<()> {
        self.ask("resources/subscribe", params, c).await.map(drop)
    }

    async fn unsubscribe(&self, params: UnsubscribeRequestParams, c: Context) -> Answered<()> {
        self.ask("resources/unsubscribe", params, c).await.map(drop)
    }

    async fn complete(&self, params: CompleteRequestParams, c: Context) -> Answered<CompleteResult> {
        self.get("completion/complete", params, c).await
    }

    /// A method that this server does not have, or params that do not fit one
    /// that it has: rmcp takes both for something of the client's own.
    async fn on_custom_request(&self, request: CustomRequest, _: Context) -> Answered<CustomResult> {
        let CustomRequest { method, params, .. } = request;
        Err(match misfit(&method, params.unwrap_or_default()) {
            Some(why) => ErrorData::invalid_params(format!("The params of {method} do not fit: {why}"), None),
            None => {
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("There is no method {method} here"), None)
            }
        })
    }

    async fn set_level(&self, params: SetLevelRequestParams, c: Context) -> Answered<()> {
        self.ask("logging/setLevel", params, c).await.map(drop)
    }

    async fn get_task(&self, params: GetTaskParams, c: Context) -> Answered<GetTaskResult> {
        self.get("tasks/get", params, c).await
    }

    async fn update_task(&self, params: UpdateTaskParams, c: Context) -> Answered<()> {
        self.ask("tasks/update", params, c).await.map(drop)
    }

    async fn cancel_task(&self, params: CancelTaskParams, c: Context) -> Answered<()> {
        self.ask("tasks/cancel", params, c).await.map(drop)
    }

    /// The older era hears of changes on its own stream, as long as it has one.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(mut changes) = self.desk.changes() else { return };
        // tidy: spawn — it ends with the session, whose peer is closed then
        #[expect(clippy::disallowed_methods, reason = "rmcp holds the session's life, not our tasks")]
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = changes.recv() => change,
                    () = tokio::time::sleep(GONE) => {
                        if context.peer.is_transport_closed() {
                            return;
                        }
                        continue;
                    }
                };
                let told = match change {
                    Ok(change) => announce(&context.peer, change).await.is_ok(),
                    Err(RecvError::Lagged(_)) => true,
                    Err(RecvError::Closed) => false,
                };
                if !told {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.desk.changes().map(|_| requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Answered<()> {
        let Some(mut changes) = self.desk.changes() else { return Ok(()) };
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            // What was not asked for is not sent, and a listener that has left
            // ends by its own token.
            let sink = context.sink();
            let _ = match change {
                Ok(Change::Tools) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Ok(Change::Resources) => sink.notify_resource_list_changed().await,
                Ok(Change::Resource(uri)) => sink.notify_resource_updated(uri).await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }
}

async fn announce(peer: &Peer<RoleServer>, change: Change) -> Result<(), rmcp::ServiceError> {
    match change {
        Change::Tools => peer.notify_tool_list_changed().await,
        Change::Prompts => peer.notify_prompt_list_changed().await,
        Change::Resources => peer.notify_resource_list_changed().await,
        Change::Resource(uri) => {
            peer.notify_resource_updated(rmcp::model::ResourceUpdatedNotificationParam::new(uri)).await
        }
    }
}
