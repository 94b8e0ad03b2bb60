//! From a candidate to a bundle: the only door.

use std::collections::BTreeSet;

use toolyard_protocol::manifest::{PluginDocument, PluginTool, PluginVersion};
use toolyard_protocol::{CuratorId, Hash, PluginId, Timestamp};

use super::candidate::Candidate;
use super::keyring::{Curator, Keyring, Revoked};
use super::refused::Refused;

/// A plugin that may run. [`Keyring::admit`] alone makes it.
#[derive(Debug, Clone)]
pub struct Bundle {
    document: PluginDocument,
    hash: Hash,
    trust: Trust,
}

/// Why it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By these curators.
    Signed { by: Vec<CuratorId> },
    /// Nobody signed it, and this is a development gateway.
    Unsigned,
}

/// How strict the gateway is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Production,
    /// Lets plugins through that nobody signed, and says so.
    Development,
}

/// When it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub now: Timestamp,
    /// When the signature was taken for good: now, or at the installation. An
    /// expired key signs nothing new; what it signed before is revoked or stands.
    pub taken: Timestamp,
}

impl Moment {
    pub const fn at(now: Timestamp) -> Self {
        Self { now, taken: now }
    }
}

/// The newest version of a plugin that this gateway has admitted, and the
/// installed one.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Signed ones only.
    pub newest: Option<(PluginVersion, Hash)>,
    pub installed: Option<(PluginVersion, Hash, bool)>,
}

impl Bundle {
    pub fn id(&self) -> &PluginId {
        &self.document.id
    }
    pub fn version(&self) -> &PluginVersion {
        &self.document.version
    }
    pub fn document(&self) -> &PluginDocument {
        &self.document
    }
    pub fn tool(&self, name: &str) -> Option<&PluginTool> {
        self.document.tools.iter().find(|tool| tool.name.as_str() == name)
    }
    /// Of all that was signed.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }
    pub fn trust(&self) -> &Trust {
        &self.trust
    }
    pub fn is_signed(&self) -> bool {
        matches!(self.trust, Trust::Signed { .. })
    }

    /// Refuses to go back: to an older version, to other content of a version,
    /// from a signed one to one that nobody signed.
    pub fn follows(&self, seen: &Seen) -> Result<(), Refused> {
        let (plugin, version) = (self.id().clone(), self.version().clone());
        if let Some((_, _, true)) = seen.installed
            && !self.is_signed()
        {
            return Err(Refused::Downgraded { plugin });
        }
        let installed = seen.installed.as_ref().map(|(version, hash, signed)| (version, hash, *signed));
        let newest = seen.newest.as_ref().map(|(version, hash)| (version, hash, true));
        for (newest, hash, signed) in installed.into_iter().chain(newest) {
            if version < *newest {
                return Err(Refused::Rollback { plugin, version, newest: newest.clone() });
            }
            // While nobody has signed it, its author may still change it.
            if version == *newest && self.hash != *hash && signed {
                return Err(Refused::OtherContent { plugin, version });
            }
        }
        Ok(())
    }

    /// Refuses a gateway that the plugin is not made for.
    pub fn fits(&self, gateway: &str) -> Result<(), Refused> {
        let Some(requires) = &self.document.requires else { return Ok(()) };
        if PluginVersion::parse(gateway).is_ok_and(|version| requires.toolyard.has(&version)) {
            return Ok(());
        }
        let (plugin, range) = (self.id().clone(), requires.toolyard.clone());
        Err(Refused::OtherGateway { plugin, range, gateway: gateway.to_owned() })
    }
}

impl Keyring {
    /// Decides about a candidate, and makes of it what runs.
    pub fn admit(&self, candidate: Candidate, policy: Policy, moment: Moment) -> Result<Bundle, Refused> {
        let trust = self.trust_of(&candidate, policy, moment)?;
        let hash = candidate.hash();
        Ok(Bundle { document: candidate.document, hash, trust })
    }

    fn trust_of(&self, candidate: &Candidate, policy: Policy, moment: Moment) -> Result<Trust, Refused> {
        let document = &candidate.document;
        let plugin = || document.id.clone();
        self.check_revoked(document)?;
        if let Some(at) = document.expires_at.filter(|at| *at <= moment.now) {
            return Err(Refused::Expired { plugin: plugin(), at });
        }
        if !candidate.is_signed() {
            return match policy {
                Policy::Production => Err(Refused::Unsigned { plugin: plugin() }),
                Policy::Development if document.curator_id.is_some() || document.content_hash.is_some() => {
                    Err(Refused::Stripped { plugin: plugin() })
                }
                Policy::Development => Ok(Trust::Unsigned),
            };
        }
        if document.content_hash.as_deref() != Some(candidate.content_hash.as_str()) {
            return Err(Refused::HashMismatch { plugin: plugin() });
        }
        let by = self.signers(candidate, moment)?;
        Ok(Trust::Signed { by })
    }

    fn check_revoked(&self, document: &PluginDocument) -> Result<(), Refused> {
        let (id, version) = (&document.id, &document.version);
        if let Some(reason) = self.revoked(|what| matches!(what, Revoked::Plugin(one) if one == id)) {
            return Err(Refused::Revoked { plugin: id.clone(), reason: reason.to_owned() });
        }
        let same = |what: &Revoked| matches!(what, Revoked::Version(one, v) if one == id && v == version);
        if let Some(reason) = self.revoked(same) {
            let (plugin, version) = (id.clone(), version.clone());
            return Err(Refused::VersionRevoked { plugin, version, reason: reason.to_owned() });
        }
        Ok(())
    }

    /// The curators whose signatures count. A wrong signature of a curator
    /// that is trusted spoils all; one of a stranger counts for nothing.
    fn signers(&self, candidate: &Candidate, moment: Moment) -> Result<Vec<CuratorId>, Refused> {
        let document = &candidate.document;
        let plugin = || document.id.clone();
        let mut claims: Vec<(&CuratorId, &str)> = Vec::new();
        if let Some(signature) = &document.signature {
            let curator = document.curator_id.as_ref();
            let curator = curator.ok_or_else(|| Refused::Nameless { plugin: plugin() })?;
            claims.push((curator, signature));
        }
        claims.extend(document.signatures.iter().map(|one| (&one.curator_id, one.signature.as_str())));
        let (mut by, mut keys) = (BTreeSet::new(), BTreeSet::new());
        let mut doubt = None;
        for (id, signature) in claims {
            let Some(curator) = self.curator(id) else {
                doubt = Some(Refused::UnknownCurator { plugin: plugin(), curator: id.clone() });
                continue;
            };
            match self.check_one(curator, candidate, signature, moment) {
                // One key counts once, whoever it is said to belong to.
                Ok(key) => {
                    if keys.insert(key) {
                        by.insert(id.clone());
                    }
                }
                Err(wrong @ Refused::InvalidSignature { .. }) => return Err(wrong),
                Err(why) => doubt = Some(why),
            }
        }
        let need = self.threshold.max(1);
        match (by.len(), doubt) {
            (have, _) if have >= need => Ok(by.into_iter().collect()),
            (0, Some(why)) => Err(why),
            (have, _) => Err(Refused::TooFew { plugin: plugin(), have, need }),
        }
    }

    /// The key of this curator that made the signature, if it counts.
    fn check_one(
        &self,
        curator: &Curator,
        candidate: &Candidate,
        signature: &str,
        moment: Moment,
    ) -> Result<String, Refused> {
        let (plugin, id) = (candidate.document.id.clone(), curator.id.clone());
        let made = curator.keys.iter().find(|key| key.public.has_signed(&candidate.signed_bytes, signature));
        let Some(key) = made else { return Err(Refused::InvalidSignature { plugin, curator: id }) };
        let gone = |what: &Revoked| matches!(what, Revoked::Curator(one) if *one == id);
        if let Some(reason) = self.revoked(gone) {
            let reason = reason.to_owned();
            return Err(Refused::CuratorRevoked { plugin, curator: id, reason });
        }
        let key_id = key.public.id();
        if let Some(reason) = self.revoked(|what| matches!(what, Revoked::Key(one) if *one == key_id)) {
            let reason = reason.to_owned();
            return Err(Refused::KeyRevoked { plugin, curator: id, reason });
        }
        if let Some(at) = key.expires_at.filter(|at| *at <= moment.taken) {
            return Err(Refused::KeyExpired { plugin, curator: id, at });
        }
        if !curator.plugins.iter().any(|pattern| pattern.has(&plugin)) {
            return Err(Refused::NotTheirs { plugin, curator: id });
        }
        Ok(key_id.as_str().to_owned())
    }
}
