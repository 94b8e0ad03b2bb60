//! Nodes: one heartbeat row each. Runs point to a node, so renewing costs
//! nothing per run.

use crate::error::StoreError;
use crate::runs::Owner;
use crate::tx::{Tx, args};

/// Announces a new life of this node. On SQLite it is the only one: every
/// other row is void.
pub async fn register(tx: &mut Tx<'_>, owner: &Owner, valid_ms: u64) -> Result<(), StoreError> {
    let until = tx.now().await?.plus_millis(valid_ms);
    if !tx.is_postgres() {
        tx.exec("DELETE FROM nodes WHERE id <> $1", args![owner.node.as_str()]).await?;
    }
    tx.exec(
        "INSERT INTO nodes (id, incarnation, until) VALUES ($1, $2, $3) \
         ON CONFLICT (id) DO UPDATE SET incarnation = excluded.incarnation, until = excluded.until",
        args![owner.node.as_str(), &owner.incarnation, until],
    )
    .await?;
    Ok(())
}

/// Renews the heartbeat. False if a newer life of this node has taken over.
pub async fn renew(tx: &mut Tx<'_>, owner: &Owner, valid_ms: u64) -> Result<bool, StoreError> {
    let until = tx.now().await?.plus_millis(valid_ms);
    let changed = tx
        .exec(
            "UPDATE nodes SET until = $1 WHERE id = $2 AND incarnation = $3",
            args![until, owner.node.as_str(), &owner.incarnation],
        )
        .await?;
    Ok(changed > 0)
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
