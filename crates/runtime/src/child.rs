//! Child runs: an agent that another agent calls as a tool (row G12). The
//! child is born in the transaction that parks the call.

use std::sync::Arc;

use serde_json::Value;
use toolyard_engine::Run;
use toolyard_protocol::agent::execution::AiAgent;
use toolyard_protocol::event::{Errand, Event, Parent, RunCreated};
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::{AgentName, BranchId, CallId, Guarded, RunId, TenantId, limits};
use toolyard_store::runs::{self, NewRun, RunRow};
use toolyard_store::{Tx, agents, log, spaces};
use toolyard_tools::prebuilt::Refused as Unsent;

use crate::agents::{LoadedAgent, check_agent};
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::starting::Desk;
use crate::traces::trace_of;

/// What a parent sends a child out with.
pub(crate) struct Sent<'a> {
    pub(crate) parent: &'a Run,
    pub(crate) call: &'a CallId,
    pub(crate) agent: &'a AiAgent,
    /// Of the call.
    pub(crate) visibility: Visibility,
    pub(crate) args: &'a Value,
}

/// Makes the child. Nothing of it stays if it is refused.
pub(crate) async fn send(
    rt: &Arc<Runtime>,
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    sent: Sent<'_>,
    desk: &mut Desk,
) -> Result<RunId, Unsent> {
    let Some(above) = sent.parent.created() else { return Err(tell("The run is not known")) };
    let agent = find_agent(rt, tx, tenant, sent.agent).await?;
    let name = agent.config.agent.name.clone();
    let depth = above.depth.saturating_add(1);
    if depth > limits::CHILD_DEPTH {
        let most = limits::CHILD_DEPTH;
        return Err(tell(format!("Agent {name} is not called: the limit is {most} agents below the first")));
    }
    let family = runs::below(tx, tenant, &above.root).await?;
    let promised = promised(tx, tenant, sent.parent, &family).await?;
    let born = family.len();
    if i64::try_from(born).unwrap_or(i64::MAX) >= limits::CHILDREN {
        let most = limits::CHILDREN;
        return Err(tell(format!("Agent {name} is not called: the limit is {most} agents in one run")));
    }
    let history_to = match (&above.space, sent.agent.include_context) {
        (Some(space), true) => spaces::get(tx, tenant, space).await?.map_or(0, |space| space.last_pos),
        (Some(_) | None, _) => 0,
    };
    // What happens inside a private tool stays private, however deep.
    let private = above.errand.shown().is_some_and(|errand| errand.visibility == Visibility::Private);
    let visibility = if private { Visibility::Private } else { sent.visibility };
    let run = RunId::mint();
    let new = NewRun {
        tenant: tenant.clone(),
        id: run.clone(),
        space: above.space.clone(),
        // The one live run of an agent in a space is the one that talks there.
        agent_entity: None,
        agent: name.clone(),
        agent_hash: agent.hash.clone(),
        root: above.root.clone(),
        parent: Some(sent.parent.id().clone()),
        triggered_by: above.trigger.as_ref().map(|t| t.entity.clone()),
        depth: i64::from(depth),
        on_message: agent.config.loop_.on_message,
    };
    let created = RunCreated {
        agent: name,
        agent_version: Guarded::Shown(agent.hash.clone()),
        toolset: Guarded::Shown(agent.tools.hash.clone()),
        space: above.space.clone(),
        // It works for its parent's entity: goals and memories are that one's.
        agent_entity: above.agent_entity.clone(),
        trigger: above.trigger.clone(),
        branch: if history_to > 0 { above.branch.clone() } else { BranchId::main() },
        history_to,
        parent: Some(Parent { run: sent.parent.id().clone(), call: sent.call.clone() }),
        root: above.root.clone(),
        depth,
        show_reasoning: above.show_reasoning,
        limits: Guarded::Shown(share(sent.parent, agent.limits(&rt.settings.limits), promised)),
        on_message: Guarded::Shown(agent.config.loop_.on_message),
        answerers: above.answerers.clone(),
        by: above.by.clone(),
        metadata: Guarded::Hidden,
        model: Guarded::Hidden,
        picks: above.picks.clone(),
        output: Guarded::Hidden,
        // The prompt is written by whoever read the foreign words.
        tainted: sent.parent.tainted(),
        replayed: None,
        trace: trace_of(sent.parent, sent.call).map_or(Guarded::Hidden, Guarded::Shown),
        errand: Guarded::Shown(Errand { prompt: prompt(sent.args), visibility }),
    };
    rt.bear(tx, &new, created, Vec::new(), None, desk).await?;
    Ok(run)
}

/// The agent by its name, or the one inside the parent's configuration.
async fn find_agent(
    rt: &Arc<Runtime>,
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    wanted: &AiAgent,
) -> Result<Arc<LoadedAgent>, Unsent> {
    let agent = match &wanted.agent_config {
        Value::String(name) => {
            let missing = || tell(format!("Agent {name} is not known"));
            let parsed = AgentName::parse(name).map_err(|_| missing())?;
            let found = rt.current_agent(tx, tenant, Some(&parsed)).await.map_err(|e| match e {
                Refused::Store(e) => Unsent::Store(e),
                Refused::Api(e) => tell(e.message),
            })?;
            found.ok_or_else(missing)?
        }
        inline => {
            let loaded = check_agent(inline).map_err(|e| tell(e.message))?;
            agents::put_version(tx, tenant, &loaded.hash, inline).await?;
            Arc::new(loaded)
        }
    };
    rt.check_agents_model(&agent).map_err(|e| tell(e.message))?;
    Ok(agent)
}

/// Tokens and money that children at work may still use.
#[derive(Debug, Clone, Copy, Default)]
struct Promised {
    tokens: u64,
    cost: u64,
}

async fn promised(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    parent: &Run,
    family: &[RunRow],
) -> Result<Promised, Unsent> {
    let limits = parent.limits();
    let mut sum = Promised::default();
    if limits.max_tokens.is_none() && limits.max_cost.is_none() {
        return Ok(sum);
    }
    let at_work =
        family.iter().filter(|row| row.parent.as_ref() == Some(parent.id()) && !row.status.is_final());
    for row in at_work {
        let Some(Event::RunCreated(created)) = log::event(tx, tenant, &row.id, 1).await? else { continue };
        let given = created.limits.shown().cloned().unwrap_or_default();
        sum.tokens = sum.tokens.saturating_add(given.max_tokens.unwrap_or(0));
        sum.cost = sum.cost.saturating_add(given.max_cost.unwrap_or(0));
    }
    Ok(sum)
}

/// A child spends from what its parent has left. Children that are sent out
/// together share it: none gets what another one was promised.
fn share(parent: &Run, own: RunLimits, promised: Promised) -> RunLimits {
    let limits = parent.limits();
    let waiting =
        parent.state().calls().iter().filter(|c| c.is_dispatched() && c.place == Place::Agent).count();
    let parts = u64::try_from(waiting).unwrap_or(1).max(1);
    let part = |most: u64, used: u64, promised: u64| {
        (most.saturating_sub(used).saturating_sub(promised) / parts).max(1)
    };
    let used = parent.usage().input_tokens.saturating_add(parent.usage().output_tokens);
    let tokens = limits.max_tokens.map(|most| part(most, used, promised.tokens));
    let cost = limits.max_cost.map(|most| part(most, parent.cost().unwrap_or(0), promised.cost));
    RunLimits {
        max_tokens: own.max_tokens.into_iter().chain(tokens).min(),
        max_cost: own.max_cost.into_iter().chain(cost).min(),
        ..own
    }
}

/// `prompt`, or all of an input that has its own form.
fn prompt(args: &Value) -> String {
    match args.get("prompt").and_then(Value::as_str) {
        Some(prompt) => prompt.to_owned(),
        None => args.to_string(),
    }
}

fn tell(text: impl Into<String>) -> Unsent {
    Unsent::TellModel(text.into())
}
