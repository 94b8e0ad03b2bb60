//! Large values and uploaded files, by content hash.

use toolyard_protocol::{EntityId, FileId, Hash, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Sql, Tx, args};

/// Keeps bytes; the same content is kept once per tenant. Whoever needs them
/// writes that down in the same transaction: a file, or [`put_of_run`].
pub async fn put(tx: &mut Tx<'_>, tenant: &TenantId, hash: &Hash, bytes: &[u8]) -> Result<(), StoreError> {
    let sql = Sql {
        sqlite: "INSERT INTO blobs (tenant, hash, bytes, kept) VALUES ($1, $2, $3, 0) ON CONFLICT (tenant, hash) DO NOTHING",
        // The update changes nothing: it holds the row against a removal at the same time.
        postgres: "INSERT INTO blobs (tenant, hash, bytes, kept) VALUES ($1, $2, $3, 0) ON CONFLICT (tenant, hash) DO UPDATE SET kept = blobs.kept",
    };
    tx.exec(sql, args![tenant.as_str(), hash.as_str(), bytes]).await?;
    Ok(())
}

/// Keeps a large value of a run for as long as the run is there.
pub async fn put_of_run(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    hash: &Hash,
    bytes: &[u8],
) -> Result<(), StoreError> {
    put(tx, tenant, hash, bytes).await?;
    tx.exec(
        "INSERT INTO blob_uses (tenant, run, hash) VALUES ($1, $2, $3) ON CONFLICT (tenant, run, hash) DO NOTHING",
        args![tenant.as_str(), run.as_str(), hash.as_str()],
    )
    .await?;
    Ok(())
}

/// A copy of a run needs its values too, and keeps them when the first is gone.
pub async fn share(tx: &mut Tx<'_>, tenant: &TenantId, from: &RunId, to: &RunId) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO blob_uses (tenant, run, hash) SELECT $1, $2, hash FROM blob_uses WHERE tenant = $1 AND run = $3 ON CONFLICT (tenant, run, hash) DO NOTHING",
        args![tenant.as_str(), to.as_str(), from.as_str()],
    )
    .await?;
    Ok(())
}

/// Removes the values and files of a run that nobody else has.
pub(crate) async fn forget_run(tx: &mut Tx<'_>, tenant: &TenantId, run: &RunId) -> Result<(), StoreError> {
    let named = args![tenant.as_str(), run.as_str()];
    let values = tx.all("SELECT hash FROM blob_uses WHERE tenant = $1 AND run = $2", named, |r| r.text(0));
    let mut hashes = values.await?;
    let files = tx.all("SELECT hash FROM files WHERE tenant = $1 AND run = $2", named, |r| r.text(0));
    hashes.extend(files.await?);
    tx.exec("DELETE FROM blob_uses WHERE tenant = $1 AND run = $2", named).await?;
    tx.exec("DELETE FROM files WHERE tenant = $1 AND run = $2", named).await?;
    sweep(tx, tenant, hashes).await
}

/// Removes at most so many values and files of a run that nobody else has;
/// answers whether there may be more.
pub(crate) async fn forget_some(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    most: u32,
) -> Result<bool, StoreError> {
    let (t, id, most) = (tenant.as_str(), run.as_str(), i64::from(most));
    let mut hashes = tx
        .all(
            "SELECT hash FROM blob_uses WHERE tenant = $1 AND run = $2 ORDER BY hash LIMIT $3",
            args![t, id, most],
            |r| r.text(0),
        )
        .await?;
    for hash in &hashes {
        tx.exec("DELETE FROM blob_uses WHERE tenant = $1 AND run = $2 AND hash = $3", args![t, id, hash])
            .await?;
    }
    let files = tx
        .all(
            "SELECT id, hash FROM files WHERE tenant = $1 AND run = $2 ORDER BY id LIMIT $3",
            args![t, id, most],
            |r| Ok((r.text(0)?, r.text(1)?)),
        )
        .await?;
    for (file, hash) in files {
        tx.exec("DELETE FROM files WHERE tenant = $1 AND id = $2", args![t, &file]).await?;
        hashes.push(hash);
    }
    let more = !hashes.is_empty();
    sweep(tx, tenant, hashes).await?;
    Ok(more)
}

/// The files that a run made are its space's from now on.
pub(crate) async fn leave_to_space(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    run: &RunId,
    space: &SpaceId,
) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE files SET space = $1, run = NULL WHERE tenant = $2 AND run = $3",
        args![space.as_str(), tenant.as_str(), run.as_str()],
    )
    .await?;
    Ok(())
}

/// Removes the files that runs left to a space.
pub(crate) async fn forget_space(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
) -> Result<(), StoreError> {
    let named = args![tenant.as_str(), space.as_str()];
    let files = tx.all("SELECT hash FROM files WHERE tenant = $1 AND space = $2", named, |r| r.text(0));
    let hashes = files.await?;
    tx.exec("DELETE FROM files WHERE tenant = $1 AND space = $2", named).await?;
    sweep(tx, tenant, hashes).await
}

/// Removes the files of an entity, and their bytes if nobody else has them.
pub(crate) async fn forget_entity(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: &EntityId,
) -> Result<(), StoreError> {
    let named = args![tenant.as_str(), entity.as_str()];
    let files = tx.all("SELECT hash FROM files WHERE tenant = $1 AND entity = $2", named, |r| r.text(0));
    let hashes = files.await?;
    tx.exec("DELETE FROM files WHERE tenant = $1 AND entity = $2", named).await?;
    sweep(tx, tenant, hashes).await
}

/// Removes those bytes that nothing needs any more. Held first and looked at
/// afterwards: who keeps the same bytes meanwhile is seen. Always in one order.
async fn sweep(tx: &mut Tx<'_>, tenant: &TenantId, mut hashes: Vec<String>) -> Result<(), StoreError> {
    hashes.sort_unstable();
    hashes.dedup();
    for hash in &hashes {
        let named = args![tenant.as_str(), hash];
        if tx.is_postgres() {
            let held = "SELECT hash FROM blobs WHERE tenant = $1 AND hash = $2 FOR UPDATE";
            tx.one(held, named, |_| Ok(())).await?;
        }
        tx.exec(
            "DELETE FROM blobs WHERE tenant = $1 AND hash = $2 AND kept = 0 \
             AND NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.tenant = $1 AND u.hash = $2) \
             AND NOT EXISTS (SELECT 1 FROM files f WHERE f.tenant = $1 AND f.hash = $2)",
            named,
        )
        .await?;
    }
    Ok(())
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
    tx.one(
        "SELECT bytes FROM blobs WHERE tenant = $1 AND hash = $2",
        args![tenant.as_str(), hash.as_str()],
        |r| r.bytes(0),
    )
    .await
}

/// An uploaded file. Its bytes are a blob.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRow {
    pub id: FileId,
    pub hash: Hash,
    pub media_type: String,
    pub name: Option<String>,
    pub bytes: i64,
    pub entity: Option<EntityId>,
    /// The run whose tool made it: it goes with the run.
    pub run: Option<RunId>,
    pub created_at: Timestamp,
}

pub async fn put_file(tx: &mut Tx<'_>, tenant: &TenantId, file: &FileRow) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO files (tenant, id, hash, media_type, name, bytes, entity, run, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (tenant, id) DO NOTHING",
        args![
            tenant.as_str(),
            file.id.as_str(),
            file.hash.as_str(),
            &file.media_type,
            file.name.as_deref(),
            file.bytes,
            file.entity.as_ref().map(EntityId::as_str),
            file.run.as_ref().map(RunId::as_str),
            file.created_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn file(tx: &mut Tx<'_>, tenant: &TenantId, id: &FileId) -> Result<Option<FileRow>, StoreError> {
    tx.one(
        "SELECT id, hash, media_type, name, bytes, entity, run, created_at FROM files WHERE tenant = $1 AND id = $2",
        args![tenant.as_str(), id.as_str()],
        |r| {
            Ok(FileRow {
                id: r.parsed(0, FileId::parse)?,
                hash: r.parsed(1, |t| Hash::from_hex(t).ok_or("not a hash"))?,
                media_type: r.text(2)?,
                name: r.opt_text(3)?,
                bytes: r.int(4)?,
                entity: r.opt_parsed(5, EntityId::parse)?,
                run: r.opt_parsed(6, RunId::parse)?,
                created_at: r.time(7)?,
            })
        },
    )
    .await
}
