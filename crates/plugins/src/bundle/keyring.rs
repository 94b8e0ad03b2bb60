//! Whom a gateway trusts, for which plugins, and what it trusts no longer.

use std::fmt;

use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{CuratorId, Hash, PluginId, Timestamp};

use super::key::PublicKey;

/// Who may sign, and how many must.
#[derive(Debug, Clone)]
pub struct Keyring {
    pub curators: Vec<Curator>,
    pub revocations: Vec<Revocation>,
    /// Distinct curators that must have signed; at least one.
    pub threshold: usize,
}

/// A signer.
#[derive(Debug, Clone)]
pub struct Curator {
    pub id: CuratorId,
    pub plugins: Vec<PluginPattern>,
    pub keys: Vec<CuratorKey>,
}

#[derive(Debug, Clone)]
pub struct CuratorKey {
    pub public: PublicKey,
    pub expires_at: Option<Timestamp>,
}

/// Plugins that a curator may sign: `time`, `acme-*` or `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginPattern {
    One(PluginId),
    Prefix(String),
}

impl PluginPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a plugin id, the start of one with a * behind it, or *");
        let Some(prefix) = text.strip_suffix('*') else {
            return PluginId::parse(text).map(Self::One).map_err(|e| e.to_string());
        };
        let fits = prefix.is_empty() || PluginId::parse(&format!("{prefix}x")).is_ok();
        if fits { Ok(Self::Prefix(prefix.to_owned())) } else { Err(bad()) }
    }
    pub fn has(&self, plugin: &PluginId) -> bool {
        match self {
            Self::One(id) => id == plugin,
            Self::Prefix(prefix) => plugin.as_str().starts_with(prefix.as_str()),
        }
    }
}

impl fmt::Display for PluginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => write!(f, "{id}"),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

/// Something that is trusted no longer. It is never taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub what: Revoked,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    Key(Hash),
    Curator(CuratorId),
    Plugin(PluginId),
    Version(PluginId, PluginVersion),
}

impl Keyring {
    /// Trusts nobody.
    pub const fn empty() -> Self {
        Self { curators: Vec::new(), revocations: Vec::new(), threshold: 1 }
    }

    pub(super) fn curator(&self, id: &CuratorId) -> Option<&Curator> {
        self.curators.iter().find(|curator| curator.id == *id)
    }

    pub(super) fn revoked(&self, is: impl Fn(&Revoked) -> bool) -> Option<&str> {
        self.revocations.iter().find(|one| is(&one.what)).map(|one| one.reason.as_str())
    }
}
