//! What happens to files alone.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;
use serde_json::json;
use toolyard_plugins::bundle::audit::{Level, audit};
use toolyard_plugins::bundle::{
    self, Candidate, Curator, CuratorKey, Keyring, Moment, PluginPattern, Policy, PublicKeyFile, SigningKey,
    Trust,
};
use toolyard_protocol::CuratorId;
use toolyard_store::{Clock as _, SystemClock};

use super::Algorithm;
use crate::auth::write_private;
use crate::cli::{CliError, print};

pub(super) fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(file).map_err(|e| at(file, e))
}

pub(super) fn read_text(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file).map_err(|e| at(file, e))
}

pub(super) fn at(file: &Path, why: impl std::fmt::Display) -> CliError {
    CliError::said(format!("{}: {why}", file.display()))
}

fn candidate(file: &Path) -> Result<Candidate, CliError> {
    Candidate::read(&read(file)?).map_err(|why| at(file, why))
}

/// `curator.key` and `curator.key.pub`. A key that is there is never written over.
pub(super) fn keygen(out: &Path, curator: &str, algorithm: Algorithm, as_json: bool) -> Result<(), CliError> {
    let curator = CuratorId::parse(curator).map_err(|e| CliError::said(e.to_string()))?;
    let public_file = PathBuf::from(format!("{}.pub", out.display()));
    for file in [out, &public_file] {
        if file.exists() {
            return Err(at(file, "exists already"));
        }
    }
    let algorithm = match algorithm {
        Algorithm::Ed25519 => bundle::Algorithm::Ed25519,
        Algorithm::Rsa => bundle::Algorithm::RsaPkcs1Sha256,
    };
    let key = SigningKey::generate(curator, algorithm).map_err(|e| CliError::said(e.to_string()))?;
    write_private(out, key.to_file().expose_secret()).map_err(|e| at(out, e))?;
    let public = json!(key.public_file());
    std::fs::write(&public_file, format!("{public:#}\n")).map_err(|e| at(&public_file, e))?;
    print::value(as_json, &public, |_| {
        format!(
            "{} keeps the private key: do not share it\n{} is the public key (id {})",
            out.display(),
            public_file.display(),
            key.public().id()
        )
    });
    Ok(())
}

pub(super) fn sign(plugin: &Path, key: &Path, out: &Path, as_json: bool) -> Result<(), CliError> {
    let candidate = candidate(plugin)?;
    let key_text = secrecy::SecretString::from(read_text(key)?);
    let signer = SigningKey::from_file(key_text.expose_secret()).map_err(|why| at(key, why))?;
    let report = audit(&candidate, None);
    for finding in &report.findings {
        let level = if finding.level == Level::Forbidden { "forbidden" } else { "notice" };
        eprintln!(
            "{level}: {} (in {}, line {}, {})",
            finding.text, finding.piece, finding.line, finding.rule
        );
    }
    if let Some(finding) = report.forbidden().next() {
        return Err(at(plugin, format!("the audit forbids it: {}", finding.text)));
    }
    let signed = signer.sign(&candidate).map_err(|why| at(plugin, why))?;
    let document: serde_json::Value = serde_json::from_str(&signed.text()).unwrap_or_default();
    std::fs::write(out, format!("{document:#}\n")).map_err(|e| at(out, e))?;
    let done = json!({
        "id": signed.id(), "version": signed.version(), "hash": signed.hash(),
        "curatorId": signer.public_file().curator_id, "report": report,
    });
    print::value(as_json, &done, |_| {
        format!("{} {} is signed: {}", signed.id(), signed.version(), out.display())
    });
    Ok(())
}

/// Trusts the given keys for every plugin: which ones a curator may sign is
/// for a gateway to say.
pub(super) fn verify(
    plugin: &Path,
    keys: &[PathBuf],
    threshold: usize,
    as_json: bool,
) -> Result<(), CliError> {
    let all = PluginPattern::parse("*").map_err(CliError::said)?;
    let mut keyring = Keyring { threshold, ..Keyring::empty() };
    for file in keys {
        let (id, public) = PublicKeyFile::read(&read_text(file)?).map_err(|why| at(file, why))?;
        let key = CuratorKey { public, expires_at: None };
        match keyring.curators.iter_mut().find(|curator| curator.id == id) {
            Some(curator) => curator.keys.push(key),
            None => keyring.curators.push(Curator { id, plugins: vec![all.clone()], keys: vec![key] }),
        }
    }
    let now = SystemClock::default().now();
    let admitted = keyring.admit(candidate(plugin)?, Policy::Production, Moment::at(now));
    let genuine = admitted.map_err(|why| at(plugin, why))?;
    let by = match genuine.trust() {
        Trust::Signed { by } => by.clone(),
        Trust::Unsigned => Vec::new(),
    };
    let done = json!({
        "genuine": true, "id": genuine.id(), "version": genuine.version(), "hash": genuine.hash(),
        "curators": by,
    });
    print::value(as_json, &done, |_| {
        let names: Vec<&str> = by.iter().map(CuratorId::as_str).collect();
        format!("genuine: {} {}, signed by {}", genuine.id(), genuine.version(), names.join(", "))
    });
    Ok(())
}
