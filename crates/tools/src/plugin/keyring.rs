//! A tenant's keyring, as the store has it now.

use serde_json::Value;
use toolyard_plugins::bundle::{
    Algorithm, Curator, CuratorKey, Keyring, PluginPattern, PublicKey, Revocation, Revoked,
};
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{CuratorId, Hash, PluginId, TenantId};
use toolyard_store::curators::{self, KeyRow};
use toolyard_store::plugins::{self, RevocationRow};
use toolyard_store::{StoreError, Tx};

/// Reads the keyring. A row that cannot be understood trusts nobody; one that
/// revokes must be understood.
pub async fn keyring(tx: &mut Tx<'_>, tenant: &TenantId, threshold: usize) -> Result<Keyring, StoreError> {
    let keys = curators::keys(tx, tenant).await?;
    let rows = curators::list(tx, tenant).await?;
    let curators = rows.into_iter().map(|row| Curator {
        keys: keys.iter().filter(|key| key.curator == row.id).filter_map(key).collect(),
        plugins: patterns(&row.plugins),
        id: row.id,
    });
    let revocations = plugins::revocations(tx, tenant).await?;
    let revocations = revocations.into_iter().map(revocation).collect::<Result<_, _>>()?;
    Ok(Keyring { curators: curators.collect(), revocations, threshold })
}

fn key(row: &KeyRow) -> Option<CuratorKey> {
    let algorithm = Algorithm::parse(&row.algorithm)?;
    let public = PublicKey::parse(algorithm, &row.public_key).ok()?;
    // The id is what a revocation names.
    (public.id() == row.id).then_some(CuratorKey { public, expires_at: row.expires_at })
}

fn patterns(plugins: &Value) -> Vec<PluginPattern> {
    let texts = plugins.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(|text| PluginPattern::parse(text).ok()).collect()
}

fn revocation(row: RevocationRow) -> Result<Revocation, StoreError> {
    let broken = |why: String| StoreError::broken(format!("a revocation cannot be read: {why}"));
    let plugin = || PluginId::parse(&row.target).map_err(|e| broken(e.to_string()));
    let what = match row.kind.as_str() {
        "key" => Revoked::Key(Hash::from_hex(&row.target).ok_or_else(|| broken("not a hash".to_owned()))?),
        "curator" => Revoked::Curator(CuratorId::parse(&row.target).map_err(|e| broken(e.to_string()))?),
        "plugin" => Revoked::Plugin(plugin()?),
        "version" => {
            let version = PluginVersion::parse(&row.version).map_err(|e| broken(e.to_string()))?;
            Revoked::Version(plugin()?, version)
        }
        other => return Err(broken(other.to_owned())),
    };
    Ok(Revocation { what, reason: row.reason })
}
