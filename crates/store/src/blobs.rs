//! Large values and uploaded files, by content hash.

use toolyard_protocol::{EntityId, FileId, Hash, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Tx, args};

/// Keeps bytes; the same content is kept once per tenant.
pub async fn put(tx: &mut Tx<'_>, tenant: &TenantId, hash: &Hash, bytes: &[u8]) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO blobs (tenant, hash, bytes) VALUES ($1, $2, $3) ON CONFLICT (tenant, hash) DO NOTHING",
        args![tenant.as_str(), hash.as_str(), bytes],
    )
    .await?;
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
    pub created_at: Timestamp,
}

pub async fn put_file(tx: &mut Tx<'_>, tenant: &TenantId, file: &FileRow) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO files (tenant, id, hash, media_type, name, bytes, entity, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, id) DO NOTHING",
        args![
            tenant.as_str(),
            file.id.as_str(),
            file.hash.as_str(),
            &file.media_type,
            file.name.as_deref(),
            file.bytes,
            file.entity.as_ref().map(EntityId::as_str),
            file.created_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn file(tx: &mut Tx<'_>, tenant: &TenantId, id: &FileId) -> Result<Option<FileRow>, StoreError> {
    tx.one(
        "SELECT id, hash, media_type, name, bytes, entity, created_at FROM files WHERE tenant = $1 AND id = $2",
        args![tenant.as_str(), id.as_str()],
        |r| {
            Ok(FileRow {
                id: r.parsed(0, FileId::parse)?,
                hash: r.parsed(1, |t| Hash::from_hex(t).ok_or("not a hash"))?,
                media_type: r.text(2)?,
                name: r.opt_text(3)?,
                bytes: r.int(4)?,
                entity: r.opt_parsed(5, EntityId::parse)?,
                created_at: r.time(6)?,
            })
        },
    )
    .await
}
