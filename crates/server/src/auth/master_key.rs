//! The key that closes secrets: configured, or kept in `<data>/master.key`,
//! which only its owner may read.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;
use toolyard_runtime::Sealer;

use super::first_start::{KeyFileError, fault, write_private};
use super::operator::random;
use crate::config::Config;

/// What is configured wins; else the file's, which is made at the first start.
pub(crate) fn ensure_master_key(config: &Config) -> Result<Arc<Sealer>, KeyFileError> {
    let configured = &config.keys.master;
    let file = config.data.join("master.key");
    let text = if configured.is_empty() { kept(&file)? } else { configured.expose().to_owned() };
    let sealer = Sealer::parse(&SecretString::from(text)).map_err(|why| {
        if configured.is_empty() { fault(&file, why) } else { KeyFileError::Setting("keys.master", why) }
    })?;
    Ok(Arc::new(sealer))
}

fn kept(file: &Path) -> Result<String, KeyFileError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let text = random().map_err(KeyFileError::Random)?;
            write_private(file, &text).map_err(|e| fault(file, e))?;
            Ok(text)
        }
        Err(e) => Err(fault(file, e)),
    }
}
