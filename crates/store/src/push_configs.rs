//! Addresses that hear of one task. What they hear is written into the outbox
//! by the transaction that makes it true, and put into words when it leaves.

use toolyard_protocol::{RunId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::secrets::Sealed;
use crate::tx::{Row, Tx, args};

/// The kind of parcel that these addresses get.
pub const PARCEL: &str = "a2a-push";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    pub run: RunId,
    pub id: String,
    pub url: String,
    /// Of the protocol, as its owner speaks it.
    pub version: String,
    /// Who asked for it, as text: its sight is the sight of what is sent.
    pub owner: String,
    /// The token and the credentials that go along.
    pub sealed: Sealed,
    pub created_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT run, id, url, version, owner, sealed, key_id, created_at FROM push_configs ", $rest)
    };
}

fn row(r: &Row<'_>) -> Result<PushConfig, StoreError> {
    Ok(PushConfig {
        run: r.parsed(0, RunId::parse)?,
        id: r.text(1)?,
        url: r.text(2)?,
        version: r.text(3)?,
        owner: r.text(4)?,
        sealed: Sealed { bytes: r.bytes(5)?, key_id: r.text(6)? },
        created_at: r.time(7)?,
    })
}

/// Keeps an address, or another form of it.
pub async fn put(tx: &mut Tx<'_>, tenant: &TenantId, config: &PushConfig) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO push_configs (tenant, run, id, url, version, owner, sealed, key_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (tenant, run, id) DO UPDATE SET url = $4, version = $5, owner = $6, sealed = $7, key_id = $8",
        args![
            tenant.as_str(),
            config.run.as_str(),
            &config.id,
            &config.url,
            &config.version,
            &config.owner,
            config.sealed.bytes.as_slice(),
            &config.sealed.key_id,
            config.created_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn get(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    id: &str,
) -> Result<Option<PushConfig>, StoreError> {
    let key = args![tenant.as_str(), run.as_str(), id];
    tx.one(select!("WHERE tenant = $1 AND run = $2 AND id = $3"), key, row).await
}

/// All of a task, oldest first. There are never many.
pub async fn list(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<Vec<PushConfig>, StoreError> {
    let key = args![tenant.as_str(), run.as_str()];
    tx.all(select!("WHERE tenant = $1 AND run = $2 ORDER BY created_at, id"), key, row).await
}

/// Forgets an address. What still waits for it is dropped by the delivery.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId, id: &str) -> Result<bool, StoreError> {
    let key = args![tenant.as_str(), run.as_str(), id];
    Ok(tx.exec("DELETE FROM push_configs WHERE tenant = $1 AND run = $2 AND id = $3", key).await? > 0)
}

/// Forgets all addresses of a run.
pub(crate) async fn delete_all(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<(), StoreError> {
    let key = args![tenant.as_str(), run.as_str()];
    tx.exec("DELETE FROM push_configs WHERE tenant = $1 AND run = $2", key).await?;
    Ok(())
}

/// Writes a parcel for every address of a run, or for `only` one: it stands at
/// `seq` now.
pub async fn announce(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    seq: i64,
    only: Option<&str>,
) -> Result<(), StoreError> {
    // Hardly any run has one, and looking is cheaper than an insert of nothing.
    const ANY: &str = "SELECT 1 FROM push_configs WHERE tenant = $1 AND run = $2 LIMIT 1";
    if tx.one(ANY, args![tenant.as_str(), run.as_str()], |_| Ok(())).await?.is_none() {
        return Ok(());
    }
    let now = tx.now().await?;
    let name = format!("{run}:{seq}:push:");
    let payload = serde_json::json!({ "run": run, "seq": seq }).to_string();
    tx.exec(
        "INSERT INTO outbox (tenant, id, kind, payload, attempts, due_at, created_at) SELECT p.tenant, $1 || p.id, 'a2a-push', $2, 0, $3, $3 FROM push_configs p WHERE p.tenant = $4 AND p.run = $5 AND (p.id = $6 OR $6 = '') ON CONFLICT (tenant, id) DO NOTHING",
        args![&name, &payload, now, tenant.as_str(), run.as_str(), only.unwrap_or_default()],
    )
    .await?;
    Ok(())
}
