//! What agents remember. A row says for whom it was written and where, and
//! every read names who asks: nobody reads what was written for another.

use toolyard_protocol::{EntityId, MemoryId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::tx::{Row, Sql, Tx, args};

/// Which runs may read a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryScope {
    /// Runs for its writer, in every space.
    User,
    /// Runs in its space, for every member.
    Space,
    /// Runs for nobody, outside of spaces.
    Agent,
}

impl MemoryScope {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Space => "space",
            Self::Agent => "agent",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Space, Self::Agent].into_iter().find(|s| s.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    pub id: MemoryId,
    /// The agent entity that remembers.
    pub agent: EntityId,
    /// For whom it worked when it wrote this.
    pub writer: Option<EntityId>,
    /// Where it was written.
    pub space: Option<SpaceId>,
    pub scope: MemoryScope,
    pub topic: String,
    pub content: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Who asks: an agent, for somebody, somewhere.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    pub agent: &'a EntityId,
    pub user: Option<&'a EntityId>,
    pub space: Option<&'a SpaceId>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, agent, writer, space, scope, topic, content, created_at, updated_at FROM memories ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Memory, StoreError> {
    Ok(Memory {
        id: r.parsed(0, MemoryId::parse)?,
        agent: r.parsed(1, EntityId::parse)?,
        writer: r.opt_parsed(2, EntityId::parse)?,
        space: r.opt_parsed(3, SpaceId::parse)?,
        scope: r.parsed(4, |t| MemoryScope::parse(t).ok_or("not a scope"))?,
        topic: r.text(5)?,
        content: r.text(6)?,
        created_at: r.time(7)?,
        updated_at: r.time(8)?,
    })
}

/// Letters without their case. Here, because SQLite knows the case of ASCII only.
fn key(text: &str) -> String {
    text.to_lowercase()
}

fn search(memory: &Memory) -> String {
    key(&format!("{} {}", memory.topic, memory.content))
}

/// False if there is a memory of this topic already.
pub async fn insert(tx: &mut Tx<'_>, tenant: &TenantId, memory: &Memory) -> Result<bool, StoreError> {
    let written = tx.exec(
        "INSERT INTO memories (tenant, id, agent, writer, space, scope, topic, content, topic_key, search, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING",
        args![
            tenant.as_str(),
            memory.id.as_str(),
            memory.agent.as_str(),
            memory.writer.as_ref().map(EntityId::as_str),
            memory.space.as_ref().map(SpaceId::as_str),
            memory.scope.as_str(),
            &memory.topic,
            &memory.content,
            &key(&memory.topic),
            &search(memory),
            memory.created_at,
            memory.updated_at
        ],
    )
    .await?;
    Ok(written > 0)
}

/// Writes topic and content.
pub async fn update(tx: &mut Tx<'_>, tenant: &TenantId, memory: &Memory) -> Result<bool, StoreError> {
    let changed = tx
        .exec(
            "UPDATE memories SET topic = $1, content = $2, topic_key = $3, search = $4, updated_at = $5 WHERE tenant = $6 AND id = $7",
            args![
                &memory.topic,
                &memory.content,
                &key(&memory.topic),
                &search(memory),
                memory.updated_at,
                tenant.as_str(),
                memory.id.as_str()
            ],
        )
        .await?;
    Ok(changed > 0)
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &MemoryId) -> Result<Option<Memory>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// What the one who asks wrote itself under a topic, in this scope. Letters
/// are compared without their case.
pub async fn own(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    asking: Asking<'_>,
    scope: MemoryScope,
    topic: &str,
) -> Result<Option<Memory>, StoreError> {
    // A memory for a space stays in the space it was written for; one for a user moves with the user.
    let space = if scope == MemoryScope::Space { asking.space.map_or("", SpaceId::as_str) } else { "" };
    tx.one(
        select!(
            "WHERE tenant = $1 AND agent = $2 AND coalesce(writer, '') = $3 AND scope = $4 AND ($5 = '' OR space = $5) AND topic_key = $6 ORDER BY id LIMIT 1"
        ),
        args![
            tenant.as_str(),
            asking.agent.as_str(),
            asking.user.map_or("", EntityId::as_str),
            scope.as_str(),
            space,
            &key(topic)
        ],
        row,
    )
    .await
}

/// What the one who asks may read, newest first: with these
/// letters in the topic, and these in topic or content.
pub async fn readable(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    asking: Asking<'_>,
    topic: Option<&str>,
    text: Option<&str>,
    limit: u32,
) -> Result<Vec<Memory>, StoreError> {
    const SQLITE: &str = select!(
        "WHERE tenant = $1 AND agent = $2 AND ((scope = 'user' AND writer = $3) OR (scope = 'space' AND space = $4) OR (scope = 'agent' AND $3 = '' AND $4 = '')) \
         AND ($5 = '' OR instr(topic_key, $5) > 0) AND ($6 = '' OR instr(search, $6) > 0) ORDER BY updated_at DESC, id DESC LIMIT $7"
    );
    const POSTGRES: &str = select!(
        "WHERE tenant = $1 AND agent = $2 AND ((scope = 'user' AND writer = $3) OR (scope = 'space' AND space = $4) OR (scope = 'agent' AND $3 = '' AND $4 = '')) \
         AND ($5 = '' OR position($5 in topic_key) > 0) AND ($6 = '' OR position($6 in search) > 0) ORDER BY updated_at DESC, id DESC LIMIT $7"
    );
    let (topic, text) = (topic.map(key), text.map(key));
    tx.all(
        Sql { sqlite: SQLITE, postgres: POSTGRES },
        args![
            tenant.as_str(),
            asking.agent.as_str(),
            asking.user.map_or("", EntityId::as_str),
            asking.space.map_or("", SpaceId::as_str),
            topic.as_deref().unwrap_or_default(),
            text.as_deref().unwrap_or_default(),
            i64::from(limit)
        ],
        row,
    )
    .await
}

/// How many memories a writer has left with an agent.
pub async fn count(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    agent: &EntityId,
    writer: Option<&EntityId>,
) -> Result<i64, StoreError> {
    let found = tx
        .one(
            "SELECT count(*) FROM memories WHERE tenant = $1 AND agent = $2 AND coalesce(writer, '') = $3",
            args![tenant.as_str(), agent.as_str(), writer.map_or("", EntityId::as_str)],
            |r| r.int(0),
        )
        .await?;
    Ok(found.unwrap_or(0))
}

/// Newest first, for people; of one writer, agent or topic if given.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    writer: Option<&EntityId>,
    agent: Option<&EntityId>,
    topic: Option<&str>,
    before: Option<&MemoryId>,
    limit: u32,
) -> Result<Vec<Memory>, StoreError> {
    let topic = topic.map(key);
    tx.all(
        select!(
            "WHERE tenant = $1 AND ($2 = '' OR writer = $2) AND ($3 = '' OR agent = $3) AND ($4 = '' OR topic_key = $4) AND ($5 = '' OR id < $5) ORDER BY id DESC LIMIT $6"
        ),
        args![
            tenant.as_str(),
            writer.map_or("", EntityId::as_str),
            agent.map_or("", EntityId::as_str),
            topic.as_deref().unwrap_or_default(),
            before.map_or("", MemoryId::as_str),
            i64::from(limit)
        ],
        row,
    )
    .await
}

pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &MemoryId) -> Result<bool, StoreError> {
    let gone = tx
        .exec("DELETE FROM memories WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?;
    Ok(gone > 0)
}
