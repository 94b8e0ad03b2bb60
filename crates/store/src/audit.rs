//! Who did what, without content.

use toolyard_protocol::{TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Tx, args};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub target: String,
    pub detail: Option<String>,
}

/// Writes a line in the transaction of what it tells about.
pub async fn write(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    actor: &str,
    action: &str,
    target: &str,
    detail: Option<&str>,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    // A run id's shape serves as a growing id here too.
    let id = toolyard_protocol::RunId::mint().as_str().replace("run_", "aud_");
    tx.exec(
        "INSERT INTO audit (tenant, id, at, actor, action, target, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        args![tenant.as_str(), &id, now, actor, action, target, detail],
    )
    .await?;
    Ok(())
}

/// Newest first; `before` continues after the last row of a page.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    before: Option<&str>,
    limit: u32,
) -> Result<Vec<Entry>, StoreError> {
    tx.all(
        "SELECT id, at, actor, action, target, detail FROM audit WHERE tenant = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3",
        args![tenant.as_str(), before.unwrap_or(""), i64::from(limit)],
        |r| {
            Ok(Entry {
                id: r.text(0)?,
                at: r.time(1)?,
                actor: r.text(2)?,
                action: r.text(3)?,
                target: r.text(4)?,
                detail: r.opt_text(5)?,
            })
        },
    )
    .await
}
