//! Answers kept by `Idempotency-Key`, in the transaction of their effect.

use toolyard_protocol::{Hash, TenantId, limits};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// Whose key, for which route.
#[derive(Debug, Clone)]
pub struct Scope {
    pub tenant: TenantId,
    /// The credential that sent it: another caller's key is another key.
    pub caller: String,
    pub route: &'static str,
    pub key: String,
    pub body_hash: Hash,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// First time: do the work, then [`finish`].
    Fresh,
    /// Done before: answer the same again.
    Stored { status: u16, response: String },
    /// The same key came with another body.
    Mismatch,
}

/// Reserves the key. A second caller waits here until the first commits.
pub async fn begin(tx: &mut Tx<'_>, scope: &Scope) -> Result<Known, StoreError> {
    let now = tx.now().await?;
    let oldest = now.millis() - i64::try_from(limits::IDEMPOTENCY_HOURS * 3_600_000).unwrap_or(i64::MAX);
    tx.exec("DELETE FROM idempotency WHERE at < $1", args![oldest]).await?;
    let named = [scope.tenant.as_str(), &scope.caller, scope.route, &scope.key, scope.body_hash.as_str()];
    let [tenant, caller, route, key, body_hash] = named;
    let fresh = tx
        .exec(
            "INSERT INTO idempotency (tenant, caller, route, key, body_hash, status, response, at) VALUES ($1, $2, $3, $4, $5, 0, '', $6) \
             ON CONFLICT (tenant, caller, route, key) DO NOTHING",
            args![tenant, caller, route, key, body_hash, now],
        )
        .await?;
    if fresh > 0 {
        return Ok(Known::Fresh);
    }
    let stored = tx
        .one(
            "SELECT body_hash, status, response FROM idempotency WHERE tenant = $1 AND caller = $2 AND route = $3 AND key = $4",
            args![tenant, caller, route, key],
            |r| Ok((r.text(0)?, r.int(1)?, r.text(2)?)),
        )
        .await?;
    let Some((hash, status, response)) = stored else { return Ok(Known::Fresh) };
    if hash != body_hash {
        return Ok(Known::Mismatch);
    }
    Ok(Known::Stored { status: u16::try_from(status).unwrap_or(500), response })
}

/// Keeps the answer.
pub async fn finish(tx: &mut Tx<'_>, scope: &Scope, status: u16, response: &str) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE idempotency SET status = $1, response = $2 WHERE tenant = $3 AND caller = $4 AND route = $5 AND key = $6",
        args![i64::from(status), response, scope.tenant.as_str(), &scope.caller, scope.route, &scope.key],
    )
    .await?;
    Ok(())
}
