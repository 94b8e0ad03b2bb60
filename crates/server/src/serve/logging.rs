//! Log lines on stderr, as text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Which lines are written.
pub(super) fn filter(log: &Log) -> Result<EnvFilter, String> {
    EnvFilter::try_new(&log.level).map_err(|e| e.to_string())
}

pub(super) fn start(log: &Log) -> Result<(), String> {
    let filter = filter(log)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    }
    .map_err(|e| e.to_string())
}
