//! Is there a connected program that holds a tool and may answer its call?
//! Asked of the database: programs are connected to any node.

use toolyard_protocol::event::{Event, RunPaused};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{AnswerRule, WaitKind, may_answer};
use toolyard_protocol::{EntityId, KeyKind, RunId, SpaceId, TenantId, ToolName, Viewer};
use toolyard_store::waits::{self, WaitRow};
use toolyard_store::{StoreError, Tx, log, presences, runs, spaces};

/// A call, or one that is about to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) space: Option<&'a SpaceId>,
    pub(crate) tool: &'a ToolName,
    pub(crate) rule: &'a AnswerRule,
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(row: &'a WaitRow) -> Self {
        let wait = &row.wait;
        Self { run: &wait.run, space: row.space.as_ref(), tool: &wait.tool, rule: &wait.rule }
    }
}

/// Whether somebody is there for a call.
pub(crate) async fn is_held(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    wanted: Wanted<'_>,
) -> Result<bool, StoreError> {
    for holder in presences::holders(tx, tenant, wanted.tool).await? {
        let viewer = viewer(tx, tenant, wanted, holder.entity.as_ref()).await?;
        if viewer.is_some_and(|viewer| may_answer(&viewer, wanted.rule)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether all that a run waits for is in the hands of connected programs.
pub(crate) async fn all_held(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    paused: &RunPaused,
) -> Result<bool, StoreError> {
    for open in &paused.waits {
        if open.kind != WaitKind::Client {
            return Ok(false);
        }
        let Some(row) = waits::find(tx, tenant, &open.wait).await? else { return Ok(false) };
        if !is_held(tx, tenant, Wanted::of(&row)).await? {
            return Ok(false);
        }
    }
    Ok(!paused.waits.is_empty())
}

/// How a program looks at a call's run; none if it has no seat there.
pub(super) async fn viewer(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    wanted: Wanted<'_>,
    entity: Option<&EntityId>,
) -> Result<Option<Viewer>, StoreError> {
    let Some(entity) = entity else { return Ok(Some(Viewer::secret())) };
    if let Some(space) = wanted.space {
        let role = spaces::role(tx, tenant, space, entity).await?;
        return Ok(role.map(|role| Viewer::public(entity.clone(), role)));
    }
    let Some(run) = runs::get(tx, tenant, wanted.run).await? else { return Ok(None) };
    if run.triggered_by.as_ref() != Some(entity) {
        return Ok(None);
    }
    // A child's words are seen as the tool that started it.
    if run.parent.is_some() {
        let first = log::event(tx, tenant, &run.id, 1).await?;
        let Some(Event::RunCreated(created)) = first else { return Ok(None) };
        if created.errand.shown().is_none_or(|errand| errand.visibility != Visibility::Public) {
            return Ok(None);
        }
    }
    Ok(Some(Viewer { kind: KeyKind::Public, entity: Some(entity.clone()), role: None }))
}
