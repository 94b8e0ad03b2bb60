//! Conversations by the names that their clients chose, and messages by theirs.
//! A name belongs to its owner: the same name of another entity is another space.

use serde_json::Value;
use toolyard_protocol::{EntityId, MessageId, SpaceId, TenantId};

use crate::error::StoreError;
use crate::spaces::{self, Space};
use crate::tx::{Tx, args};

/// The space behind a client's name for it.
pub async fn find(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    owner: &EntityId,
    name: &str,
) -> Result<Option<Space>, StoreError> {
    let found = tx
        .one(
            "SELECT id FROM spaces WHERE tenant = $1 AND owner = $2 AND foreign_id = $3",
            args![tenant.as_str(), owner.as_str(), name],
            |r| r.parsed(0, SpaceId::parse),
        )
        .await?;
    match found {
        Some(space) => spaces::get(tx, tenant, &space).await,
        None => Ok(None),
    }
}

/// Whose thread a space is, and how its owner calls it.
pub async fn owner(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
) -> Result<Option<(EntityId, String)>, StoreError> {
    let found = tx
        .one(
            "SELECT owner, foreign_id FROM spaces WHERE tenant = $1 AND id = $2",
            args![tenant.as_str(), space.as_str()],
            |r| Ok((r.opt_parsed(0, EntityId::parse)?, r.opt_text(1)?)),
        )
        .await?;
    Ok(found.and_then(|(owner, name)| owner.zip(name)))
}

/// A new space under a client's name. A second one of that name is refused
/// with [`StoreError::Exists`].
pub async fn insert(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    owner: &EntityId,
    name: &str,
    space: &Space,
) -> Result<(), StoreError> {
    let metadata = space.metadata.as_ref().map(Value::to_string);
    tx.exec(
        "INSERT INTO spaces (tenant, id, name, description, metadata, show_reasoning, owner, foreign_id, last_pos, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        args![
            tenant.as_str(),
            space.id.as_str(),
            space.name.as_deref(),
            space.description.as_deref(),
            metadata.as_deref(),
            space.show_reasoning,
            owner.as_str(),
            name,
            space.last_pos,
            space.created_at
        ],
    )
    .await?;
    Ok(())
}

/// Remembers a client's name of a message. The newest message of a name is meant.
pub async fn name_message(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    name: &str,
    message: &MessageId,
) -> Result<(), StoreError> {
    tx.exec(
        "INSERT INTO message_names (tenant, space, name, message) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, space, name) DO UPDATE SET message = excluded.message",
        args![tenant.as_str(), space.as_str(), name, message.as_str()],
    )
    .await?;
    Ok(())
}

/// The message that a client means by a name: its own, or the gateway's id.
pub async fn message(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    name: &str,
) -> Result<Option<MessageId>, StoreError> {
    tx.one(
        "SELECT m.id FROM messages m WHERE m.tenant = $1 AND m.space = $2 AND m.id = \
         coalesce((SELECT n.message FROM message_names n WHERE n.tenant = $1 AND n.space = $2 AND n.name = $3), $3)",
        args![tenant.as_str(), space.as_str(), name],
        |r| r.parsed(0, MessageId::parse),
    )
    .await
}
