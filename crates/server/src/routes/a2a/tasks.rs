//! Tasks: read, list, cancel, follow. Whose they are not, for them they are not.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toolyard_dialects::a2a::{
    self, Begin, Fault, FaultKind, Form, List, State, Task, TaskStream, Taste, Until,
};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{KeyKind, RunId, Timestamp, Viewer};
use toolyard_runtime::{Caller, TaskRead, TaskReader, changed_at};
use toolyard_store::StoreError;
use toolyard_store::runs::{self, RunRow};
use toolyard_store::tasks::{self, Which};

use super::place::Place;
use super::reply::Asked;
use crate::http::Refusal;
use crate::routes::call::Call;
use crate::routes::dispatch::run_viewer;
use crate::sse;

fn fault(e: impl Into<Refusal>) -> Fault {
    Fault::from(e.into().error)
}

/// The caller's task of this agent. Everything else is not there.
pub(super) async fn find(call: &Call, place: &Place, task: &RunId) -> Result<(RunRow, Viewer), Fault> {
    let row = again(call, task).await?;
    if row.agent != place.agent || row.parent.is_some() {
        return Err(Fault::task_not_found());
    }
    let viewer = run_viewer(&call.app, &call.principal, &row).await.map_err(fault)?;
    Ok((row, viewer.ok_or_else(Fault::task_not_found)?))
}

/// The row of a run as it is now.
pub(super) async fn again(call: &Call, task: &RunId) -> Result<RunRow, Fault> {
    let (tenant, run) = (call.tenant().clone(), task.clone());
    let row = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &run).await }))
        .await
        .map_err(fault)?;
    row.ok_or_else(Fault::task_not_found)
}

pub(super) fn reader(call: &Call, viewer: &Viewer, taste: Taste, files: String) -> TaskReader {
    TaskReader { tenant: call.tenant().clone(), viewer: viewer.clone(), taste, files, until: None }
}

pub(super) async fn read(call: &Call, reader: TaskReader, row: RunRow) -> Result<TaskRead, Fault> {
    let read =
        call.store().read::<_, StoreError, _>(move |tx| Box::pin(async move { reader.read(tx, &row).await }));
    read.await.map_err(fault)
}

pub(super) async fn get(
    call: Call,
    place: Place,
    task: RunId,
    history: Option<u32>,
    asked: &Asked,
) -> Result<Response, Fault> {
    let (row, viewer) = find(&call, &place, &task).await?;
    let read = read(&call, reader(&call, &viewer, asked.taste(), asked.files()), row).await?;
    let task = read.task.task(read.history, history, true);
    Ok(asked.answer(a2a::write::task(&task, asked.version)))
}

/// Ends a task, and answers when it has ended.
pub(super) async fn cancel(call: Call, place: Place, task: RunId, asked: &Asked) -> Result<Response, Fault> {
    let (row, viewer) = find(&call, &place, &task).await?;
    let ended = || Fault::new(FaultKind::TaskNotCancelable, "The task has ended: it cannot be canceled");
    if row.status.is_final() {
        return Err(ended());
    }
    // Whoever may answer a run's questions by default may stop it.
    if !viewer.sees_all() && (viewer.entity.is_none() || viewer.entity != row.triggered_by) {
        return Err(Fault::new(
            FaultKind::TaskNotCancelable,
            "Only the one this task works for may cancel it",
        ));
    }
    let actor = Actor::caller(&call.principal, None);
    let caller = Caller { tenant: call.tenant().clone(), viewer: viewer.clone(), actor };
    if let Err(e) = call.app.runtime.cancel(caller, task.clone(), None).await {
        return Err(if e.code == toolyard_protocol::ErrorCode::RunEnded { ended() } else { Fault::from(e) });
    }
    let TaskRead { task: so_far, history, taste } =
        read(&call, reader(&call, &viewer, asked.taste(), asked.files()), row.clone()).await?;
    let reader = reader(&call, &viewer, taste, asked.files());
    let blank = reader.blank(&row.id, so_far.context().to_owned(), taste);
    let telling = TaskStream::new(blank, asked.version, asked.binding.clone(), Form::Ended, Begin::Now)
        .with_history(history, None);
    Ok(asked.dress(sse::tell(call, viewer, row.id, row.space, Box::new(telling))))
}

/// Follows a task over its pauses to its end. With `Last-Event-ID`, from there.
pub(super) async fn subscribe(
    call: Call,
    place: Place,
    task: RunId,
    asked: &Asked,
) -> Result<Response, Fault> {
    let (row, viewer) = find(&call, &place, &task).await?;
    let resumes = call.headers.contains_key("last-event-id");
    let begin = match sse::cursor(&call) {
        Ok(seq) if resumes => Begin::Resume(seq),
        Ok(_) => Begin::Now,
        Err(e) => return Err(Fault::field("Last-Event-ID", e.error.message)),
    };
    // Who comes back may have missed the end.
    if row.status.is_final() && !resumes {
        return Err(Fault::new(FaultKind::Unsupported, "The task has ended: there is nothing to follow"));
    }
    let TaskRead { task: so_far, history, taste } =
        read(&call, reader(&call, &viewer, asked.taste(), asked.files()), row.clone()).await?;
    let reader = reader(&call, &viewer, taste, asked.files());
    let blank = reader.blank(&row.id, so_far.context().to_owned(), taste);
    let form = Form::Stream(Until::End);
    let telling =
        TaskStream::new(blank, asked.version, asked.binding.clone(), form, begin).with_history(history, None);
    Ok(asked.dress_stream(sse::tell(call, viewer, row.id, row.space, Box::new(telling))))
}

pub(super) async fn list(call: Call, place: Place, list: List, asked: &Asked) -> Result<Response, Fault> {
    let behind = list.page_token.as_deref().map(read_token).transpose()?;
    let (tenant, by, agent) = (call.tenant().clone(), call.principal.clone(), place.agent.clone());
    let wanted = list.clone();
    // A user lists the tasks that work for them; a backend all of its tenant.
    let of = match by.kind {
        KeyKind::Secret => None,
        KeyKind::Public => Some(by.entity.clone().ok_or_else(Fault::task_not_found)?),
    };
    let runtime = call.app.runtime.clone();
    let space = match &list.context {
        None => None,
        Some(name) => match runtime.find_context(by.clone(), name.clone()).await? {
            Some(space) => Some(space),
            // Nobody has ever talked there.
            None => return Ok(asked.answer(page(&[], String::new(), 0, &list, asked))),
        },
    };
    let found = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let (status, credential, filtered) = match wanted.state {
                None => (None, None, None),
                Some(State::Submitted) => (Some(RunStatus::Queued), None, None),
                Some(State::Working) => (Some(RunStatus::Running), None, None),
                Some(State::InputRequired) => (Some(RunStatus::WaitingTool), Some(false), None),
                Some(State::AuthRequired) => (Some(RunStatus::WaitingTool), Some(true), None),
                Some(State::Completed) => (Some(RunStatus::Completed), None, None),
                Some(State::Canceled) => (Some(RunStatus::Canceled), None, None),
                Some(State::Failed) => (Some(RunStatus::Failed), None, Some(false)),
                Some(State::Rejected) => (Some(RunStatus::Failed), None, Some(true)),
            };
            let which = Which {
                agent: &agent,
                of: of.as_ref(),
                space: space.as_ref(),
                status,
                credential,
                filtered,
                after: wanted.after,
            };
            let total = tasks::count(tx, &tenant, which).await?;
            let rows = tasks::list(tx, &tenant, which, behind.as_ref(), wanted.page_size + 1).await?;
            Ok((rows, total))
        })
    });
    let (mut rows, total) = found.await.map_err(fault)?;
    let more = rows.len() > list.page_size as usize;
    rows.truncate(list.page_size as usize);
    let next = rows.last().filter(|_| more).map(|row| write_token(&changed_at(row))).unwrap_or_default();
    let mut tasks = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(viewer) = run_viewer(&call.app, &call.principal, &row).await.map_err(fault)? else {
            continue;
        };
        let read = read(&call, reader(&call, &viewer, asked.taste(), asked.files()), row).await?;
        tasks.push(read.task.task(read.history, list.history, list.artifacts));
    }
    Ok(asked.answer(page(&tasks, next, total, &list, asked)))
}

fn page(tasks: &[Task], next: String, total: i64, list: &List, asked: &Asked) -> serde_json::Value {
    let size = u32::try_from(tasks.len()).unwrap_or(list.page_size);
    a2a::answer::task_list(tasks, &next, size, total, asked.version)
}

/// Where a page ended, as a text that means nothing to clients.
fn write_token((at, id): &(Timestamp, RunId)) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {id}", at.millis()))
}

fn read_token(text: &str) -> Result<(Timestamp, RunId), Fault> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (at, id) = text.split_once(' ')?;
        Some((Timestamp::from_millis(at.parse().ok()?), RunId::parse(id).ok()?))
    };
    read().ok_or_else(|| Fault::field("pageToken", "is not one that a list gave"))
}
