//! Runs as lists of tasks: of one agent, the last changed first.

use toolyard_protocol::run::RunStatus;
use toolyard_protocol::{AgentName, EntityId, RunId, SpaceId, TenantId, Timestamp};

use crate::error::StoreError;
use crate::runs::{self, RunRow};
use crate::tx::{Tx, args};

/// Which tasks.
#[derive(Debug, Clone, Copy)]
pub struct Which<'a> {
    pub agent: &'a AgentName,
    /// Only tasks of this entity.
    pub of: Option<&'a EntityId>,
    pub space: Option<&'a SpaceId>,
    pub status: Option<RunStatus>,
    /// For paused ones: `Some(true)` only those that wait for a credential,
    /// `Some(false)` only the others.
    pub credential: Option<bool>,
    /// For failed ones, the same with a refusal of the content.
    pub filtered: Option<bool>,
    pub after: Option<Timestamp>,
}

impl Which<'_> {
    fn words(&self) -> [&str; 6] {
        let flag = |flag: Option<bool>| match flag {
            None => "",
            Some(true) => "y",
            Some(false) => "n",
        };
        [
            self.agent.as_str(),
            self.of.map_or("", EntityId::as_str),
            self.space.map_or("", SpaceId::as_str),
            self.status.map_or("", RunStatus::as_str),
            flag(self.credential),
            flag(self.filtered),
        ]
    }
}

macro_rules! matching {
    ($head:literal, $tail:literal) => {
        concat!(
            $head,
            " FROM runs WHERE tenant = $1 AND agent = $2 AND parent IS NULL AND ($3 = '' OR triggered_by = $3) \
              AND ($4 = '' OR space = $4) AND ($5 = '' OR status = $5) \
              AND ($6 = '' OR ($6 = 'y' AND reason = 'credential') OR ($6 = 'n' AND reason <> 'credential')) \
              AND ($7 = '' OR ($7 = 'y' AND error = 'content_filtered') OR ($7 = 'n' AND (error IS NULL OR error <> 'content_filtered'))) \
              AND updated_at > $8 ",
            $tail
        )
    };
}

/// One page, behind a task that was changed at this moment.
pub async fn list(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    which: Which<'_>,
    behind: Option<&(Timestamp, RunId)>,
    limit: u32,
) -> Result<Vec<RunRow>, StoreError> {
    let [agent, of, space, status, credential, filtered] = which.words();
    let (at, id) = behind.map_or((Timestamp::from_millis(i64::MAX), ""), |(at, id)| (*at, id.as_str()));
    let ids = tx
        .all(
            matching!(
                "SELECT id",
                "AND (updated_at < $9 OR (updated_at = $9 AND id < $10)) ORDER BY updated_at DESC, id DESC LIMIT $11"
            ),
            args![
                tenant.as_str(),
                agent,
                of,
                space,
                status,
                credential,
                filtered,
                which.after.unwrap_or(Timestamp::from_millis(-1)),
                at,
                id,
                i64::from(limit)
            ],
            |r| r.parsed(0, RunId::parse),
        )
        .await?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        rows.extend(runs::get(tx, tenant, &id).await?);
    }
    Ok(rows)
}

/// How many there are in all.
pub async fn count(tx: &mut Tx<'_>, tenant: &TenantId, which: Which<'_>) -> Result<i64, StoreError> {
    let [agent, of, space, status, credential, filtered] = which.words();
    let found = tx
        .one(
            matching!("SELECT count(*)", ""),
            args![
                tenant.as_str(),
                agent,
                of,
                space,
                status,
                credential,
                filtered,
                which.after.unwrap_or(Timestamp::from_millis(-1))
            ],
            |r| r.int(0),
        )
        .await?;
    Ok(found.unwrap_or(0))
}
