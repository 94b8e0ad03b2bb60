//! Why a well-formed plugin does not run. Each text names the plugin; the
//! first three are kept word for word from the source documents (row H58).

use toolyard_protocol::manifest::{PluginVersion, VersionRange};
use toolyard_protocol::{CuratorId, PluginId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("Unsigned plugin rejected in production: {plugin}")]
    Unsigned { plugin: PluginId },
    #[error("Invalid signature for plugin: {plugin} (curator {curator})")]
    InvalidSignature { plugin: PluginId, curator: CuratorId },
    #[error("Content hash mismatch for plugin: {plugin}")]
    HashMismatch { plugin: PluginId },
    #[error("Plugin {plugin} names a curator or a content hash and has no signature: it was taken off")]
    Stripped { plugin: PluginId },
    #[error("Plugin {plugin} has a signature without a curatorId")]
    Nameless { plugin: PluginId },
    #[error("Plugin {plugin}: nobody here trusts the curator {curator}")]
    UnknownCurator { plugin: PluginId, curator: CuratorId },
    #[error("Plugin {plugin}: the curator {curator} may not sign this plugin")]
    NotTheirs { plugin: PluginId, curator: CuratorId },
    #[error("Plugin {plugin}: the key of the curator {curator} expired at {at}")]
    KeyExpired { plugin: PluginId, curator: CuratorId, at: Timestamp },
    #[error("Plugin {plugin}: the key of the curator {curator} was revoked: {reason}")]
    KeyRevoked { plugin: PluginId, curator: CuratorId, reason: String },
    #[error("Plugin {plugin}: the curator {curator} was revoked: {reason}")]
    CuratorRevoked { plugin: PluginId, curator: CuratorId, reason: String },
    #[error("Plugin {plugin} was revoked: {reason}")]
    Revoked { plugin: PluginId, reason: String },
    #[error("Plugin {plugin} {version} was revoked: {reason}")]
    VersionRevoked { plugin: PluginId, version: PluginVersion, reason: String },
    #[error("Plugin {plugin} has {have} signatures that count, {need} curators are needed")]
    TooFew { plugin: PluginId, have: usize, need: usize },
    #[error("Plugin {plugin} expired at {at}")]
    Expired { plugin: PluginId, at: Timestamp },
    #[error("Plugin {plugin} {version} is older than {newest}, which was seen here")]
    Rollback { plugin: PluginId, version: PluginVersion, newest: PluginVersion },
    #[error(
        "Plugin {plugin} {version} differs from the {version} that was seen here: a change is a new version"
    )]
    OtherContent { plugin: PluginId, version: PluginVersion },
    #[error("Plugin {plugin} is installed with a signature and cannot be replaced by one without")]
    Downgraded { plugin: PluginId },
    #[error("Plugin {plugin} needs toolyard {range}, this is {gateway}")]
    OtherGateway { plugin: PluginId, range: VersionRange, gateway: String },
}

impl Refused {
    /// What a log line says; the plugin stands beside it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unsigned { .. } => "Unsigned plugin rejected in production",
            Self::InvalidSignature { .. } => "Invalid signature",
            Self::HashMismatch { .. } => "Content hash mismatch",
            Self::Stripped { .. } => "signature taken off",
            Self::Nameless { .. } => "signature without a curator",
            Self::UnknownCurator { .. } => "unknown curator",
            Self::NotTheirs { .. } => "curator may not sign this plugin",
            Self::KeyExpired { .. } => "key expired",
            Self::KeyRevoked { .. } => "key revoked",
            Self::CuratorRevoked { .. } => "curator revoked",
            Self::Revoked { .. } => "plugin revoked",
            Self::VersionRevoked { .. } => "version revoked",
            Self::TooFew { .. } => "too few signatures",
            Self::Expired { .. } => "plugin expired",
            Self::Rollback { .. } => "older version",
            Self::OtherContent { .. } => "other content of the same version",
            Self::Downgraded { .. } => "signed plugin replaced by an unsigned one",
            Self::OtherGateway { .. } => "made for another gateway",
        }
    }
}
