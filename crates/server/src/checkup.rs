//! What is looked for in a database: by `toolyard doctor` itself, or by the
//! gateway that holds it, when it is asked. Only looks.

use schemars::JsonSchema;
use serde::Serialize;
use toolyard_protocol::{RunId, TenantId, limits};
use toolyard_store::{Store, StoreError, log, nodes, runs};

/// Isolated runs that are named.
const NAMED: u32 = 20;
/// Live runs whose logs are read, the oldest first.
const LIVE: u32 = 1_000;

/// One look: its name, whether it is fine, and a sentence.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) ok: bool,
    pub(crate) says: String,
}

impl Finding {
    pub(crate) fn new(check: &'static str, ok: bool, says: impl Into<String>) -> Self {
        Self { check, ok, says: says.into() }
    }
}

pub(crate) async fn database(store: &Store) -> Result<Vec<Finding>, StoreError> {
    let (known, counts, poisoned) = store
        .read::<_, StoreError, _>(|tx| {
            Box::pin(async move {
                Ok((nodes::live(tx).await?, runs::counts(tx).await?, runs::poisoned(tx, NAMED).await?))
            })
        })
        .await?;
    let kind = if store.is_sqlite() { "SQLite" } else { "PostgreSQL" };
    let schema = toolyard_store::known_version();
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let isolated: Vec<&str> = poisoned.iter().map(|row| row.id.as_str()).collect();
    let unreadable = unreadable(store).await?;
    Ok(vec![
        Finding::new(
            "database",
            true,
            format!("{kind}, schema version {schema}, {} nodes known", known.len()),
        ),
        Finding::new("runs", true, counts),
        named("isolated runs", &isolated, "look at them with `toolyard run show`"),
        named(
            "unreadable runs",
            &unreadable.iter().map(RunId::as_str).collect::<Vec<_>>(),
            "this release cannot read their logs; one that can will go on with them",
        ),
    ])
}

fn named(check: &'static str, runs: &[&str], then: &str) -> Finding {
    match runs {
        [] => Finding::new(check, true, "none"),
        some => Finding::new(check, false, format!("{}: {then}", some.join(", "))),
    }
}

/// Live runs whose logs this release cannot read.
async fn unreadable(store: &Store) -> Result<Vec<RunId>, StoreError> {
    let live =
        store.read::<_, StoreError, _>(|tx| Box::pin(async move { runs::live(tx, LIVE).await })).await?;
    let mut unreadable = Vec::new();
    for (tenant, run) in live {
        match read_through(store, tenant, run.clone()).await {
            Ok(()) => {}
            Err(StoreError::Undecodable(_)) => unreadable.push(run),
            Err(error) => return Err(error),
        }
    }
    Ok(unreadable)
}

async fn read_through(store: &Store, tenant: TenantId, run: RunId) -> Result<(), StoreError> {
    store
        .read(move |tx| {
            Box::pin(async move {
                let mut after = 0;
                loop {
                    let page = log::read(tx, &tenant, &run, after, limits::LOG_PAGE).await?;
                    match page.last() {
                        Some(last) if page.len() >= limits::LOG_PAGE as usize => after = last.seq,
                        Some(_) | None => return Ok(()),
                    }
                }
            })
        })
        .await
}
