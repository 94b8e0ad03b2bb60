//! What a conversation has, for callers that do not speak: its space, and the
//! tools that its client brought last.

use std::sync::Arc;

use toolyard_protocol::{AgentName, ApiError, Principal, SpaceId, limits};
use toolyard_store::{agents, runs};

use super::place::find_thread;
use super::speak::load;
use crate::client_tools::BroughtTools;
use crate::refused::Refused;
use crate::runtime::Runtime;

impl Runtime {
    /// The space behind a caller's name for it. None if nobody has talked there.
    pub async fn find_context(
        self: &Arc<Self>,
        by: Principal,
        name: String,
    ) -> Result<Option<SpaceId>, ApiError> {
        let found: Result<_, Refused> =
            self.store.read(move |tx| Box::pin(async move { find_thread(tx, &by, &name).await })).await;
        Ok(found?.map(|thread| thread.space.id))
    }

    /// The tools that the client of a conversation offered last to this agent.
    pub async fn thread_tools(
        self: &Arc<Self>,
        by: Principal,
        name: String,
        agent: AgentName,
    ) -> Result<BroughtTools, ApiError> {
        let rt = self.clone();
        let found: Result<_, Refused> = self
            .store
            .read(move |tx| {
                Box::pin(async move {
                    let Some(thread) = find_thread(tx, &by, &name).await? else {
                        return Ok(BroughtTools::default());
                    };
                    let tenant = &by.tenant;
                    let rows =
                        runs::list(tx, tenant, Some(&thread.space.id), None, None, limits::PAGE).await?;
                    let last = rows.into_iter().find(|row| row.parent.is_none() && row.agent == agent);
                    let (Some(row), Some(own)) = (last, rt.current_agent(tx, tenant, Some(&agent)).await?)
                    else {
                        return Ok(BroughtTools::default());
                    };
                    let run = load(tx, &row).await?;
                    let Some(hash) = run.toolset().filter(|hash| **hash != own.tools.hash) else {
                        return Ok(BroughtTools::default());
                    };
                    let set = agents::toolset(tx, tenant, hash).await?;
                    Ok(set.map(|set| rt.brought_before(&set)).unwrap_or_default())
                })
            })
            .await;
        Ok(found?)
    }
}
