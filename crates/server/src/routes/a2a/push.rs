//! Where a task's news are pushed to. Tokens and credentials are sealed.

use axum::response::Response;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use toolyard_dialects::a2a::{self, Fault, PUSH_CONFIGS, PushConfig, Version};
use toolyard_protocol::run::PauseReason;
use toolyard_protocol::{KeyKind, RunId};
use toolyard_runtime::Purpose;
use toolyard_store::StoreError;
use toolyard_store::push_configs::{self, PushConfig as Row};
use toolyard_store::runs::{self, RunRow};

use super::place::Place;
use super::reply::Asked;
use super::tasks;
use crate::http::Refusal;
use crate::routes::call::Call;

fn fault(e: impl Into<Refusal>) -> Fault {
    Fault::from(e.into().error)
}

/// May the gateway go there? Asked again with each delivery.
pub(super) async fn check(call: &Call, config: &PushConfig) -> Result<(), Fault> {
    let allowed = call.app.guarded.is_allowed(&config.url).await;
    allowed.map(drop).map_err(|e| Fault::field("url", e.to_string()))
}

/// What an address hears of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// All of a task that began with it: also what has come to pass already.
    Start,
    /// What comes after it was named.
    Now,
}

/// Whether the run has come to something that addresses are told of.
fn rests(run: &RunRow) -> bool {
    let waits = |reason| !matches!(reason, PauseReason::Child | PauseReason::Timer);
    run.status.is_final() || run.reason.is_some_and(waits)
}

/// Keeps an address of a task.
pub(super) async fn keep(
    call: &Call,
    run: &RunId,
    mut config: PushConfig,
    version: Version,
    since: Since,
) -> Result<PushConfig, Fault> {
    let id = config.id.get_or_insert_with(|| match version {
        // A task of 0.3 has one address, under its own name.
        Version::V03 => run.to_string(),
        Version::V10 => uuid::Uuid::now_v7().to_string(),
    });
    let id = id.clone();
    let (scheme, credentials) = config.authorization.clone().unzip();
    let secret = json!({ "token": config.token, "scheme": scheme, "credentials": credentials }).to_string();
    let sealed = call
        .app
        .secrets
        .sealer()
        .seal(Purpose::Push, call.tenant(), &format!("{run}/{id}"), &SecretString::from(secret))
        .map_err(|_| Fault::new(a2a::FaultKind::Internal, "The address could not be sealed"))?;
    let owner = match (call.principal.kind, &call.principal.entity) {
        (KeyKind::Public, Some(entity)) => format!("public:{entity}"),
        (KeyKind::Public, None) => return Err(Fault::task_not_found()),
        (KeyKind::Secret, _) => "secret".to_owned(),
    };
    let (tenant, run, url) = (call.tenant().clone(), run.clone(), config.url.clone());
    let kept = call.store().write::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let there = push_configs::list(tx, &tenant, &run).await?;
            if there.len() >= PUSH_CONFIGS && !there.iter().any(|row| row.id == id) {
                return Ok(false);
            }
            let created_at = tx.now().await?;
            let version = version.as_str().to_owned();
            let row = Row { run, id, url, version, owner, sealed, created_at };
            push_configs::put(tx, &tenant, &row).await?;
            if since == Since::Start
                && let Some(stands) = runs::lock(tx, &tenant, &row.run).await?
                && rests(&stands)
            {
                push_configs::announce(tx, &tenant, &row.run, stands.last_seq, Some(&row.id)).await?;
            }
            Ok(true)
        })
    });
    if !kept.await.map_err(fault)? {
        return Err(Fault::field("", format!("A task has at most {PUSH_CONFIGS} addresses")));
    }
    Ok(config)
}

pub(super) async fn set(
    call: Call,
    place: Place,
    task: RunId,
    config: PushConfig,
    asked: &Asked,
) -> Result<Response, Fault> {
    tasks::find(&call, &place, &task).await?;
    check(&call, &config).await?;
    let config = keep(&call, &task, config, asked.version, Since::Now).await?;
    Ok(asked.answer(a2a::push_config(&task, &config, asked.version)))
}

/// What a row says, with its secrets.
fn open(call: &Call, row: Row) -> Result<PushConfig, Fault> {
    let closed = |_| Fault::new(a2a::FaultKind::Internal, "The address stays closed");
    let name = format!("{}/{}", row.run, row.id);
    let text = call.app.secrets.sealer().open(Purpose::Push, call.tenant(), &name, &row.sealed);
    let given: Value = serde_json::from_str(text.map_err(closed)?.expose_secret()).unwrap_or_default();
    let word = |name: &str| given[name].as_str().map(str::to_owned);
    Ok(PushConfig {
        id: Some(row.id),
        url: row.url,
        token: word("token"),
        authorization: word("scheme").zip(word("credentials")),
    })
}

async fn rows(call: &Call, task: &RunId) -> Result<Vec<Row>, Fault> {
    let (tenant, run) = (call.tenant().clone(), task.clone());
    let rows = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move { push_configs::list(tx, &tenant, &run).await })
    });
    rows.await.map_err(fault)
}

pub(super) async fn get(
    call: Call,
    place: Place,
    task: RunId,
    config: Option<String>,
    asked: &Asked,
) -> Result<Response, Fault> {
    tasks::find(&call, &place, &task).await?;
    let mut rows = rows(&call, &task).await?;
    // In 0.3 a task has one address, whatever its clients call it.
    let only = asked.version == Version::V03 && rows.len() == 1;
    rows.retain(|row| only || config.as_ref().is_none_or(|id| row.id == *id));
    let row = rows.into_iter().next();
    let missing = || Fault::new(a2a::FaultKind::TaskNotFound, "This task has no such address");
    let config = open(&call, row.ok_or_else(missing)?)?;
    Ok(asked.answer(a2a::push_config(&task, &config, asked.version)))
}

pub(super) async fn list(call: Call, place: Place, task: RunId, asked: &Asked) -> Result<Response, Fault> {
    tasks::find(&call, &place, &task).await?;
    let rows = rows(&call, &task).await?;
    let configs: Vec<PushConfig> =
        rows.into_iter().map(|row| open(&call, row)).collect::<Result<_, Fault>>()?;
    Ok(asked.answer(a2a::push_list(&task, &configs, asked.version)))
}

/// Removing what is not there is no error: it is gone.
pub(super) async fn delete(
    call: Call,
    place: Place,
    task: RunId,
    config: String,
    asked: &Asked,
) -> Result<Response, Fault> {
    tasks::find(&call, &place, &task).await?;
    let (tenant, run) = (call.tenant().clone(), task);
    let deleted = call.store().write::<_, StoreError, _>(move |tx| {
        Box::pin(async move { push_configs::delete(tx, &tenant, &run, &config).await })
    });
    deleted.await.map_err(fault)?;
    Ok(asked.answer(a2a::answer::removed(asked.version)))
}
