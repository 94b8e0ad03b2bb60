//! One caller's view of one agent: which tools it has here, and which request
//! goes where.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolyard_dialects::mcp::{self, Able, Command};
use toolyard_mcp::server::{Card, Change, Desk, Fault, Visit};
use toolyard_protocol::tool::{ToolSpec, Visibility};
use toolyard_protocol::{AgentName, KeyKind, Principal};
use toolyard_runtime::{LoadedAgent, key_of};

use super::super::call::{Call, Sight};
use super::super::entries;
use super::{calls, library, runs};
use crate::app::App;
use crate::http::Refusal;

#[derive(Clone)]
pub(super) struct AgentDesk {
    pub(super) app: Arc<App>,
    pub(super) principal: Principal,
    pub(super) agent: AgentName,
    description: Option<String>,
    capabilities: Value,
    headers: HeaderMap,
}

/// What a name of a tool stands for.
pub(super) enum Found {
    Ask,
    Own(Box<ToolSpec>),
}

pub(super) fn fault(error: impl Into<Refusal>) -> Fault {
    let error = error.into().error;
    let code = if error.code.status() >= 500 { Fault::INTERNAL } else { Fault::INVALID_PARAMS };
    Fault { code, data: Some(json!({ "code": error.code })), message: error.message }
}

impl AgentDesk {
    pub(super) async fn open(call: &Call) -> Result<Self, Refusal> {
        let agent = entries::agent(call.params.get("agent").map(String::as_str).unwrap_or_default())?;
        let found = call.app.runtime.agent_named(call.tenant(), &agent).await?;
        let found = found.ok_or_else(|| Refusal::not_found("Agent"))?;
        Ok(Self {
            app: call.app.clone(),
            principal: call.principal.clone(),
            agent,
            description: found.config.agent.description.clone().filter(|text| !text.is_empty()),
            capabilities: mcp::capabilities(found.config.mcp_server.as_ref()),
            headers: call.headers.clone(),
        })
    }

    /// Whose sessions are whose.
    pub(super) fn owner(&self) -> String {
        let Principal { tenant, key, entity, .. } = &self.principal;
        let entity = entity.as_ref().map(|entity| entity.as_str()).unwrap_or_default();
        format!("{tenant}\n{key}\n{entity}\n{}", self.agent)
    }

    /// A request of this caller, for parts of the gateway that read one. The
    /// key is looked at again while a run is followed, so it is the newest.
    pub(super) fn call(&self, visit: &Visit) -> Call {
        Call {
            app: self.app.clone(),
            principal: self.principal.clone(),
            sight: Sight::Nothing,
            params: HashMap::new(),
            query: HashMap::new(),
            headers: visit.headers().unwrap_or(&self.headers).clone(),
            body: Bytes::new(),
            route: "POST /mcp/{agent}",
            signed: false,
            cut: None,
        }
    }

    /// The agent as it is now: a session may be older than its configuration.
    pub(super) async fn load(&self) -> Result<Arc<LoadedAgent>, Fault> {
        let found = self.app.runtime.agent_named(&self.principal.tenant, &self.agent).await;
        found.map_err(fault)?.ok_or_else(|| Fault::params("The agent is gone"))
    }

    /// The agent's own tools that this caller may use.
    async fn own_tools(&self, agent: &LoadedAgent) -> Vec<ToolSpec> {
        let Some(serving) = &agent.config.mcp_server else { return Vec::new() };
        if !self.app.config.mcp_server.own_tools || serving.tools.is_none() {
            return Vec::new();
        }
        let servers = agent.config.mcp.as_ref().map(|mcp| mcp.servers.as_slice()).unwrap_or_default();
        let (tenant, entity) = (&self.principal.tenant, self.principal.entity.as_ref());
        let offer = self.app.mcp.offer_to(tenant, entity, &self.agent, servers).await;
        let all = self.principal.kind == KeyKind::Secret;
        let asks = serving.asks().then(|| mcp::ask_tool_name(&self.agent));
        let mut tools: Vec<ToolSpec> = (agent.tools.set.0.iter().cloned().chain(offer.tools))
            // A client's tool runs at a client: nobody calls it here.
            .filter(|spec| !spec.is_client())
            // Users see what a private tool returns nowhere, so not here either.
            .filter(|spec| all || spec.visibility == Visibility::Public)
            .filter(|spec| serving.serves(spec.name.as_str(), &key_of(spec)))
            .filter(|spec| asks.as_deref() != Some(spec.name.as_str()))
            .collect();
        tools.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        tools
    }

    pub(super) async fn list(&self) -> Result<Value, Fault> {
        let agent = self.load().await?;
        let mut tools = Vec::new();
        if agent.config.mcp_server.as_ref().is_none_or(|serving| serving.asks()) {
            tools.push(mcp::ask_tool(&self.agent, self.description.as_deref()));
        }
        tools.extend(self.own_tools(&agent).await.iter().map(mcp::own_tool));
        Ok(mcp::tool_list(tools))
    }

    pub(super) async fn find_tool(&self, name: &str) -> Result<Found, Fault> {
        let agent = self.load().await?;
        let asks = agent.config.mcp_server.as_ref().is_none_or(|serving| serving.asks());
        if asks && name == mcp::ask_tool_name(&self.agent) {
            return Ok(Found::Ask);
        }
        let own = self.own_tools(&agent).await.into_iter().find(|spec| spec.name.as_str() == name);
        own.map(|spec| Found::Own(Box::new(spec))).ok_or_else(|| {
            Fault::params(format!("Unknown tool: {}", name.chars().take(128).collect::<String>()))
        })
    }
}

impl Desk for AgentDesk {
    fn card(&self) -> Card {
        Card {
            name: format!("toolyard/{}", self.agent),
            title: Some(self.agent.to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: Some(mcp::instructions(&self.agent)),
            capabilities: self.capabilities.clone(),
        }
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        visit: Visit,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let command = mcp::command(method, &params).map_err(|e| Fault::new(e.code, e.message))?;
            let able = Able::read(&visit.capabilities());
            match command {
                Command::ListTools => self.list().await,
                Command::ListPrompts => library::prompts(self).await,
                Command::GetPrompt { name, arguments } => library::prompt(self, &name, &arguments).await,
                Command::ListResources { after } => library::documents(self, after).await,
                Command::ReadResource { uri } => library::document(self, &uri, &visit).await,
                Command::ListNothing { of } => Ok(mcp::nothing(of)),
                Command::Call(tool_use) => calls::call(self, tool_use, &visit, able).await,
                Command::GetTask { run } => runs::task(self, &run, &visit, able).await,
                Command::UpdateTask { run, replies } => {
                    runs::give(self, &runs::find(self, &run).await?, &replies, &visit).await?;
                    Ok(json!({}))
                }
                Command::CancelTask { run } => {
                    runs::cancel(self, &runs::find(self, &run).await?).await?;
                    Ok(json!({}))
                }
            }
        })
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.app.mcp_news.join(self))
    }
}
