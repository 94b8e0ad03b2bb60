//! Addresses that want to hear of runs. What they hear is written into the
//! outbox by the transaction that makes it true.

use serde_json::Value;
use toolyard_protocol::{EntityId, TenantId, Timestamp, WebhookId, limits};

use crate::error::StoreError;
use crate::secrets::Sealed;
use crate::tx::{Row, Tx, args};

/// The kind of parcel that webhooks make.
pub const PARCEL: &str = "webhook";

/// What an address wants to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    pub waiting: bool,
    pub completed: bool,
    pub failed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    pub wanted: Wanted,
    /// The key that signs what is sent there.
    pub sealed: Sealed,
    pub created_at: Timestamp,
    pub last_at: Option<Timestamp>,
    /// What it answered last; none if it could not be reached.
    pub last_status: Option<i64>,
    /// Since the last success.
    pub failures: i64,
    /// Parcels that were never delivered.
    pub given_up: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, url, on_waiting, on_completed, on_failed, sealed, key_id, created_at, last_at, last_status, failures, given_up FROM webhooks ",
            $rest
        )
    };
}

fn row(r: &Row<'_>) -> Result<Webhook, StoreError> {
    Ok(Webhook {
        id: r.parsed(0, WebhookId::parse)?,
        url: r.text(1)?,
        wanted: Wanted { waiting: r.flag(2)?, completed: r.flag(3)?, failed: r.flag(4)? },
        sealed: Sealed { bytes: r.bytes(5)?, key_id: r.text(6)? },
        created_at: r.time(7)?,
        last_at: r.opt_time(8)?,
        last_status: r.opt_int(9)?,
        failures: r.int(10)?,
        given_up: r.int(11)?,
    })
}

pub async fn insert(tx: &mut Tx<'_>, tenant: &TenantId, webhook: &Webhook) -> Result<(), StoreError> {
    let Wanted { waiting, completed, failed } = webhook.wanted;
    tx.exec(
        "INSERT INTO webhooks (tenant, id, url, on_waiting, on_completed, on_failed, sealed, key_id, created_at, failures, given_up) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0)",
        args![
            tenant.as_str(),
            webhook.id.as_str(),
            &webhook.url,
            waiting,
            completed,
            failed,
            webhook.sealed.bytes.as_slice(),
            &webhook.sealed.key_id,
            webhook.created_at
        ],
    )
    .await?;
    Ok(())
}

pub async fn get(tx: &mut Tx<'_>, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, StoreError> {
    tx.one(select!("WHERE tenant = $1 AND id = $2"), args![tenant.as_str(), id.as_str()], row).await
}

/// All of a tenant, oldest first. There are never many.
pub async fn list(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<Vec<Webhook>, StoreError> {
    tx.all(select!("WHERE tenant = $1 ORDER BY id"), args![tenant.as_str()], row).await
}

/// Forgets an address. What still waits for it is dropped by the delivery.
pub async fn delete(tx: &mut Tx<'_>, tenant: &TenantId, id: &WebhookId) -> Result<bool, StoreError> {
    Ok(tx
        .exec("DELETE FROM webhooks WHERE tenant = $1 AND id = $2", args![tenant.as_str(), id.as_str()])
        .await?
        > 0)
}

/// How a delivery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    pub status: Option<i64>,
    pub delivered: bool,
    pub given_up: bool,
}

pub async fn note(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    id: &WebhookId,
    attempt: Attempt,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let (keep, more) = if attempt.delivered { (0_i64, 0_i64) } else { (1, 1) };
    tx.exec(
        "UPDATE webhooks SET last_at = $1, last_status = $2, failures = failures * $3 + $4, given_up = given_up + $5 WHERE tenant = $6 AND id = $7",
        args![now, attempt.status, keep, more, attempt.given_up, tenant.as_str(), id.as_str()],
    )
    .await?;
    Ok(())
}

/// Does the tenant have any address? Most have none: then nothing needs to be
/// put into words.
pub async fn any(tx: &mut Tx<'_>, tenant: &TenantId) -> Result<bool, StoreError> {
    let found = tx
        .one("SELECT 1 FROM webhooks WHERE tenant = $1 LIMIT 1", args![tenant.as_str()], |_| Ok(()))
        .await?;
    Ok(found.is_some())
}

/// A fact that addresses may want to hear of.
#[derive(Debug, Clone, Copy)]
pub enum Fact<'a> {
    /// A run waits for somebody. Nobody is told while a client of the run's
    /// user is there: it hears of the wait by itself.
    Waiting {
        of: Option<&'a EntityId>,
    },
    Completed,
    Failed,
    /// An agent tells somebody something. Every address of the tenant hears it.
    Notification,
}

/// Writes a parcel for every address that wants to hear of a fact. `name`
/// tells one fact from another: the same name is told once.
pub async fn announce(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    fact: Fact<'_>,
    name: &str,
    payload: &Value,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let (payload, tenant) = (payload.to_string(), tenant.as_str());
    match fact {
        Fact::Waiting { of } => {
            let present = Timestamp::from_millis(now.millis() - 1000 * limits::PRESENCE_SECONDS);
            tx.exec(
                "INSERT INTO outbox (tenant, id, kind, payload, attempts, due_at, created_at) SELECT w.tenant, $1 || ':' || w.id, 'webhook', $2, 0, $3, $3 FROM webhooks w WHERE w.tenant = $4 AND w.on_waiting = 1 \
                 AND NOT EXISTS (SELECT 1 FROM clients c WHERE c.tenant = $4 AND c.last_seen > $5 AND c.by_socket = 0 AND (c.entity IS NULL OR c.entity = $6)) ON CONFLICT (tenant, id) DO NOTHING",
                args![name, &payload, now, tenant, present, of.map_or("", EntityId::as_str)],
            )
            .await?;
        }
        Fact::Completed => {
            tx.exec(
                "INSERT INTO outbox (tenant, id, kind, payload, attempts, due_at, created_at) SELECT w.tenant, $1 || ':' || w.id, 'webhook', $2, 0, $3, $3 FROM webhooks w WHERE w.tenant = $4 AND w.on_completed = 1 ON CONFLICT (tenant, id) DO NOTHING",
                args![name, &payload, now, tenant],
            )
            .await?;
        }
        Fact::Notification => {
            tx.exec(
                "INSERT INTO outbox (tenant, id, kind, payload, attempts, due_at, created_at) SELECT w.tenant, $1 || ':' || w.id, 'webhook', $2, 0, $3, $3 FROM webhooks w WHERE w.tenant = $4 ON CONFLICT (tenant, id) DO NOTHING",
                args![name, &payload, now, tenant],
            )
            .await?;
        }
        Fact::Failed => {
            tx.exec(
                "INSERT INTO outbox (tenant, id, kind, payload, attempts, due_at, created_at) SELECT w.tenant, $1 || ':' || w.id, 'webhook', $2, 0, $3, $3 FROM webhooks w WHERE w.tenant = $4 AND w.on_failed = 1 ON CONFLICT (tenant, id) DO NOTHING",
                args![name, &payload, now, tenant],
            )
            .await?;
        }
    }
    Ok(())
}
