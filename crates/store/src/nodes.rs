//! Nodes: one heartbeat row each. Runs point to a node, so renewing costs
//! nothing per run.

use crate::error::StoreError;
use crate::runs::Owner;
use crate::tx::{Tx, args};

/// Announces a new life of this node; its earlier lives are over. On SQLite
/// it is the only node: every other row is void.
pub async fn register(tx: &mut Tx<'_>, owner: &Owner, valid_ms: u64) -> Result<(), StoreError> {
    if tx.is_postgres() {
        tx.exec("DELETE FROM nodes WHERE id = $1", args![owner.node.as_str()]).await?;
    } else {
        tx.exec("DELETE FROM nodes", &[]).await?;
    }
    crate::presences::sweep(tx).await?;
    beat(tx, owner, valid_ms).await
}

/// Renews the heartbeat, also if its row was lost. It never ends another life:
/// two that did would take each other's runs without end.
pub async fn beat(tx: &mut Tx<'_>, owner: &Owner, valid_ms: u64) -> Result<(), StoreError> {
    let until = tx.now().await?.plus_millis(valid_ms);
    tx.exec(
        "INSERT INTO nodes (id, incarnation, until) VALUES ($1, $2, $3) ON CONFLICT (id, incarnation) DO UPDATE SET until = excluded.until",
        args![owner.node.as_str(), &owner.incarnation, until],
    )
    .await?;
    Ok(())
}

/// Says goodbye, so that others take over at once what is left.
pub async fn leave(tx: &mut Tx<'_>, owner: &Owner) -> Result<(), StoreError> {
    tx.exec(
        "DELETE FROM nodes WHERE id = $1 AND incarnation = $2",
        args![owner.node.as_str(), &owner.incarnation],
    )
    .await?;
    Ok(())
}

/// Live nodes by id, for `doctor`.
pub async fn live(tx: &mut Tx<'_>) -> Result<Vec<String>, StoreError> {
    let now = tx.now().await?;
    tx.all("SELECT id FROM nodes WHERE until > $1 ORDER BY id", args![now], |r| r.text(0)).await
}
