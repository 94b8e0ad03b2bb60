//! Removes all of an entity or a tenant, in many small transactions, so that
//! nobody waits for it. One that is cut short is simply asked for again.

use toolyard_protocol::{EntityId, RunId, SpaceId, TenantId, limits};

use crate::error::StoreError;
use crate::runs::{self, RunRow};
use crate::store::Store;
use crate::tx::{Tx, args};
use crate::{audit, entities, retention, spaces};

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
    // Also for one that is gone: an earlier removal may have been cut short.
    forget_deeds(store, tenant, id).await?;
    let (t, e, by) = (tenant.clone(), id.clone(), actor.to_owned());
    let existed = store
        .write(move |tx| {
            Box::pin(async move {
                let existed = entities::delete(tx, &t, &e).await?;
                if existed {
                    audit::write(tx, &t, &by, "entity.delete", e.as_str(), None).await?;
                }
                Ok::<_, StoreError>(existed)
            })
        })
        .await?;
    // What came in until nobody could speak for it any more.
    forget_deeds(store, tenant, id).await?;
    Ok(existed)
}

async fn forget_deeds(store: &Store, tenant: &TenantId, id: &EntityId) -> Result<(), StoreError> {
    loop {
        let (t, e) = (tenant.clone(), id.clone());
        let next = store.read(move |tx| Box::pin(async move { lone_space(tx, &t, &e).await })).await?;
        let Some(space) = next else { break };
        forget_runs(store, tenant, &space).await?;
        let t = tenant.clone();
        store.write(move |tx| Box::pin(async move { spaces::delete(tx, &t, &space).await })).await?;
    }
    let mut after = String::new();
    loop {
        let (t, e, from) = (tenant.clone(), id.clone(), std::mem::take(&mut after));
        let runs = store.read(move |tx| Box::pin(async move { deeds(tx, &t, &e, &from).await })).await?;
        let Some(last) = runs.last() else { break };
        last.as_str().clone_into(&mut after);
        for run in runs {
            let t = tenant.clone();
            store.write(move |tx| Box::pin(async move { retention::remove(tx, &t, &run).await })).await?;
        }
    }
    while store.write(|tx| Box::pin(async move { retention::sweep(tx).await })).await? {}
    let mut after = String::new();
    loop {
        let (t, e, from) = (tenant.clone(), id.clone(), std::mem::take(&mut after));
        let said = store.read(move |tx| Box::pin(async move { words(tx, &t, &e, &from).await })).await?;
        let Some((.., last)) = said.last() else { break };
        after.clone_from(last);
        let t = tenant.clone();
        store.write(move |tx| Box::pin(async move { unsay(tx, &t, &said).await })).await?;
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
            store.write(move |tx| Box::pin(async move { retention::remove(tx, &t, &run.id).await })).await?;
        }
    }
    while store.write(|tx| Box::pin(async move { retention::sweep(tx).await })).await? {}
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

/// Removes some rows of a table by its key.
macro_rules! piece {
    ($table:literal, $key:literal, $most:literal) => {
        (
            $table,
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE tenant = $1 AND (",
                $key,
                ") IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE tenant = $1 LIMIT ",
                $most,
                ")"
            ),
        )
    };
}

/// Every table that names a tenant, and how a piece of it is removed: keys and
/// runs first, so that nobody comes in and nobody works on.
pub const OF_TENANTS: &[(&str, &str)] = &[
    piece!("keys", "id", "200"),
    piece!("runs", "id", "200"),
    piece!("waits", "run, id", "200"),
    piece!("plans", "id", "200"),
    piece!("outbox", "id", "200"),
    piece!("webhooks", "id", "200"),
    piece!("push_configs", "run, id", "200"),
    piece!("presences", "connection", "200"),
    piece!("presence_tools", "tool, connection", "200"),
    piece!("clients", "id", "200"),
    piece!("events", "run, seq", "200"),
    piece!("remains", "run", "200"),
    piece!("space_log", "space, last_pos", "500"),
    piece!("messages", "space, pos", "100"),
    piece!("message_names", "space, name", "500"),
    piece!("branches", "space, id", "500"),
    piece!("compactions", "space, branch, agent_entity, up_to", "200"),
    piece!("members", "space, entity", "500"),
    piece!("spaces", "id", "200"),
    piece!("files", "id", "200"),
    piece!("blob_uses", "run, hash", "500"),
    piece!("blobs", "hash", "4"),
    piece!("grants", "id", "200"),
    piece!("goals", "id", "200"),
    piece!("memories", "id", "200"),
    piece!("inbox", "id", "200"),
    piece!("documents", "id", "200"),
    piece!("document_texts", "document", "8"),
    (
        "chunks",
        "DELETE FROM chunks WHERE tenant = $1 AND row IN (SELECT row FROM chunks WHERE tenant = $1 ORDER BY row LIMIT 200)",
    ),
    piece!("mcp_pins", "server, tool", "200"),
    piece!("mcp_records", "entity, server, record", "200"),
    piece!("mcp_logins", "state", "200"),
    piece!("mcp_locks", "entity, server", "200"),
    piece!("secrets", "name", "200"),
    piece!("agents", "id", "200"),
    piece!("agent_versions", "hash", "50"),
    piece!("toolsets", "hash", "50"),
    piece!("agent_usage", "agent, day", "500"),
    piece!("tool_uses", "agent, tool", "500"),
    piece!("curators", "id", "200"),
    piece!("curator_keys", "id", "200"),
    piece!("plugins", "id", "20"),
    piece!("plugin_versions", "plugin, version", "20"),
    piece!("plugin_pins", "plugin", "200"),
    piece!("plugin_revocations", "kind, target, version", "200"),
    piece!("entities", "id", "200"),
    piece!("idempotency", "caller, route, key", "200"),
    piece!("audit", "id", "500"),
];

/// Removes a tenant and all of it; answers how many rows there were. A line of
/// the operator's own audit stays.
pub async fn tenant(store: &Store, tenant: &TenantId, actor: &str) -> Result<u64, StoreError> {
    let mut removed = 0;
    // What was under way while keys and runs went may have written once more.
    loop {
        let before = removed;
        for (_, sql) in OF_TENANTS.iter().copied() {
            loop {
                let t = tenant.clone();
                let rows = store.write(move |tx| Box::pin(async move { cut(tx, &t, sql).await })).await?;
                removed += rows;
                if rows == 0 {
                    break;
                }
            }
        }
        if removed == before {
            break;
        }
    }
    let (t, by) = (tenant.clone(), actor.to_owned());
    let known = store.write(move |tx| {
        Box::pin(async move {
            let known = tx.exec("DELETE FROM tenants WHERE id = $1", args![t.as_str()]).await?;
            if known > 0 || removed > 0 {
                let operator = TenantId::default_tenant();
                audit::write(tx, &operator, &by, "tenant.delete", t.as_str(), None).await?;
            }
            Ok::<_, StoreError>(known)
        })
    });
    Ok(removed + known.await?)
}

async fn cut(tx: &mut Tx<'_>, tenant: &TenantId, sql: &'static str) -> Result<u64, StoreError> {
    if !tx.is_postgres() && sql.starts_with("DELETE FROM chunks ") {
        // SQLite keeps the words of documents in a table of their own.
        tx.exec(
            "DELETE FROM chunk_words WHERE rowid IN (SELECT row FROM chunks WHERE tenant = $1 ORDER BY row LIMIT 200)",
            args![tenant.as_str()],
        )
        .await?;
    }
    tx.exec(sql, args![tenant.as_str()]).await
}
