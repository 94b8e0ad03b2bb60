//! Removes all of an entity or a tenant, in many small transactions, so that
//! nobody waits for it. That it has begun is written first: one that a death
//! cuts short goes on at the next start ([`cut_short`]), or when it is asked again.

mod begun;
mod tables;

use begun::Target;
pub use begun::is_going;
use futures::future::BoxFuture;
use toolyard_protocol::{EntityId, RunId, SpaceId, TenantId, limits};

use crate::error::StoreError;
use crate::runs::{self, RunRow};
use crate::store::Store;
use crate::tx::{Tx, args};
use crate::{audit, entities, failpoint, retention, spaces};
pub use tables::OF_TENANTS;

/// Rows that one transaction removes.
const ROWS: i64 = 200;

/// Removes an entity and all of it: what it said, the runs that it started or
/// worked on, the conversations that were its alone, and what is kept for it.
/// False if there is none.
pub async fn entity(
    store: &Store,
    tenant: &TenantId,
    id: &EntityId,
    actor: &str,
) -> Result<bool, StoreError> {
    let existed = begin(store, Target::Entity(tenant.clone(), id.clone()), actor).await?;
    // Also for one that is gone: something of it may have come in behind its end.
    remove_entity(store, tenant, id, actor).await?;
    Ok(existed)
}

/// A removal that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutShort {
    target: Target,
    actor: String,
}

/// Removals that were cut short, as long as nobody here has begun another one.
pub async fn cut_short(store: &Store) -> Result<Vec<CutShort>, StoreError> {
    let begun = store.read(|tx| Box::pin(async move { begun::list(tx).await })).await?;
    Ok(begun.into_iter().map(|(target, actor)| CutShort { target, actor }).collect())
}

/// Goes on with one of them. If somebody else ends it first, this stops: a
/// tenant may be made anew then. An entity cannot, its id is nobody's again.
pub async fn finish(store: &Store, removal: &CutShort) -> Result<(), StoreError> {
    match &removal.target {
        Target::Entity(tenant, id) => remove_entity(store, tenant, id, &removal.actor).await,
        Target::Tenant(tenant) => remove_tenant(store, tenant, &removal.actor).await.map(drop),
    }
}

/// From here on it goes through, whoever dies. False if there is none.
async fn begin(store: &Store, target: Target, actor: &str) -> Result<bool, StoreError> {
    let by = actor.to_owned();
    commit(store, move |tx| Box::pin(async move { begun::note(tx, &target, &by).await })).await
}

/// One piece of a removal.
async fn commit<T, F>(store: &Store, op: F) -> Result<T, StoreError>
where
    F: for<'t, 'c> FnOnce(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    T: Send + 'static,
{
    let done = store.write(op).await?;
    failpoint::pass("removal.after_commit")?;
    Ok(done)
}

async fn remove_entity(
    store: &Store,
    tenant: &TenantId,
    id: &EntityId,
    actor: &str,
) -> Result<(), StoreError> {
    forget_deeds(store, tenant, id).await?;
    let (t, e, by) = (tenant.clone(), id.clone(), actor.to_owned());
    let deleted = commit(store, move |tx| {
        Box::pin(async move {
            if entities::delete(tx, &t, &e).await? {
                audit::write(tx, &t, &by, "entity.delete", e.as_str(), None).await?;
            }
            Ok(())
        })
    });
    deleted.await?;
    // What came in until nobody could speak for it any more.
    forget_deeds(store, tenant, id).await?;
    let target = Target::Entity(tenant.clone(), id.clone());
    commit(store, move |tx| Box::pin(async move { begun::end(tx, &target).await.map(drop) })).await
}

async fn forget_deeds(store: &Store, tenant: &TenantId, id: &EntityId) -> Result<(), StoreError> {
    loop {
        let (t, e) = (tenant.clone(), id.clone());
        let next = store.read(move |tx| Box::pin(async move { lone_space(tx, &t, &e).await })).await?;
        let Some(space) = next else { break };
        forget_runs(store, tenant, &space).await?;
        let t = tenant.clone();
        commit(store, move |tx| Box::pin(async move { spaces::delete(tx, &t, &space).await })).await?;
    }
    let mut after = String::new();
    loop {
        let (t, e, from) = (tenant.clone(), id.clone(), std::mem::take(&mut after));
        let runs = store.read(move |tx| Box::pin(async move { deeds(tx, &t, &e, &from).await })).await?;
        let Some(last) = runs.last() else { break };
        last.as_str().clone_into(&mut after);
        for run in runs {
            let t = tenant.clone();
            commit(store, move |tx| Box::pin(async move { retention::remove(tx, &t, &run).await })).await?;
        }
        // Page by page: readers of a space pass by what is not swept.
        sweep(store).await?;
    }
    let mut after = String::new();
    loop {
        let (t, e, from) = (tenant.clone(), id.clone(), std::mem::take(&mut after));
        let said = store.read(move |tx| Box::pin(async move { words(tx, &t, &e, &from).await })).await?;
        let Some((.., last)) = said.last() else { break };
        after.clone_from(last);
        let t = tenant.clone();
        commit(store, move |tx| Box::pin(async move { unsay(tx, &t, &said).await })).await?;
    }
    Ok(())
}

/// Removes the runs of a space one by one: all at once may take long.
async fn forget_runs(store: &Store, tenant: &TenantId, space: &SpaceId) -> Result<(), StoreError> {
    let mut before: Option<RunId> = None;
    loop {
        let (t, s, from) = (tenant.clone(), space.clone(), before.take());
        let page = store.read(move |tx| {
            Box::pin(async move { runs::list(tx, &t, Some(&s), None, from.as_ref(), limits::PAGE).await })
        });
        let page: Vec<RunRow> = page.await?;
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        for run in page.into_iter().filter(|run| run.parent.is_none()) {
            let t = tenant.clone();
            commit(store, move |tx| Box::pin(async move { retention::remove(tx, &t, &run.id).await }))
                .await?;
        }
        sweep(store).await?;
    }
    Ok(())
}

/// Removes what the runs left behind.
async fn sweep(store: &Store) -> Result<(), StoreError> {
    while store.write(|tx| Box::pin(async move { retention::sweep(tx).await })).await? {
        failpoint::pass("sweep.after_commit")?;
    }
    Ok(())
}

/// A conversation that the entity opened and where no other person sits.
async fn lone_space(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &EntityId,
) -> Result<Option<SpaceId>, StoreError> {
    tx.one(
        "SELECT s.id FROM spaces s WHERE s.tenant = $1 AND s.owner = $2 AND NOT EXISTS ( \
           SELECT 1 FROM members m JOIN entities e ON e.tenant = m.tenant AND e.id = m.entity \
           WHERE m.tenant = $1 AND m.space = s.id AND m.entity <> $2 AND e.kind = 'human') LIMIT 1",
        args![tenant.as_str(), id.as_str()],
        |r| r.parsed(0, SpaceId::parse),
    )
    .await
}

/// Runs that the entity started or worked on.
async fn deeds(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &EntityId,
    after: &str,
) -> Result<Vec<RunId>, StoreError> {
    tx.all(
        "SELECT id FROM runs WHERE tenant = $1 AND (triggered_by = $2 OR agent_entity = $2) AND parent IS NULL AND id > $3 ORDER BY id LIMIT $4",
        args![tenant.as_str(), id.as_str(), after, ROWS],
        |r| r.parsed(0, RunId::parse),
    )
    .await
}

/// Places of what the entity said, and the message's id.
async fn words(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &EntityId,
    after: &str,
) -> Result<Vec<(SpaceId, i64, String)>, StoreError> {
    tx.all(
        "SELECT space, pos, id FROM messages WHERE tenant = $1 AND entity = $2 AND id > $3 ORDER BY id LIMIT $4",
        args![tenant.as_str(), id.as_str(), after, ROWS],
        |r| Ok((r.parsed(0, SpaceId::parse)?, r.int(1)?, r.text(2)?)),
    )
    .await
}

async fn unsay(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    said: &[(SpaceId, i64, String)],
) -> Result<(), StoreError> {
    for (space, pos, id) in said {
        let place = args![tenant.as_str(), space.as_str(), *pos];
        tx.exec("DELETE FROM messages WHERE tenant = $1 AND space = $2 AND pos = $3", place).await?;
        let named = args![tenant.as_str(), space.as_str(), id];
        tx.exec("DELETE FROM message_names WHERE tenant = $1 AND space = $2 AND message = $3", named).await?;
        // A summary of it goes too; who needs one reads the messages that are left.
        tx.exec("DELETE FROM compactions WHERE tenant = $1 AND space = $2 AND up_to >= $3", place).await?;
        tx.exec(
            "UPDATE spaces SET gone_to = $1 WHERE tenant = $2 AND id = $3 AND gone_to < $1",
            args![*pos, tenant.as_str(), space.as_str()],
        )
        .await?;
    }
    Ok(())
}

/// Removes a tenant and all of it; answers how many rows there were. A line of
/// the operator's own audit stays.
pub async fn tenant(store: &Store, tenant: &TenantId, actor: &str) -> Result<u64, StoreError> {
    let known = begin(store, Target::Tenant(tenant.clone()), actor).await?;
    let removed = remove_tenant(store, tenant, actor).await?;
    // Another node may have been quicker.
    Ok(removed.max(u64::from(known)))
}

async fn remove_tenant(store: &Store, tenant: &TenantId, actor: &str) -> Result<u64, StoreError> {
    let mut removed = 0;
    // What was under way while keys and runs went may have written once more.
    loop {
        let before = removed;
        for (_, sql) in OF_TENANTS.iter().copied() {
            loop {
                let t = tenant.clone();
                let cut = store.write(move |tx| Box::pin(async move { cut(tx, &t, sql).await })).await?;
                // Somebody else has ended it.
                let Some(rows) = cut else { return Ok(removed) };
                removed += rows;
                if rows == 0 {
                    break;
                }
                failpoint::pass("removal.after_commit")?;
            }
        }
        if removed == before {
            break;
        }
    }
    let (t, by) = (tenant.clone(), actor.to_owned());
    let known = commit(store, move |tx| {
        Box::pin(async move {
            // Of several at once, one says it.
            if !begun::end(tx, &Target::Tenant(t.clone())).await? {
                return Ok(0);
            }
            let known = tx.exec("DELETE FROM tenants WHERE id = $1", args![t.as_str()]).await?;
            if known > 0 || removed > 0 {
                let operator = TenantId::default_tenant();
                audit::write(tx, &operator, &by, "tenant.delete", t.as_str(), None).await?;
            }
            Ok(known)
        })
    });
    Ok(removed + known.await?)
}

/// Removes a piece of a tenant. None if its removal has ended.
async fn cut(tx: &mut Tx<'_>, tenant: &TenantId, sql: &'static str) -> Result<Option<u64>, StoreError> {
    if !begun::stands(tx, &Target::Tenant(tenant.clone())).await? {
        return Ok(None);
    }
    if !tx.is_postgres() && sql.starts_with("DELETE FROM chunks ") {
        // SQLite keeps the words of documents in a table of their own.
        tx.exec(
            "DELETE FROM chunk_words WHERE rowid IN (SELECT row FROM chunks WHERE tenant = $1 ORDER BY row LIMIT 200)",
            args![tenant.as_str()],
        )
        .await?;
    }
    tx.exec(sql, args![tenant.as_str()]).await.map(Some)
}
