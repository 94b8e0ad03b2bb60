//! Log lines on stderr, as text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Which lines are written.
pub(super) fn filter(log: &Log) -> Result<EnvFilter, String> {
    // A word alone is a level. The filter would take any other word for a
    // module of that name, and write nothing at all.
    for part in log.level.split(',').map(str::trim) {
        let alone = !part.contains(['=', '[']);
        if part.is_empty() || alone && part.parse::<tracing_subscriber::filter::LevelFilter>().is_err() {
            return Err(format!(
                "{part:?} is no level: use error, warn, info, debug, trace, or a filter such as info,toolyard=debug"
            ));
        }
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_level_that_is_none_is_refused_and_does_not_silence_the_log() {
        let filter = |level: &str| filter(&Log { level: level.to_owned(), ..Log::default() });
        for fine in ["info", "INFO", "warn,toolyard=debug", "off", "toolyard[span]=trace"] {
            assert!(filter(fine).is_ok(), "{fine}");
        }
        for bad in ["loud", "", "info,toolyard", "debug,loud"] {
            assert!(filter(bad).unwrap_err().contains("is no level"), "{bad}");
        }
    }
}
