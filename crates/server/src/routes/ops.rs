//! Is the gateway up, is it ready, how is it doing.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use toolyard_protocol::run::RunStatus;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ErrorCode, TenantId};
use toolyard_store::{StoreError, nodes, runs, waits};

use super::call::Call;
use super::{answer, openapi};
use crate::app::App;
use crate::checkup::{self, Finding};
use crate::http::Refusal;

/// Up.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    status: &'static str,
    version: &'static str,
    /// Whether Redis answers, if it is used: `up`, or `down`. Without it the
    /// gateway does its work all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    redis: Option<&'static str>,
}

impl Health {
    fn of(status: &'static str, app: &App) -> Self {
        let link = app.store.feed().link();
        let redis = link.map(|link| if link.up { "up" } else { "down" });
        Self { status, version: env!("CARGO_PKG_VERSION"), redis }
    }
}

/// What `toolyard doctor` is told.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Checkup {
    checks: Vec<Finding>,
}

/// `GET /api/doctor`: looks for trouble in the database, of all tenants.
pub(super) async fn doctor(call: Call) -> Result<Response, Refusal> {
    if *call.tenant() != TenantId::default_tenant() {
        return Err(Refusal::forbidden("Only the operator's tenant may read this"));
    }
    answer::json(200, &Checkup { checks: checkup::database(call.store()).await? })
}

/// The process is up.
pub(super) async fn health(app: Arc<App>) -> Result<Response, Refusal> {
    answer::json(200, &Health::of("ok", &app))
}

/// The database answers and the gateway is not stopping.
pub(super) async fn ready(app: Arc<App>) -> Result<Response, Refusal> {
    if app.shutdown.is_cancelled() {
        return Err(Refusal::new(ErrorCode::ShuttingDown, "The gateway is stopping"));
    }
    app.store.read::<_, StoreError, _>(move |tx| Box::pin(async move { nodes::live(tx).await })).await?;
    answer::json(200, &Health::of("ready", &app))
}

/// Counters as Prometheus reads them.
pub(super) async fn metrics(app: Arc<App>) -> Result<Response, Refusal> {
    let counted = app.store.read::<_, StoreError, _>(move |tx| {
        Box::pin(async move { Ok((runs::counts(tx).await?, waits::counts(tx).await?)) })
    });
    let (by_status, by_kind) = counted.await?;
    // What counts nothing has no row: it must fall back to zero.
    for status in RunStatus::ALL {
        metrics::gauge!("toolyard_runs", "status" => status.as_str()).set(0.0);
    }
    for kind in WaitKind::ALL {
        metrics::gauge!("toolyard_waits_open", "kind" => kind.as_str()).set(0.0);
    }
    // Exact up to 2^53.
    for (status, count) in by_status {
        metrics::gauge!("toolyard_runs", "status" => status).set(count as f64);
    }
    for (kind, count) in by_kind {
        metrics::gauge!("toolyard_waits_open", "kind" => kind).set(count as f64);
    }
    if let Some(link) = app.store.feed().link() {
        metrics::gauge!("toolyard_redis_up").set(if link.up { 1.0 } else { 0.0 });
        metrics::counter!("toolyard_redis_messages_lost_total").absolute(link.lost);
    }
    let text = app.meter.0.render();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

/// This API.
pub(super) async fn document(_: Arc<App>) -> Result<Response, Refusal> {
    answer::json(200, &openapi::document())
}
