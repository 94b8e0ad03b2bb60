//! Removals that have begun. A line of it is written before the first piece
//! goes and removed with the last one, so that none is left half done.

use toolyard_protocol::{EntityId, TenantId};

use crate::error::StoreError;
use crate::tx::{Sql, Tx, args};

/// What is to go, and all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Entity(TenantId, EntityId),
    Tenant(TenantId),
}

impl Target {
    fn kind(&self) -> &'static str {
        match self {
            Self::Entity(..) => "entity",
            Self::Tenant(_) => "tenant",
        }
    }

    /// Where its line stands. A tenant's outlives what the tenant has.
    fn place(&self) -> (TenantId, &str) {
        match self {
            Self::Entity(tenant, id) => (tenant.clone(), id.as_str()),
            Self::Tenant(tenant) => (TenantId::default_tenant(), tenant.as_str()),
        }
    }

    /// Whether there is such a thing.
    async fn exists(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let found = match self {
            Self::Entity(tenant, id) => {
                let named = args![tenant.as_str(), id.as_str()];
                tx.one("SELECT 1 FROM entities WHERE tenant = $1 AND id = $2", named, |_| Ok(())).await?
            }
            Self::Tenant(tenant) => {
                tx.one("SELECT 1 FROM tenants WHERE id = $1", args![tenant.as_str()], |_| Ok(())).await?
            }
        };
        Ok(found.is_some())
    }
}

/// Notes that it goes from now on, and who wants that. False if there is none:
/// something of it may be there all the same.
pub(super) async fn note(tx: &mut Tx<'_>, target: &Target, actor: &str) -> Result<bool, StoreError> {
    let exists = target.exists(tx).await?;
    let (tenant, name) = target.place();
    tx.exec(
        "INSERT INTO removals (tenant, kind, target, actor) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, kind, target) DO NOTHING",
        args![tenant.as_str(), target.kind(), name, actor],
    )
    .await?;
    Ok(exists)
}

/// Whether it still goes: somebody else may have ended it, and what has come
/// since then is not its own. It does not end before the transaction does.
pub(super) async fn stands(tx: &mut Tx<'_>, target: &Target) -> Result<bool, StoreError> {
    let (tenant, name) = target.place();
    let sql = Sql {
        sqlite: "SELECT 1 FROM removals WHERE tenant = $1 AND kind = $2 AND target = $3",
        postgres: "SELECT 1 FROM removals WHERE tenant = $1 AND kind = $2 AND target = $3 FOR SHARE",
    };
    Ok(tx.one(sql, args![tenant.as_str(), target.kind(), name], |_| Ok(())).await?.is_some())
}

/// Whether a tenant goes: nobody makes it anew before it is gone, since what is
/// new would go along.
pub async fn is_going(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<bool, StoreError> {
    let found = tx
        .one("SELECT 1 FROM removals WHERE kind = 'tenant' AND target = $1", args![tenant.as_str()], |_| {
            Ok(())
        })
        .await?;
    Ok(found.is_some())
}

/// It is gone. False if somebody else has said so.
pub(super) async fn end(tx: &mut Tx<'_>, target: &Target) -> Result<bool, StoreError> {
    let (tenant, name) = target.place();
    let ended = tx
        .exec(
            "DELETE FROM removals WHERE tenant = $1 AND kind = $2 AND target = $3",
            args![tenant.as_str(), target.kind(), name],
        )
        .await?;
    Ok(ended > 0)
}

/// Those that have not ended, and who wanted them. One that this release does
/// not know is left to the release that wrote it.
pub(super) async fn list(tx: &mut Tx<'_>) -> Result<Vec<(Target, String)>, StoreError> {
    const ALL: &str = "SELECT tenant, kind, target, actor FROM removals ORDER BY tenant, kind, target";
    let lines = tx
        .all(ALL, &[], |r| {
            let target = match r.text(1)?.as_str() {
                "entity" => Target::Entity(r.parsed(0, TenantId::parse)?, r.parsed(2, EntityId::parse)?),
                "tenant" => Target::Tenant(r.parsed(2, TenantId::parse)?),
                other => {
                    tracing::warn!(kind = other, "a removal of a kind that is not known here is left alone");
                    return Ok(None);
                }
            };
            Ok(Some((target, r.text(3)?)))
        })
        .await?;
    Ok(lines.into_iter().flatten().collect())
}
