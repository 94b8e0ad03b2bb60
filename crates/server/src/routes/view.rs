//! Rows of the store as the native dialect shows them.

use serde_json::Value;
use toolyard_dialects::native::{self, RunFacts, RunView, WaitView};
use toolyard_protocol::event::Event;
use toolyard_protocol::{RunId, TenantId, Viewer};
use toolyard_store::runs::RunRow;
use toolyard_store::waits::{self, WaitRow};
use toolyard_store::{StoreError, Tx, log};

pub(crate) fn run(row: RunRow, viewer: &Viewer) -> RunView {
    let facts = RunFacts {
        id: row.id,
        status: row.status,
        reason: row.reason,
        agent: row.agent,
        agent_version: Some(row.agent_hash),
        space: row.space,
        agent_entity: row.agent_entity,
        triggered_by: row.triggered_by,
        parent: row.parent,
        root: row.root,
        error: row.error,
        created_at: row.created_at,
        updated_at: row.updated_at,
        last_seq: row.last_seq,
    };
    native::run_view(facts, viewer)
}

/// A wait with what it asks, read from the log: the ledger keeps no copy.
pub(crate) async fn wait(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    row: &WaitRow,
    viewer: &Viewer,
) -> Result<WaitView, StoreError> {
    let opened = log::event(tx, tenant, &row.wait.run, row.opened_seq).await?;
    let asked: Option<Value> = match opened {
        Some(Event::Asked(asked)) => asked.payload.into_shown(),
        Some(Event::ToolCallRequested(call)) => call.args.into_shown(),
        _ => None,
    };
    Ok(native::wait_view(&row.wait, row.space.as_ref(), asked.as_ref(), viewer))
}

/// The open waits of a run.
pub(crate) async fn open_waits(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    viewer: &Viewer,
) -> Result<Vec<WaitView>, StoreError> {
    let mut views = Vec::new();
    for row in waits::open_of_run(tx, tenant, run).await? {
        views.push(wait(tx, tenant, &row, viewer).await?);
    }
    Ok(views)
}
