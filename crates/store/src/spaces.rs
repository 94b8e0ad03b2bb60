//! Spaces and their members.

use serde_json::Value;
use toolyard_protocol::picks::Picks;
use toolyard_protocol::principal::Role;
use toolyard_protocol::{AgentName, BranchId, EntityId, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Tx, args};

/// A conversation as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    pub id: SpaceId,
    pub name: Option<String>,
    pub description: Option<String>,
    pub metadata: Option<Value>,
    pub show_reasoning: bool,
    pub last_pos: i64,
    /// The branch that it goes on with.
    pub branch: BranchId,
    /// Its messages hold words from outside the gateway's trust.
    pub tainted: bool,
    pub created_at: Timestamp,
}

/// An entity in a space.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub entity: EntityId,
    pub role: Role,
    pub created_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT s.id, s.name, s.description, s.metadata, s.show_reasoning, s.last_pos, s.created_at, s.branch, s.tainted FROM spaces s ",
            $rest
        )
    };
}

pub(crate) fn row(r: &Row<'_>) -> Result<Space, StoreError> {
    Ok(Space {
        id: r.parsed(0, SpaceId::parse)?,
        name: r.opt_text(1)?,
        description: r.opt_text(2)?,
        metadata: r.json(3)?,
        show_reasoning: r.flag(4)?,
        last_pos: r.int(5)?,
        created_at: r.time(6)?,
        branch: r.opt_parsed(7, BranchId::parse)?.unwrap_or_else(BranchId::main),
        tainted: r.flag(8)?,
    })
}

/// Remembers that untrusted words are part of the conversation, for runs that
/// begin later.
pub async fn taint(tx: &mut Tx<'_>, tenant: &TenantId, space: &SpaceId) -> Result<(), StoreError> {
    tx.exec(
        "UPDATE spaces SET tainted = 1 WHERE tenant = $1 AND id = $2 AND tainted = 0",
        args![tenant.as_str(), space.as_str()],
    )
    .await?;
    Ok(())
}

pub async fn insert(tx: &mut Tx<'_>, tenant: &TenantId, space: &Space) -> Result<(), StoreError> {
    let metadata = space.metadata.as_ref().map(Value::to_string);
    tx.exec(
        "INSERT INTO spaces (tenant, id, name, description, metadata, show_reasoning, last_pos, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        args![
            tenant.as_str(),
            space.id.as_str(),
            space.name.as_deref(),
            space.description.as_deref(),
            metadata.as_deref(),
            space.show_reasoning,
            space.last_pos,
            space.created_at
        ],
    )
    .await?;
    Ok(())
}

/// Writes the fields that people may change.
pub async fn update(tx: &mut Tx<'_>, tenant: &TenantId, space: &Space) -> Result<bool, StoreError> {
    let metadata = space.metadata.as_ref().map(Value::to_string);
    let changed = tx
        .exec(
            "UPDATE spaces SET name = $1, description = $2, metadata = $3, show_reasoning = $4 WHERE tenant = $5 AND id = $6",
            args![
                space.name.as_deref(),
                space.description.as_deref(),
                metadata.as_deref(),
                space.show_reasoning,
                tenant.as_str(),
                space.id.as_str()
            ],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, space: &SpaceId) -> Result<Option<Space>, StoreError> {
    tx.one(select!("WHERE s.tenant = $1 AND s.id = $2"), args![tenant.as_str(), space.as_str()], row).await
}

/// Newest first; of one member if given.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    member: Option<&EntityId>,
    before: Option<&SpaceId>,
    limit: u32,
) -> Result<Vec<Space>, StoreError> {
    tx.all(
        select!(
            "WHERE s.tenant = $1 AND ($2 = '' OR EXISTS (SELECT 1 FROM members m WHERE m.tenant = s.tenant AND m.space = s.id AND m.entity = $2)) AND ($3 = '' OR s.id < $3) ORDER BY s.id DESC LIMIT $4"
        ),
        args![
            tenant.as_str(),
            member.map_or("", EntityId::as_str),
            before.map_or("", SpaceId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// The spaces that an entity is in, newest first.
pub async fn of_member(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    entity: &EntityId,
    limit: u32,
) -> Result<Vec<SpaceId>, StoreError> {
    tx.all(
        "SELECT space FROM members WHERE tenant = $1 AND entity = $2 ORDER BY space DESC LIMIT $3",
        args![tenant.as_str(), entity.as_str(), i64::from(limit)],
        |r| r.parsed(0, SpaceId::parse),
    )
    .await
}

/// Positions of a space that a transaction has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// The space's number, by which the log knows it.
    pub space: i64,
    pub first: i64,
    pub count: usize,
}

impl Positions {
    /// All but the first.
    pub(crate) fn behind(self) -> Self {
        Self { first: self.first + 1, count: self.count.saturating_sub(1), ..self }
    }
}

/// Takes the next `count` positions of a space. The row stays locked to the
/// commit, so positions are dense and in commit order.
pub async fn take_positions(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    count: usize,
) -> Result<Positions, StoreError> {
    const GONE: StoreError = StoreError::Gone("SmartSpace");
    let more = i64::try_from(count).unwrap_or(0);
    if tx.is_postgres() {
        let taken = tx
            .one(
                "UPDATE spaces SET last_pos = last_pos + $1 WHERE tenant = $2 AND id = $3 RETURNING nr, last_pos",
                args![more, tenant.as_str(), space.as_str()],
                |r| Ok(Positions { space: r.int(0)?, first: r.int(1)? - more + 1, count }),
            )
            .await?;
        return taken.ok_or(GONE);
    }
    // SQLite's writer holds everything, and RETURNING makes a table there for its one row.
    let found = tx
        .one(
            "SELECT nr, last_pos FROM spaces WHERE tenant = $1 AND id = $2",
            args![tenant.as_str(), space.as_str()],
            |r| Ok(Positions { space: r.int(0)?, first: r.int(1)? + 1, count }),
        )
        .await?;
    let taken = found.ok_or(GONE)?;
    if count > 0 {
        let last = taken.first + more - 1;
        tx.exec("UPDATE spaces SET last_pos = $1 WHERE nr = $2", args![last, taken.space]).await?;
    }
    Ok(taken)
}

/// Holds a space until the transaction ends. False if there is none.
pub async fn lock(tx: &mut Tx<'_>, tenant: &TenantId, space: &SpaceId) -> Result<bool, StoreError> {
    match take_positions(tx, tenant, space, 0).await {
        Ok(_) => Ok(true),
        Err(StoreError::Gone(_)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Adds a member, or changes its role.
pub async fn put_member(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entity: &EntityId,
    role: Role,
) -> Result<Timestamp, StoreError> {
    let now = tx.now().await?;
    let since = tx
        .one(
            "INSERT INTO members (tenant, space, entity, role, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, space, entity) DO UPDATE SET role = excluded.role RETURNING created_at",
            args![tenant.as_str(), space.as_str(), entity.as_str(), role_text(role), now],
            |r| r.time(0),
        )
        .await?;
    Ok(since.unwrap_or(now))
}

pub async fn remove_member(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entity: &EntityId,
) -> Result<bool, StoreError> {
    let changed = tx
        .exec(
            "DELETE FROM members WHERE tenant = $1 AND space = $2 AND entity = $3",
            args![tenant.as_str(), space.as_str(), entity.as_str()],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn members(tx: &mut Tx<'_>, tenant: &TenantId, space: &SpaceId) -> Result<Vec<Member>, StoreError> {
    tx.all(
        "SELECT entity, role, created_at FROM members WHERE tenant = $1 AND space = $2 ORDER BY created_at, entity",
        args![tenant.as_str(), space.as_str()],
        |r| Ok(Member { entity: r.parsed(0, EntityId::parse)?, role: role_of(&r.text(1)?), created_at: r.time(2)? }),
    )
    .await
}

/// The agents in a space, with the agent that each plays.
pub async fn agents_in(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
) -> Result<Vec<(EntityId, Option<AgentName>)>, StoreError> {
    tx.all(
        "SELECT e.id, e.agent FROM members m JOIN entities e ON e.tenant = m.tenant AND e.id = m.entity \
         WHERE m.tenant = $1 AND m.space = $2 AND e.kind = 'agent' ORDER BY e.id",
        args![tenant.as_str(), space.as_str()],
        |r| Ok((r.parsed(0, EntityId::parse)?, r.opt_parsed(1, AgentName::parse)?)),
    )
    .await
}

/// The role of an entity in a space, if it is a member.
pub async fn role(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entity: &EntityId,
) -> Result<Option<Role>, StoreError> {
    Ok(seat(tx, tenant, space, entity).await?.map(|seat| seat.role))
}

/// What a member is in a space, and which tools it picked there.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    pub role: Role,
    pub picks: Option<Picks>,
}

pub async fn seat(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entity: &EntityId,
) -> Result<Option<Seat>, StoreError> {
    tx.one(
        "SELECT role, picks FROM members WHERE tenant = $1 AND space = $2 AND entity = $3",
        args![tenant.as_str(), space.as_str(), entity.as_str()],
        |r| {
            let picks = r.opt_text(1)?.and_then(|text| serde_json::from_str(&text).ok());
            Ok(Seat { role: role_of(&r.text(0)?), picks })
        },
    )
    .await
}

/// Remembers what a member picked. False if it is no member.
pub async fn pick(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    entity: &EntityId,
    picks: &Picks,
) -> Result<bool, StoreError> {
    let text = serde_json::to_string(picks).unwrap_or_default();
    let changed = tx
        .exec(
            "UPDATE members SET picks = $1 WHERE tenant = $2 AND space = $3 AND entity = $4",
            args![&text, tenant.as_str(), space.as_str(), entity.as_str()],
        )
        .await?;
    Ok(changed > 0)
}

fn role_text(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Member => "member",
    }
}

/// An unknown role is the weakest one.
fn role_of(text: &str) -> Role {
    if text == "admin" { Role::Admin } else { Role::Member }
}

/// The newest position of a space, and the last one whose event was removed.
pub async fn bounds(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
) -> Result<Option<(i64, i64)>, StoreError> {
    tx.one(
        "SELECT last_pos, gone_to FROM spaces WHERE tenant = $1 AND id = $2",
        args![tenant.as_str(), space.as_str()],
        |r| Ok((r.int(0)?, r.int(1)?)),
    )
    .await
}

/// Removes a space and all of it: members, messages, runs, logs and waits, and
/// the plans, documents, shared memories and notifications of it.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, space: &SpaceId) -> Result<bool, StoreError> {
    let named = args![tenant.as_str(), space.as_str()];
    if tx.is_postgres() {
        // Runs before their waits, as everybody locks. Then the space, before anything goes:
        // held, it takes no run and no message that would be left behind.
        tx.all("SELECT id FROM runs WHERE tenant = $1 AND space = $2 ORDER BY id FOR UPDATE", named, |_| {
            Ok(())
        })
        .await?;
        tx.one("SELECT id FROM spaces WHERE tenant = $1 AND id = $2 FOR UPDATE", named, |_| Ok(())).await?;
    }
    tx.exec(
        "DELETE FROM waits WHERE tenant = $1 AND run IN (SELECT id FROM runs WHERE tenant = $1 AND space = $2)",
        named,
    )
    .await?;
    tx.exec(
        "DELETE FROM events WHERE tenant = $1 AND run IN (SELECT id FROM runs WHERE tenant = $1 AND space = $2)",
        named,
    )
    .await?;
    tx.exec(
        "DELETE FROM push_configs WHERE tenant = $1 AND run IN (SELECT id FROM runs WHERE tenant = $1 AND space = $2)",
        named,
    )
    .await?;
    let runs = tx.all("SELECT id FROM runs WHERE tenant = $1 AND space = $2 ORDER BY id", named, |r| {
        r.parsed(0, RunId::parse)
    });
    for run in runs.await? {
        crate::blobs::forget_run(tx, tenant, &run).await?;
    }
    tx.exec("DELETE FROM runs WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM messages WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM message_names WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM branches WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM compactions WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM members WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM memories WHERE tenant = $1 AND space = $2 AND scope = 'space'", named).await?;
    // What was kept for a person stays theirs; only the place is forgotten.
    tx.exec("UPDATE memories SET space = NULL WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM plans WHERE tenant = $1 AND space = $2", named).await?;
    tx.exec("DELETE FROM inbox WHERE tenant = $1 AND space = $2", named).await?;
    crate::knowledge::delete_of_space(tx, tenant, space).await?;
    crate::blobs::forget_space(tx, tenant, space).await?;
    Ok(tx.exec("DELETE FROM spaces WHERE tenant = $1 AND id = $2", named).await? > 0)
}
