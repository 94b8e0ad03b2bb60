//! Agents from files: loaded at the start, and again when a file changes.
//! They belong to the tenant `default`. A removed file removes no agent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolyard_protocol::TenantId;
use toolyard_runtime::{check_agent, check_secret_fields};
use toolyard_store::agents::{self, Upserted};
use toolyard_store::{StoreError, audit};

use crate::app::App;
use crate::config::Mode;

const EVERY: Duration = Duration::from_secs(1);

type Seen = HashMap<PathBuf, (SystemTime, u64)>;

pub(super) async fn load_all(app: &App) {
    for file in changed(&app.config.agents_dir, &mut Seen::new()) {
        load(app, &file).await;
    }
}

/// Looks at the files once a second.
pub(super) async fn watch(app: Arc<App>) {
    let mut seen = Seen::new();
    changed(&app.config.agents_dir, &mut seen);
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = app.shutdown.cancelled() => return,
        }
        for file in changed(&app.config.agents_dir, &mut seen) {
            load(&app, &file).await;
        }
    }
}

/// Files that are new or different since the last look, in the order of their names.
fn changed(folder: &Path, seen: &mut Seen) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .filter(|path| {
            let Ok(meta) = std::fs::metadata(path) else { return false };
            let Ok(modified) = meta.modified() else { return false };
            let now = (modified, meta.len());
            seen.insert(path.clone(), now) != Some(now)
        })
        .collect();
    files.sort();
    files
}

/// One bad file is one line in the log; the others still load.
async fn load(app: &App, file: &Path) {
    let name = file.display().to_string();
    match store(app, file).await {
        Ok(Some((agent, done))) => tracing::info!(file = name, agent, ?done, "agent loaded"),
        Ok(None) => {}
        Err(why) => tracing::error!(file = name, why, "this agent cannot be loaded"),
    }
}

async fn store(app: &App, file: &Path) -> Result<Option<(String, Upserted)>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let config: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let checked = check_agent(&config).map_err(|e| e.message)?;
    if app.config.mode == Mode::Production {
        check_secret_fields(&checked).map_err(|e| e.message)?;
    }
    if let Err(why) = app.runtime.check_agents_model(&checked) {
        // Another node, or a later configuration, may have it.
        tracing::warn!(agent = %checked.config.agent.name, %why, "this agent cannot run here yet");
    }
    let name = checked.config.agent.name;
    let (tenant, stored) = (TenantId::default_tenant(), name.clone());
    let done = app
        .store
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let (_, done) = agents::upsert(tx, &tenant, &stored, &config).await?;
                if done != Upserted::Same {
                    audit::write(tx, &tenant, "agents_dir", "agent.put", stored.as_str(), None).await?;
                }
                Ok(done)
            })
        })
        .await
        .map_err(|e| e.to_string())?;
    Ok((done != Upserted::Same).then(|| (name.to_string(), done)))
}
