//! The tools that MCP servers bring into a run (row G4).

use std::collections::BTreeSet;

use serde_json::json;
use toolyard_engine::{Input, Note};
use toolyard_protocol::ErrorCode;
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::event::PluginEmitted;
use toolyard_protocol::tool::{Approval, ToolSpec};
use toolyard_store::{StoreError, mcp_pins};
use toolyard_tools::CallContext;

use super::{Stop, Worker};
use crate::agents::LoadedAgent;

/// What the servers give a step.
pub(super) enum Brought {
    Tools(Vec<ToolSpec>),
    /// Something else comes first, or the run ended because a server that it
    /// must not do without is not there.
    Later,
}

impl Worker {
    /// Asks the agent's servers for their tools.
    pub(super) async fn bring_servers(&mut self, agent: &LoadedAgent) -> Result<Brought, Stop> {
        let servers = agent.config.mcp.as_ref().map(|mcp| mcp.servers.as_slice()).unwrap_or_default();
        let (Some(mcp), Some(context), false) =
            (self.rt.toolbox.mcp.clone(), self.own_context(), servers.is_empty())
        else {
            return Ok(Brought::Tools(Vec::new()));
        };
        let over = self.rt.handing_back.clone();
        let offer = loop {
            // A cancel or a stop must not wait for a server that does not start.
            let offer = tokio::select! {
                biased;
                () = over.cancelled() => return Ok(Brought::Later),
                _ = self.watch.committed.changed() => None,
                offer = mcp.offer(&context, servers) => Some(offer),
            };
            if let Some(offer) = offer {
                break offer;
            }
            self.hear_news().await?;
            if self.run.is_finished() || self.run.halting() {
                return Ok(Brought::Later);
            }
        };
        let mut missing = BTreeSet::new();
        let closed = offer.missing.iter().filter(|server| server.needs_login);
        let closed: BTreeSet<String> = closed.map(|server| server.server.as_str().to_owned()).collect();
        for server in &offer.missing {
            tracing::warn!(run = %self.id, server = %server.server, why = %server.why, "an MCP server gives no tools");
            missing.insert(server.server.as_str().to_owned());
            if server.required {
                let text = match server.needs_login {
                    true => format!("The MCP server {} is needed and wants a login first", server.server),
                    false => format!("The MCP server {} is needed and not there", server.server),
                };
                self.fail(ErrorCode::ServerMissing, &text, server.why.clone()).await?;
                return Ok(Brought::Later);
            }
        }
        if missing != self.missing {
            let notes = missing.difference(&self.missing).map(|server| {
                Note::PluginEmitted(PluginEmitted {
                    plugin: "mcp".to_owned(),
                    name: "server.missing".to_owned(),
                    value: match closed.contains(server) {
                        true => json!({ "server": server, "needsLogin": true }),
                        false => json!({ "server": server }),
                    },
                })
            });
            let notes: Vec<Note> = notes.collect();
            self.missing = missing;
            self.tell(Input::Noted(notes)).await?;
        }
        let tools = self.pinned(offer.tools).await?;
        Ok(Brought::Tools(tools))
    }

    fn own_context(&self) -> Option<CallContext> {
        // Not a call's: only who it is for counts here.
        let call = toolyard_protocol::CallId::parse("call_none").ok()?;
        self.context_of(&call)
    }

    /// Tools are remembered as they were first seen. One that is new on a
    /// known server, or has changed, asks until somebody allows it.
    async fn pinned(&mut self, mut tools: Vec<ToolSpec>) -> Result<Vec<ToolSpec>, Stop> {
        let servers: BTreeSet<String> = tools.iter().filter_map(|t| t.service_id.clone()).collect();
        for server in servers {
            let (tenant, name) = (self.tenant.clone(), server.clone());
            let pins = self
                .patiently(move |tx| {
                    let (tenant, name) = (tenant.clone(), name.clone());
                    Box::pin(async move { mcp_pins::of_server(tx, &tenant, &name).await })
                })
                .await?;
            let mut first = Vec::new();
            for tool in tools.iter_mut().filter(|t| t.service_id.as_deref() == Some(server.as_str())) {
                let Execution::Mcp(call) = &tool.execution else { continue };
                // The gateway's own tool is no news of the server.
                if call.is_login() {
                    continue;
                }
                match pins.get(&(call.server.clone(), call.tool.clone())) {
                    Some(seen) if *seen == call.pin => {}
                    None if pins.is_empty() => first.push((call.tool.clone(), call.pin.clone())),
                    Some(_) | None => tool.approval = Some(Approval::Ask),
                }
            }
            if !first.is_empty() {
                let (tenant, name) = (self.tenant.clone(), server.clone());
                self.insistently(move |tx| {
                    let (tenant, name, first) = (tenant.clone(), name.clone(), first.clone());
                    Box::pin(async move {
                        for (tool, pin) in &first {
                            mcp_pins::put(tx, &tenant, &name, tool, pin).await?;
                        }
                        Ok::<_, StoreError>(())
                    })
                })
                .await?;
            }
        }
        Ok(tools)
    }
}
