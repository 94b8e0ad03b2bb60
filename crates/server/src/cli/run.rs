//! `toolyard run`

use clap::Subcommand;
use serde_json::{Value, json};
use toolyard_protocol::{RunId, TenantId, Viewer, limits};
use toolyard_store::{Store, StoreError, log, runs};

use super::reach::{Gateway, Reach, reach};
use super::{CliError, Common, print};
use crate::config::Config;
use crate::routes::view;

#[derive(Debug, Subcommand)]
pub(super) enum Run {
    /// List runs, newest first.
    List,
    /// Show a run and its log.
    Show {
        /// The run's id, as `run list` shows it.
        id: String,
    },
    /// Stop a run of a running gateway.
    Cancel {
        /// The run's id, as `run list` shows it.
        id: String,
    },
    /// Start a run from a step of one that has ended.
    Replay {
        /// The id of a run that has ended, as `run list` shows it.
        id: String,
        /// The first step that is done anew.
        #[arg(long, default_value_t = 1)]
        step: u32,
        /// Instead of the model that the run used.
        #[arg(long)]
        model: Option<String>,
    },
}

const COLUMNS: &[&str] = &["id", "status", "agentName", "createdAt", "errorCode"];

pub(super) async fn obey(command: Run, common: &Common, config: &Config) -> Result<(), CliError> {
    let id_of = |id: &str| RunId::parse(id).map_err(|e| CliError::said(e.to_string()));
    match (command, reach(common, config).await?) {
        (Run::Cancel { id }, Reach::Gateway(gateway)) => {
            let id = id_of(&id)?;
            let answer = gateway.post(&format!("/api/runs/{id}/cancel"), &json!({})).await?;
            print::value(common.json, &answer, |_| "canceling".to_owned());
        }
        (Run::Replay { id, step, model }, Reach::Gateway(gateway)) => {
            let (id, asked) = (id_of(&id)?, json!({"step": step, "model": model}));
            let answer = gateway.post(&format!("/api/runs/{id}/replay"), &asked).await?;
            print::value(common.json, &answer, |made| made["runId"].as_str().unwrap_or_default().to_owned());
        }
        (Run::List, Reach::Gateway(gateway)) => {
            let list = gateway.get("/api/runs", &[("limit", "200")]).await?;
            print::rows(common.json, &list, "runs", COLUMNS);
        }
        (Run::Show { id }, Reach::Gateway(gateway)) => {
            print::line(format_args!("{:#}", show_remote(&gateway, &id_of(&id)?).await?));
        }
        (Run::Cancel { .. } | Run::Replay { .. }, Reach::Database(store)) => {
            store.close().await;
            return Err(CliError::said("no gateway runs: start one to cancel or replay a run"));
        }
        (Run::List, Reach::Database(store)) => {
            let done = list(&store, common.json).await;
            store.close().await;
            done?;
        }
        (Run::Show { id }, Reach::Database(store)) => {
            let done = show(&store, id_of(&id)?).await;
            store.close().await;
            done?;
        }
    }
    Ok(())
}

/// A run and its whole log, page by page.
async fn show_remote(gateway: &Gateway, id: &RunId) -> Result<Value, CliError> {
    let mut shown = gateway.get(&format!("/api/runs/{id}"), &[]).await?;
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = events.last().and_then(|e| e["seq"].as_i64()).unwrap_or(0).to_string();
        let query = [("afterSeq", after.as_str()), ("limit", "200")];
        let page = gateway.get(&format!("/api/runs/{id}/events"), &query).await?;
        let page = page["events"].as_array().cloned().unwrap_or_default();
        if page.is_empty() {
            shown["events"] = Value::Array(events);
            return Ok(shown);
        }
        events.extend(page);
    }
}

async fn list(store: &Store, as_json: bool) -> Result<(), CliError> {
    let tenant = TenantId::default_tenant();
    let rows = store
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { runs::list(tx, &tenant, None, None, None, limits::PAGE_MAX).await })
        })
        .await?;
    let views: Vec<_> = rows.into_iter().map(|row| view::run(row, &Viewer::secret())).collect();
    print::rows(as_json, &json!({"runs": views}), "runs", COLUMNS);
    Ok(())
}

async fn show(store: &Store, id: RunId) -> Result<(), CliError> {
    let tenant = TenantId::default_tenant();
    let found = store
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(row) = runs::get(tx, &tenant, &id).await? else { return Ok(None) };
                let mut events = Vec::new();
                loop {
                    let after = events.last().map_or(0, |l: &log::Logged| l.seq);
                    let page = log::read(tx, &tenant, &id, after, limits::LOG_PAGE).await?;
                    let last = page.len() < limits::LOG_PAGE as usize;
                    events.extend(page);
                    if last {
                        return Ok(Some((row, events)));
                    }
                }
            })
        })
        .await?;
    let (row, events) = found.ok_or_else(|| CliError::said("Run not found"))?;
    let viewer = Viewer::secret();
    let log: Vec<_> = events
        .iter()
        .filter_map(|l| toolyard_dialects::native::event_view(&row.id, l.seq, l.at, &l.event, &viewer))
        .collect();
    print::line(format_args!("{:#}", json!({"run": view::run(row, &viewer), "events": log})));
    Ok(())
}
