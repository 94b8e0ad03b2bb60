//! Runs: create, look, cancel, remove, and their logs.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_dialects::native::{self, RunView};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::run::{RunStatus, Usage};
use toolyard_protocol::{EntityId, ErrorCode, RunId, SpaceId, Viewer, limits};
use toolyard_runtime::{Account, Caller, CreateRun, CreatedRun, Fresh, Once, account};
use toolyard_store::log::{self, Logged};
use toolyard_store::runs::{self, RunRow};
use toolyard_store::{StoreError, audit};

use super::call::Call;
use super::{answer, page, view};
use crate::http::Refusal;
use crate::sse::{self, Source};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewRun {
    smart_space_id: SpaceId,
    /// Who answers. May be left out if `agentId` says it.
    #[serde(default)]
    agent_entity_id: Option<EntityId>,
    /// The agent by id or name: the one entity of the space that plays it answers.
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    triggered_by_id: Option<EntityId>,
    #[serde(default)]
    metadata: Option<Value>,
    /// The model, instead of the agent's own: an id of `GET /api/models`, or
    /// `provider/model`.
    #[serde(default)]
    model: Option<String>,
    /// A run starts when it is created: `false` is refused.
    #[serde(default)]
    start: Option<bool>,
    /// A run has a parent if a call of that started it: here it is refused.
    #[serde(default)]
    parent_run_id: Option<RunId>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunCreated {
    run_id: RunId,
    /// `running`, or `queued` until a slot is free.
    status: RunStatus,
    stream_url: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneRun {
    run: RunView,
    /// Tokens so far, with those of the agents that it called.
    usage: Usage,
    /// Millionths of a dollar so far, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    runs: Vec<RunView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The same payloads as on the stream.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventList {
    #[schemars(with = "Vec<Value>")]
    events: Vec<Box<RawValue>>,
    /// Continue with `afterSeq` from here.
    last_seq: i64,
    more: bool,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct CancelRun {
    #[serde(default)]
    reason: Option<String>,
}

pub(super) fn caller(call: &Call, viewer: &Viewer) -> Caller {
    Caller {
        tenant: call.tenant().clone(),
        viewer: viewer.clone(),
        actor: Actor::caller(&call.principal, None),
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    let new: NewRun = call.json()?;
    if new.start == Some(false) {
        let text = "start: a run starts when it is created. Create it when it shall start";
        return Err(Refusal::bad_request(text));
    }
    if new.parent_run_id.is_some() {
        let text =
            "parentRunId: only a call of an agent starts a run with a parent. Use metadata to relate runs";
        return Err(Refusal::bad_request(text));
    }
    let create = CreateRun {
        by: call.principal.clone(),
        space: new.smart_space_id,
        agent_entity: new.agent_entity_id,
        agent: new.agent_id,
        triggered_by: new.triggered_by_id,
        metadata: answer::metadata(new.metadata)?,
        model: super::models::named(&call, new.model)?,
        trace: call.trace(),
    };
    let once = call.scope()?.map(|scope| Once { scope, respond: Box::new(|made| (201, created_body(made))) });
    match call.app.runtime.create_run(create, once).await? {
        Fresh::Done(made) => Ok(answer::text(201, created_body(&made))),
        Fresh::Before { status, response } => Ok(answer::text(status, response)),
    }
}

fn created_body(made: &CreatedRun) -> String {
    let status = if made.started { RunStatus::Running } else { RunStatus::Queued };
    let stream_url = format!("/api/runs/{}/stream", made.run);
    json!(RunCreated { run_id: made.run.clone(), status, stream_url }).to_string()
}

/// Another try, from a step of a run that has ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplayRun {
    /// The first step that is done anew, from 1. What was said and done before
    /// it is taken over, and nothing of it is executed again.
    #[serde(default = "first")]
    step: u32,
    /// The model, instead of the one that the run used: an id of
    /// `GET /api/models`, or `provider/model`.
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
}

fn first() -> u32 {
    1
}

/// `POST …/replay`: any member may, as any member may speak.
pub(super) async fn replay(call: Call) -> Result<Response, Refusal> {
    let asked: ReplayRun = call.json()?;
    let (row, _) = call.run()?;
    if asked.step == 0 {
        return Err(Refusal::bad_request("step: must be a whole number above 0"));
    }
    let replay = toolyard_runtime::ReplayRun {
        by: call.principal.clone(),
        run: row.id.clone(),
        step: asked.step,
        model: super::models::named(&call, asked.model)?,
        metadata: answer::metadata(asked.metadata)?,
    };
    let once = call.scope()?.map(|scope| Once { scope, respond: Box::new(|made| (201, created_body(made))) });
    match call.app.runtime.replay_run(replay, once).await? {
        Fresh::Done(made) => Ok(answer::text(201, created_body(&made))),
        Fresh::Before { status, response } => Ok(answer::text(status, response)),
    }
}

/// `GET /api/runs`: newest first.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let space = page::typed(&call.query, "smartSpaceId", SpaceId::parse)?;
    rows(call, space, Viewer::secret()).await
}

/// `GET /api/smart-spaces/{space}/runs`
pub(super) async fn of_space(call: Call) -> Result<Response, Refusal> {
    let (space, viewer) = call.space()?;
    let (space, viewer) = (Some(space.id.clone()), viewer.clone());
    rows(call, space, viewer).await
}

async fn rows(call: Call, space: Option<SpaceId>, viewer: Viewer) -> Result<Response, Refusal> {
    page::known(&call.query, &["smartSpaceId", "status", "limit", "before"])?;
    let limit = page::limit(&call.query)?;
    let before = page::typed(&call.query, "before", RunId::parse)?;
    let status = page::typed(&call.query, "status", |t| RunStatus::parse(t).ok_or(()))?;
    let tenant = call.tenant().clone();
    let rows: Vec<RunRow> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(
                async move { runs::list(tx, &tenant, space.as_ref(), status, before.as_ref(), limit).await },
            )
        })
        .await?;
    let next = page::next(&rows, limit, |run| run.id.to_string());
    answer::json(200, &RunList { runs: rows.into_iter().map(|row| view::run(row, &viewer)).collect(), next })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let (row, viewer) = call.run()?;
    let (tenant, run, last) = (call.tenant().clone(), row.id.clone(), row.last_seq);
    let read = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { account(tx, &tenant, &run, last).await }));
    let Account { usage, cost } = match read.await {
        // A run whose log this release cannot read is still shown.
        Err(StoreError::Undecodable(_)) => Account::default(),
        read => read?,
    };
    answer::json(200, &OneRun { run: view::run(row.clone(), viewer), usage, cost })
}

/// `GET …/events`: a page of the log, with the bytes of the stream (row S5).
pub(super) async fn events(call: Call) -> Result<Response, Refusal> {
    let limit = if call.query.contains_key("limit") { page::limit(&call.query)? } else { limits::LOG_PAGE };
    let after = page::position(&call.query, "afterSeq")?.unwrap_or(0);
    let (row, viewer) = call.run()?;
    let (tenant, run) = (call.tenant().clone(), row.id.clone());
    let logged: Vec<Logged> = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { log::read(tx, &tenant, &run, after, limit).await })
        })
        .await?;
    let seen = |l: &Logged| native::event_view(&row.id, l.seq, l.at, &l.event, viewer);
    answer::json(
        200,
        &EventList {
            events: logged.iter().filter_map(seen).collect(),
            last_seq: logged.last().map_or(after, |l| l.seq),
            more: logged.len() >= limit as usize,
        },
    )
}

pub(super) async fn stream(call: Call) -> Result<Response, Refusal> {
    let from = sse::cursor(&call)?;
    let (row, _) = call.run()?;
    // Nothing will ever follow: 204 tells a browser not to come back.
    if row.status.is_final() && from == row.last_seq {
        return Ok(answer::nothing());
    }
    let source = Source::Run { run: row.id.clone(), space: row.space.clone() };
    Ok(sse::open(call, source, from).await)
}

pub(super) async fn stream_space(call: Call) -> Result<Response, Refusal> {
    let from = sse::cursor(&call)?;
    let source = Source::Space(call.space()?.0.id.clone());
    Ok(sse::open(call, source, from).await)
}

pub(super) async fn cancel(call: Call) -> Result<Response, Refusal> {
    let CancelRun { reason } = call.json()?;
    let reason = answer::label("reason", reason)?;
    let run = call.id("run", "Run", RunId::parse)?;
    let caller = caller(&call, &Viewer::secret());
    call.app.runtime.cancel(caller, run.clone(), reason).await?;
    answer::json(200, &Canceling { run_id: run, canceling: true })
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Canceling {
    run_id: RunId,
    canceling: bool,
}

/// Removes a run that has ended, and all of it.
pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let run = call.id("run", "Run", RunId::parse)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let existed = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(row) = runs::lock(tx, &tenant, &run).await? else { return Ok(false) };
                if !row.status.is_final() {
                    return Err(Refusal::new(ErrorCode::RunBusy, "The run is live. Cancel it first"));
                }
                audit::write(tx, &tenant, &actor, "run.delete", run.as_str(), None).await?;
                Ok(runs::delete(tx, &tenant, &run).await?)
            })
        })
        .await?;
    answer::gone(existed, "Run")
}
