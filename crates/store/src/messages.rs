//! Messages of spaces, stored as ready JSON.

use serde_json::Value;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::{BranchId, EntityId, MessageId, RunId, SpaceId, TenantId};

use crate::branches::{self, Stretch};
use crate::error::StoreError;
use crate::spaces::{self, Positions};
use crate::tx::{CallNews, Row, Touched, Tx, args};

/// A message before it has a place.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    pub id: MessageId,
    pub speaker: Speaker,
    pub entity: Option<EntityId>,
    pub run: Option<RunId>,
    pub branch: BranchId,
    pub parts: Vec<Part>,
    pub show_reasoning: bool,
    pub metadata: Option<Value>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT space, pos, id, speaker, entity, run, branch, parts, show_reasoning, metadata, created_at FROM messages ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Message, StoreError> {
    Ok(Message {
        space: r.parsed(0, SpaceId::parse)?,
        seq: r.int(1)?,
        id: r.parsed(2, MessageId::parse)?,
        speaker: r.parsed(3, |t| Speaker::parse(t).ok_or("not a speaker"))?,
        entity: r.opt_parsed(4, EntityId::parse)?,
        run: r.opt_parsed(5, RunId::parse)?,
        branch: r.parsed(6, BranchId::parse)?,
        parts: r.parsed(7, |t| serde_json::from_str(t))?,
        show_reasoning: r.flag(8)?,
        metadata: r.json(9)?,
        created_at: r.time(10)?,
    })
}

/// Adds a message at the end of its space.
pub async fn insert(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    message: NewMessage,
) -> Result<Message, StoreError> {
    insert_before(tx, tenant, space, message, 0).await.map(|(message, _)| message)
}

/// As [`insert`], and takes as many places behind it, for what the same
/// transaction is about to write there: these are answered too.
pub async fn insert_before(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    message: NewMessage,
    behind: usize,
) -> Result<(Message, Positions), StoreError> {
    let now = tx.now().await?;
    let taken = spaces::take_positions(tx, tenant, space, 1 + behind).await?;
    let pos = taken.first;
    write(tx, tenant, space, pos, &message).await?;
    tx.touched.push(Touched {
        tenant: tenant.clone(),
        run: None,
        seq: pos,
        space: Some(space.clone()),
        replied: None,
        restarted: false,
        calls: CallNews::default(),
        commit: None,
    });
    let message = Message {
        id: message.id,
        space: space.clone(),
        seq: pos,
        speaker: message.speaker,
        entity: message.entity,
        run: message.run,
        branch: message.branch,
        parts: message.parts,
        show_reasoning: message.show_reasoning,
        metadata: message.metadata,
        created_at: now,
    };
    Ok((message, taken.behind()))
}

/// The message of a run's turn as it grows, with new parts at its old place.
pub async fn revise(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &MessageId,
    parts: &[Part],
) -> Result<bool, StoreError> {
    let parts = serde_json::to_string(parts).unwrap_or_default();
    let revised = tx
        .exec(
            "UPDATE messages SET parts = $1 WHERE tenant = $2 AND id = $3",
            args![&parts, tenant.as_str(), id.as_str()],
        )
        .await?;
    Ok(revised > 0)
}

/// Writes a message at a place that its transaction has taken.
pub async fn write(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    pos: i64,
    message: &NewMessage,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let parts = serde_json::to_string(&message.parts).unwrap_or_default();
    let metadata = message.metadata.as_ref().map(Value::to_string);
    tx.exec(
        "INSERT INTO messages (tenant, space, pos, id, speaker, entity, run, branch, parts, show_reasoning, metadata, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        args![
            tenant.as_str(),
            space.as_str(),
            pos,
            message.id.as_str(),
            message.speaker.as_str(),
            message.entity.as_ref().map(EntityId::as_str),
            message.run.as_ref().map(RunId::as_str),
            message.branch.as_str(),
            &parts,
            message.show_reasoning,
            metadata.as_deref(),
            now
        ],
    )
    .await?;
    Ok(())
}

/// A page of a space: after a position upwards, or before one downwards. The
/// answer is always in the space's order.
pub async fn page(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    after: Option<i64>,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Message>, StoreError> {
    let bounds = args![
        tenant.as_str(),
        space.as_str(),
        after.unwrap_or(0),
        before.unwrap_or(i64::MAX),
        i64::from(limit)
    ];
    if after.is_some() {
        return tx
            .all(
                select!("WHERE tenant = $1 AND space = $2 AND pos > $3 AND pos < $4 ORDER BY pos LIMIT $5"),
                bounds,
                row,
            )
            .await;
    }
    let mut newest = tx
        .all(
            select!("WHERE tenant = $1 AND space = $2 AND pos > $3 AND pos < $4 ORDER BY pos DESC LIMIT $5"),
            bounds,
            row,
        )
        .await?;
    newest.reverse();
    Ok(newest)
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &MessageId) -> Result<Option<Message>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// What a model reads of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub seq: i64,
    pub speaker: Speaker,
    pub entity: Option<EntityId>,
    pub parts: Vec<Part>,
}

impl From<Message> for Said {
    fn from(Message { seq, speaker, entity, parts, .. }: Message) -> Self {
        Self { seq, speaker, entity, parts }
    }
}

/// What a model reads of a branch: its messages between two positions, oldest
/// first. What the branch has of its parents comes first.
pub async fn history(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    after: i64,
    up_to: i64,
) -> Result<Vec<Said>, StoreError> {
    of_history(tx, tenant, space, branch, (after, up_to), None, |r| {
        Ok(Said {
            seq: r.int(0)?,
            speaker: r.parsed(1, |t| Speaker::parse(t).ok_or("not a speaker"))?,
            entity: r.opt_parsed(2, EntityId::parse)?,
            parts: r.parsed(3, |t| serde_json::from_str(t))?,
        })
    })
    .await
}

/// A message of a history as it lies in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    seq: i64,
    speaker: String,
    entity: Option<String>,
    parts: String,
}

impl Unread {
    /// None if this release cannot read it.
    pub fn read(&self) -> Option<Said> {
        Some(Said {
            seq: self.seq,
            speaker: Speaker::parse(&self.speaker)?,
            entity: self.entity.as_deref().map(EntityId::parse).transpose().ok()?,
            parts: serde_json::from_str(&self.parts).ok()?,
        })
    }
}

/// As [`history`], for whoever reads it later. None if a message of it has more
/// than `longest` bytes: such a one is not even fetched.
pub async fn history_unread(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    (after, up_to): (i64, i64),
    longest: i64,
) -> Result<Option<Vec<Unread>>, StoreError> {
    let said = of_history(tx, tenant, space, branch, (after, up_to), Some(longest), |r| {
        let Some(parts) = r.opt_text(3)? else { return Ok(None) };
        Ok(Some(Unread { seq: r.int(0)?, speaker: r.text(1)?, entity: r.opt_text(2)?, parts }))
    });
    Ok(said.await?.into_iter().collect())
}

async fn of_history<T: Send>(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    (after, up_to): (i64, i64),
    longest: Option<i64>,
    map: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send + Sync,
) -> Result<Vec<T>, StoreError> {
    let chain = branches::chain(tx, tenant, space, branch, up_to).await?;
    let (mut said, tenant, space) = (Vec::new(), tenant.as_str(), space.as_str());
    for Stretch { branch, up_to } in chain.iter().rev() {
        let branch = branch.as_str();
        let stretch = match longest {
            None => {
                const ALL: &str = "SELECT pos, speaker, entity, parts FROM messages \
                    WHERE tenant = $1 AND space = $2 AND branch = $3 AND pos > $4 AND pos <= $5 ORDER BY pos";
                tx.all(ALL, args![tenant, space, branch, after, *up_to], &map).await?
            }
            Some(longest) => {
                const SHORT: &str = "SELECT pos, speaker, entity, CASE WHEN octet_length(parts) <= $1 THEN parts END FROM messages \
                    WHERE tenant = $2 AND space = $3 AND branch = $4 AND pos > $5 AND pos <= $6 ORDER BY pos";
                tx.all(SHORT, args![longest, tenant, space, branch, after, *up_to], &map).await?
            }
        };
        said.extend(stretch);
    }
    Ok(said)
}

/// As [`history`] from the beginning, with all that is stored of each message.
pub async fn of_branch(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
) -> Result<Vec<Message>, StoreError> {
    let mut found = Vec::new();
    for Stretch { branch, up_to } in branches::chain(tx, tenant, space, branch, i64::MAX).await?.iter().rev()
    {
        let stretch = tx
            .all(
                select!("WHERE tenant = $1 AND space = $2 AND branch = $3 AND pos <= $4 ORDER BY pos"),
                args![tenant.as_str(), space.as_str(), branch.as_str(), *up_to],
                row,
            )
            .await?;
        found.extend(stretch);
    }
    Ok(found)
}

/// The newest messages of a branch before a position, in order.
pub async fn branch_page(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<Message>, StoreError> {
    let (mut found, most) = (Vec::new(), limit as usize);
    let up_to = before.map_or(i64::MAX, |before| before.saturating_sub(1));
    for Stretch { branch, up_to } in branches::chain(tx, tenant, space, branch, up_to).await? {
        let left = i64::try_from(most.saturating_sub(found.len())).unwrap_or(0);
        if left == 0 {
            break;
        }
        let stretch = tx
            .all(
                select!(
                    "WHERE tenant = $1 AND space = $2 AND branch = $3 AND pos <= $4 ORDER BY pos DESC LIMIT $5"
                ),
                args![tenant.as_str(), space.as_str(), branch.as_str(), up_to, left],
                row,
            )
            .await?;
        found.extend(stretch);
    }
    found.reverse();
    Ok(found)
}

/// The message of a run's turn that comes first behind a position of a branch.
pub async fn reply_after(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    pos: i64,
) -> Result<Option<Message>, StoreError> {
    for Stretch { branch, up_to } in branches::chain(tx, tenant, space, branch, i64::MAX).await?.iter().rev()
    {
        let found = tx
            .one(
                select!(
                    "WHERE tenant = $1 AND space = $2 AND branch = $3 AND pos > $4 AND pos <= $5 AND run IS NOT NULL ORDER BY pos LIMIT 1"
                ),
                args![tenant.as_str(), space.as_str(), branch.as_str(), pos, *up_to],
                row,
            )
            .await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The last thing that somebody said up to a position of a branch.
pub async fn user_before(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    space: &SpaceId,
    branch: &BranchId,
    up_to: i64,
) -> Result<Option<Message>, StoreError> {
    for Stretch { branch, up_to } in branches::chain(tx, tenant, space, branch, up_to).await? {
        let found = tx
            .one(
                select!(
                    "WHERE tenant = $1 AND space = $2 AND branch = $3 AND pos <= $4 AND speaker = 'user' ORDER BY pos DESC LIMIT 1"
                ),
                args![tenant.as_str(), space.as_str(), branch.as_str(), up_to],
                row,
            )
            .await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
