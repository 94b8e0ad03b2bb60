//! `toolyard backup`: one file that holds everything of a stopped gateway.

use std::fs::File;
use std::path::Path;

use serde_json::json;

use super::reach::running;
use super::{CliError, Common, local, print};
use crate::config::Config;

pub(super) async fn obey(file: &Path, common: &Common, config: &Config) -> Result<(), CliError> {
    if !config.database_url.is_empty() {
        return Err(CliError::said("this gateway uses PostgreSQL: back it up with pg_dump"));
    }
    if let Some(url) = running(config) {
        return Err(CliError::said(format!("a gateway runs at {url}: stop it first")));
    }
    if file.exists() {
        return Err(CliError::said(format!("{} exists already", file.display())));
    }
    // Opening recovers what a kill left behind; closing folds the journal into the file.
    local::open(config).await?.close().await;
    let said = |e: std::io::Error| CliError::said(format!("the backup failed: {e}"));
    let lock = File::create(config.data.join("lock")).map_err(said)?;
    if lock.try_lock().is_err() {
        return Err(CliError::said("a gateway started meanwhile: stop it first"));
    }
    let journal = config.data.join("toolyard.db-wal");
    if std::fs::metadata(&journal).is_ok_and(|m| m.len() > 0) {
        return Err(CliError::said("the database's journal is not empty: try again"));
    }
    let part = file.with_extension("part");
    let bytes = std::fs::copy(config.data.join("toolyard.db"), &part).map_err(said)?;
    File::open(&part).and_then(|f| f.sync_all()).map_err(said)?;
    std::fs::rename(&part, file).map_err(said)?;
    drop(lock);
    print::value(common.json, &json!({"file": file, "bytes": bytes}), |_| {
        format!("{bytes} bytes in {}", file.display())
    });
    Ok(())
}
