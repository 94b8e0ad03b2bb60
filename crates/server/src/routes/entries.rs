//! A client's history as a turn of the runtime: what all dialects share whose
//! clients keep the conversation.

use std::collections::HashSet;

use serde_json::Value;
use toolyard_dialects::history::{Entry, EntryCall};
use toolyard_protocol::event::Event;
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::tool::{Approval, ToolSpec, Visibility};
use toolyard_protocol::{
    AgentName, CallId, Guarded, RunId, TenantId, ToolName, ToolOutcome, limits, risk::Risk,
};
use toolyard_runtime::{Item, Replied, Reply};
use toolyard_store::{StoreError, Tx, agents, log, waits};

use super::call::Call;
use crate::http::Refusal;

/// The history as items and replies. A result that no call of the gateway
/// waits for still stands behind its call, as the client's word.
pub(super) fn read(entries: Vec<Entry>, name: impl Fn(&str) -> String) -> (Vec<Item>, Vec<Reply>) {
    let (mut items, mut replies) = (Vec::<Item>::new(), Vec::new());
    let item = |id: Option<String>, speaker, parts| Item {
        name: id.map(|id| name(&id)),
        speaker,
        parts,
        metadata: None,
    };
    for entry in entries {
        match entry {
            Entry::User { id, parts } => items.push(item(id, Speaker::User, parts)),
            Entry::System { id, text } => items.push(item(id, Speaker::System, vec![Part::text(text)])),
            Entry::Assistant { id, text, calls } => {
                let mut parts = Vec::new();
                if !text.is_empty() {
                    parts.push(Part::text(text));
                }
                parts.extend(calls.into_iter().filter_map(call_part));
                if !parts.is_empty() {
                    items.push(item(id, Speaker::Assistant, parts));
                }
            }
            Entry::Result { call, value, error } => {
                let Ok(call) = CallId::parse(&call) else { continue };
                let outcome = error.map_or(ToolOutcome::Ok(value), ToolOutcome::Failed);
                put_result(&mut items, &call, &outcome);
                replies.push(Reply { call, said: Replied::Outcome(outcome) });
            }
        }
    }
    (items, replies)
}

fn call_part(call: EntryCall) -> Option<Part> {
    Some(Part::ToolCall {
        call: CallId::parse(&call.id).ok()?,
        tool: ToolName::parse(&call.name).ok()?,
        visibility: Visibility::Public,
        args: Guarded::Shown(call.args),
        metadata: Guarded::Hidden,
    })
}

fn put_result(items: &mut [Item], id: &CallId, outcome: &ToolOutcome) {
    for item in items.iter_mut().rev() {
        let tool = item.parts.iter().find_map(|part| match part {
            Part::ToolCall { call, tool, .. } if call == id => Some(tool.clone()),
            _ => None,
        });
        if let Some(tool) = tool {
            let result = Part::tool_result(id.clone(), tool, Visibility::Public, outcome);
            item.parts.push(result);
            return;
        }
    }
}

/// All ids of calls in a history.
pub(super) fn calls(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .flat_map(|entry| match entry {
            Entry::Assistant { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
            Entry::Result { call, .. } => vec![call.clone()],
            Entry::User { .. } | Entry::System { .. } => Vec::new(),
        })
        .collect()
}

/// The space of the newest of these calls that the gateway made.
pub(super) async fn space_of_calls(call: &Call, ids: &[String]) -> Result<Option<String>, Refusal> {
    let ids: Vec<CallId> = ids.iter().rev().filter_map(|id| CallId::parse(id).ok()).collect();
    let tenant = call.tenant().clone();
    let found = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            for id in &ids {
                let waits = waits::of_call(tx, &tenant, id).await?;
                if let Some(space) = waits.into_iter().find_map(|row| row.space) {
                    return Ok(Some(space.to_string()));
                }
            }
            Ok(None)
        })
    });
    Ok(found.await?)
}

/// The agent that a path or a field names. What is no name is no agent.
pub(super) fn agent(name: &str) -> Result<AgentName, Refusal> {
    AgentName::parse(name).map_err(|_| Refusal::not_found("Agent"))
}

/// The agent of the path, if this tenant has it.
pub(super) async fn known_agent(call: &Call) -> Result<AgentName, Refusal> {
    let name = agent(call.params.get("agent").map(String::as_str).unwrap_or_default())?;
    let (tenant, asked) = (call.tenant().clone(), name.clone());
    let found = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move { agents::by_name(tx, &tenant, &asked).await })
    });
    found.await?.map(|_| name).ok_or_else(|| Refusal::not_found("Agent"))
}

/// Client tools of a run whose calls may need a permission first.
pub(super) async fn asking_tools(call: &Call, run: &RunId) -> Result<HashSet<ToolName>, Refusal> {
    let (tenant, run) = (call.tenant().clone(), run.clone());
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { asking(tx, &tenant, &run).await }));
    Ok(found.await?)
}

async fn asking(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<HashSet<ToolName>, StoreError> {
    let (mut toolset, mut version, mut after) = (None, None, 0);
    loop {
        let page = log::read(tx, tenant, run, after, limits::LOG_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for logged in page {
            match logged.event {
                Event::RunCreated(e) => {
                    toolset = e.toolset.into_shown();
                    version = e.agent_version.into_shown();
                }
                Event::ToolsetReplaced(e) => toolset = e.toolset.into_shown().or(toolset),
                _ => {}
            }
        }
    }
    let Some(toolset) = toolset else { return Ok(HashSet::new()) };
    let tools = agents::toolset(tx, tenant, &toolset).await?.unwrap_or_default();
    let config = match version {
        Some(version) => agents::version(tx, tenant, &version).await?.unwrap_or_default(),
        None => Value::Null,
    };
    let ruled = config["permissions"]["rules"].as_array().is_some_and(|rules| !rules.is_empty());
    let asks = |tool: &&ToolSpec| {
        let own = tool.approval.is_some_and(|approval| approval != Approval::Allow);
        tool.is_client() && (ruled || own || tool.risk == Risk::High || tool.service_id.is_some())
    };
    Ok(tools.0.iter().filter(asks).map(|tool| tool.name.clone()).collect())
}
