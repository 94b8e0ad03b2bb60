//! `toolyard backup`: one file that holds everything, also while the gateway runs.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{CliError, Common, local, print};
use crate::config::Config;

pub(super) async fn obey(file: &Path, common: &Common, config: &Config) -> Result<(), CliError> {
    if !config.database_url.is_empty() {
        return Err(CliError::said("this gateway uses PostgreSQL: back it up with pg_dump"));
    }
    local::check_kept(config)?;
    if file.exists() {
        return Err(CliError::said(format!("{} exists already", file.display())));
    }
    let (data, part): (PathBuf, PathBuf) = (config.data.clone(), file.with_extension("part"));
    let target = part.clone();
    let copied = tokio::task::spawn_blocking(move || toolyard_store::back_up(&data, &target)).await;
    let said = |e: &dyn std::fmt::Display| CliError::said(format!("the backup failed: {e}"));
    let bytes = copied.map_err(|e| said(&e))?.map_err(|e| said(&e))?;
    std::fs::rename(&part, file).map_err(|e| said(&e))?;
    print::value(common.json, &json!({"file": file, "bytes": bytes}), |_| {
        format!("{bytes} bytes in {}", file.display())
    });
    Ok(())
}
