//! Whom a tenant trusts.

use serde_json::{Value, json};
use toolyard_plugins::bundle::PluginPattern;
use toolyard_protocol::{ApiError, CuratorId, ErrorCode, limits};
use toolyard_store::curators::{self, CuratorRow, KeyRow};
use toolyard_store::{Tx, audit as journal};

use super::Desk;
use crate::http::Refusal;
use crate::routes::answer;

/// A curator as somebody wants to trust it.
pub(crate) struct TrustCurator {
    pub(crate) id: CuratorId,
    /// Missing means as before, or the id.
    pub(crate) name: Option<String>,
    pub(crate) plugins: Vec<String>,
    /// Keys of the gateway that sign for it. Missing means as before.
    pub(crate) signers: Option<Value>,
    /// The only signer of a new curator.
    pub(crate) first_signer: String,
}

/// Trusts a curator for these plugins and no others.
pub(crate) async fn trust(tx: &mut Tx<'_>, desk: &Desk, wanted: TrustCurator) -> Result<(), Refusal> {
    let TrustCurator { id, name, plugins, signers, first_signer } = wanted;
    for pattern in &plugins {
        PluginPattern::parse(pattern).map_err(|why| Refusal::bad_request(format!("plugins: {why}")))?;
    }
    let tenant = &desk.tenant;
    let known = curators::get(tx, tenant, &id).await?;
    let most = limits::CURATORS;
    if known.is_none() && curators::list(tx, tenant).await?.len() >= most {
        return Err(answer::too_many("curators", most));
    }
    let signers = match (signers, &known) {
        (Some(signers), _) => signers,
        (None, Some(known)) => known.signers.clone(),
        (None, None) => json!([first_signer]),
    };
    let name = name.or(known.map(|known| known.name)).unwrap_or_else(|| id.to_string());
    let row = CuratorRow { id, name, plugins: json!(plugins), signers, created_at: tx.now().await? };
    curators::put(tx, tenant, &row).await?;
    let detail = row.plugins.to_string();
    journal::write(tx, tenant, &desk.actor, "curator.put", row.id.as_str(), Some(&detail)).await?;
    Ok(())
}

/// Adds a key. One key is one curator's.
pub(crate) async fn add_key(tx: &mut Tx<'_>, desk: &Desk, row: &KeyRow) -> Result<(), Refusal> {
    let keys = curators::keys(tx, &desk.tenant).await?;
    if keys.iter().any(|key| key.id == row.id) {
        return Err(ApiError::new(ErrorCode::Conflict, "This key is registered already").into());
    }
    let most = limits::CURATOR_KEYS;
    if keys.iter().filter(|key| key.curator == row.curator).count() >= most {
        return Err(answer::too_many("keys of a curator", most));
    }
    curators::add_key(tx, &desk.tenant, row).await?;
    journal::write(tx, &desk.tenant, &desk.actor, "curator.key", row.curator.as_str(), Some(row.id.as_str()))
        .await?;
    Ok(())
}
