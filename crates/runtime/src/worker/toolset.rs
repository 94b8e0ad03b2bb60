//! The tools of a run. It begins with its agent's; what a user did not pick
//! goes, what servers bring comes, between two steps and never within one. A
//! change is logged, so whoever takes the run over offers the same.

use std::collections::HashSet;
use std::sync::Arc;

use toolyard_engine::{Input, Note};
use toolyard_protocol::event::ToolsetReplaced;
use toolyard_protocol::tool::{ToolSpec, Toolset};
use toolyard_protocol::{Guarded, ToolName};
use toolyard_store::{StoreError, agents};

use super::search;
use super::servers::Brought;
use super::{Stop, Worker};
use crate::agents::{LoadedAgent, LoadedTools, load_tools};

impl Worker {
    /// The tools of the step at hand.
    pub(super) fn tools(&self) -> Option<&Arc<LoadedTools>> {
        self.tools.as_ref().filter(|tools| self.run.toolset() == Some(&tools.hash))
    }

    /// Brings the tools that the log names.
    pub(super) async fn bring_tools(&mut self) -> Result<(), Stop> {
        let (Ok(agent), Some(hash)) = (&self.agent, self.run.toolset().cloned()) else { return Ok(()) };
        if self.tools().is_some() {
            return Ok(());
        }
        if agent.tools.hash == hash {
            self.tools = Some(agent.tools.clone());
            return Ok(());
        }
        if let Some(known) = self.rt.agents.toolset(&self.tenant, &hash) {
            self.tools = Some(known);
            return Ok(());
        }
        let (tenant, wanted) = (self.tenant.clone(), hash.clone());
        let found = self
            .patiently(move |tx| {
                let (tenant, wanted) = (tenant.clone(), wanted.clone());
                Box::pin(async move { agents::toolset(tx, &tenant, &wanted).await })
            })
            .await?;
        let found = found.ok_or_else(|| StoreError::broken("a run's toolset is gone"))?;
        // It was checked when it was stored: what does not compile now is left out.
        let loaded = load_tools(found).map_err(StoreError::broken)?;
        self.tools = Some(self.rt.agents.keep_toolset(&self.tenant, loaded));
        Ok(())
    }

    /// Before a step: are these still the tools? Appends a change. False if
    /// the step must not begin now.
    pub(super) async fn renew_tools(&mut self, agent: &LoadedAgent) -> Result<bool, Stop> {
        let picks = self.run.created().and_then(|c| c.picks.shown()).cloned();
        let above = agent.search_above();
        let plugged = agent.config.plugins.as_ref().is_some_and(|plugins| !plugins.is_empty());
        if picks.is_none() && agent.config.mcp.is_none() && !plugged && agent.tools.set.0.len() <= above {
            return Ok(true);
        }
        let mut wanted = agent.tools.set.clone();
        // What the request brought stays with the run.
        let brought = self.tools().map(|tools| brought(&tools.set)).unwrap_or_default();
        let Some(plugged) = self.bring_plugins(agent).await? else { return Ok(false) };
        wanted.0.extend(plugged.into_iter().filter(|t| agent.tools.set.find(t.name.as_str()).is_none()));
        // Whoever shadows a gateway's tool reads what the model meant for it.
        let free = |tool: &ToolSpec, wanted: &Toolset| wanted.find(tool.name.as_str()).is_none();
        let (kept, gone): (Vec<ToolSpec>, Vec<ToolSpec>) =
            brought.into_iter().partition(|tool| free(tool, &wanted));
        for tool in gone {
            // A plugin that was installed after the request had been taken.
            tracing::warn!(run = %self.id, tool = %tool.name, "a plugin's tool takes the place of a request's");
        }
        wanted.0.extend(kept);
        match self.bring_servers(agent).await? {
            Brought::Tools(tools) => {
                // What the agent defines itself is never shadowed; a request cannot take
                // a server's names, see `client_tools`.
                let names: HashSet<ToolName> = wanted.0.iter().map(|t| t.name.clone()).collect();
                wanted.0.extend(tools.into_iter().filter(|tool| !names.contains(&tool.name)));
            }
            Brought::Later => return Ok(false),
        }
        let wanted = picks.map_or_else(|| wanted.clone(), |picks| picks.of(&wanted));
        self.replace_tools(search::with_search(wanted, above)).await?;
        Ok(!self.run.is_finished() && !self.run.halting())
    }

    async fn replace_tools(&mut self, wanted: Toolset) -> Result<(), Stop> {
        let hash = wanted.hash();
        if self.run.toolset() == Some(&hash) {
            return Ok(());
        }
        let loaded = load_tools(wanted).map_err(StoreError::broken)?;
        let loaded = self.rt.agents.keep_toolset(&self.tenant, loaded);
        let (tenant, stored) = (self.tenant.clone(), loaded.clone());
        self.insistently(move |tx| {
            let (tenant, stored) = (tenant.clone(), stored.clone());
            Box::pin(async move { agents::put_toolset(tx, &tenant, &stored.hash, &stored.set).await })
        })
        .await?;
        self.tools = Some(loaded);
        let replaced = ToolsetReplaced { toolset: Guarded::Shown(hash), model: Guarded::Hidden };
        self.tell(Input::Noted(vec![Note::ToolsetReplaced(replaced)])).await
    }
}

fn brought(set: &Toolset) -> Vec<ToolSpec> {
    set.0.iter().filter(|spec| spec.brought.is_some()).cloned().collect()
}
