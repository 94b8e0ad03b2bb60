//! Makes the keys that nobody configured, once, and keeps them in
//! `<data>/keys.json`, which only its owner may read.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toolyard_protocol::KeyKind;

use super::operator::{new_key, random};
use crate::config::{Config, Hidden};

/// Keys on disk.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyFile {
    secret_key: String,
    public_key: String,
    jwt_secret: String,
}

/// The keys this gateway uses.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) secret: Hidden,
    pub(crate) public: Hidden,
    pub(crate) jwt: Hidden,
    /// The secret key was made just now: show it once.
    pub(crate) first: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    #[error("{file} cannot be used: {why}")]
    File { file: String, why: String },
    #[error("{0}: {1}")]
    Setting(&'static str, &'static str),
    #[error("{0}")]
    Random(String),
}

/// What is configured wins; what is missing comes from the file, or is made.
pub(crate) fn ensure_keys(config: &Config) -> Result<Made, KeyFileError> {
    let (secret, public, jwt) = (&config.keys.secret, &config.keys.public, &config.jwt.secret);
    if ![secret, public, jwt].into_iter().any(Hidden::is_empty) {
        return Ok(Made { secret: secret.clone(), public: public.clone(), jwt: jwt.clone(), first: false });
    }
    let file = config.data.join("keys.json");
    let (kept, new) = match read(&file)? {
        Some(kept) => (kept, false),
        None => (make(&file)?, true),
    };
    let pick =
        |given: &Hidden, kept: String| if given.is_empty() { Hidden::new(kept) } else { given.clone() };
    Ok(Made {
        first: new && secret.is_empty(),
        secret: pick(secret, kept.secret_key),
        public: pick(public, kept.public_key),
        jwt: pick(jwt, kept.jwt_secret),
    })
}

/// The operator's secret key as this machine knows it, for the command line.
pub(crate) fn stored_secret(config: &Config) -> Option<secrecy::SecretString> {
    if !config.keys.secret.is_empty() {
        return Some(config.keys.secret.expose().to_owned().into());
    }
    let kept = read(&config.data.join("keys.json")).ok()??;
    Some(kept.secret_key.into())
}

pub(super) fn fault(file: &Path, why: impl ToString) -> KeyFileError {
    KeyFileError::File { file: file.display().to_string(), why: why.to_string() }
}

fn read(file: &Path) -> Result<Option<KeyFile>, KeyFileError> {
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|e| fault(file, e)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(fault(file, e)),
    }
}

fn make(file: &Path) -> Result<KeyFile, KeyFileError> {
    let keys = KeyFile {
        secret_key: new_key(KeyKind::Secret).map_err(KeyFileError::Random)?,
        public_key: new_key(KeyKind::Public).map_err(KeyFileError::Random)?,
        jwt_secret: random().map_err(KeyFileError::Random)?,
    };
    let text = serde_json::to_string_pretty(&keys).map_err(|e| fault(file, e))?;
    write_private(file, &text).map_err(|e| fault(file, e))?;
    Ok(keys)
}

/// Nobody else may read it from the first byte on, and a crash leaves no half file.
pub(crate) fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let part = file.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(&part)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&part, file)
}
