//! Addresses that hear of runs: `run.waiting`, `run.completed`, `run.failed`.
//! The signing key of one is shown once, when it is made.

use axum::response::Response;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use toolyard_protocol::{ApiError, ErrorCode, Timestamp, WebhookId, limits};
use toolyard_runtime::Purpose;
use toolyard_store::webhooks::{self, Wanted, Webhook};
use toolyard_store::{StoreError, audit};

use super::answer;
use super::call::Call;
use crate::auth::new_signing_key;
use crate::http::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
enum WebhookEvent {
    /// A call waits, and no client that could run it is there.
    #[serde(rename = "run.waiting")]
    Waiting,
    #[serde(rename = "run.completed")]
    Completed,
    #[serde(rename = "run.failed")]
    Failed,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewWebhook {
    /// Where to POST.
    url: String,
    /// What to tell; at least one.
    events: Vec<WebhookEvent>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookView {
    id: WebhookId,
    url: String,
    events: Vec<WebhookEvent>,
    created_at: Timestamp,
    /// The last attempt.
    last_attempt_at: Option<Timestamp>,
    /// What it answered; null if it could not be reached.
    last_status: Option<i64>,
    /// Failed attempts since the last success.
    failures: i64,
    /// Events that were never delivered.
    given_up: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebhookMade {
    webhook: WebhookView,
    /// Signs what is sent there. It cannot be shown again.
    secret: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebhookList {
    webhooks: Vec<WebhookView>,
}

fn view(webhook: Webhook) -> WebhookView {
    let Wanted { waiting, completed, failed } = webhook.wanted;
    let all = [
        (waiting, WebhookEvent::Waiting),
        (completed, WebhookEvent::Completed),
        (failed, WebhookEvent::Failed),
    ];
    WebhookView {
        id: webhook.id,
        url: webhook.url,
        events: all.into_iter().filter_map(|(wanted, event)| wanted.then_some(event)).collect(),
        created_at: webhook.created_at,
        last_attempt_at: webhook.last_at,
        last_status: webhook.last_status,
        failures: webhook.failures,
        given_up: webhook.given_up,
    }
}

pub(super) async fn create(call: Call) -> Result<Response, Refusal> {
    // The answer to it would have to be stored, and the signing key is in the answer.
    if call.headers.contains_key("idempotency-key") {
        return Err(Refusal::bad_request(
            "Idempotency-Key: not for webhooks, because a signing key is never stored. Make another one and delete the first",
        ));
    }
    let NewWebhook { url, events } = call.json()?;
    if events.is_empty() {
        return Err(Refusal::bad_request(
            "events: name at least one of run.waiting, run.completed, run.failed",
        ));
    }
    // Every delivery is checked again: a name may lead elsewhere tomorrow.
    call.app.guarded.is_allowed(&url).await.map_err(|e| Refusal::bad_request(format!("url: {e}")))?;
    let internal = |why: String| Refusal::new(ErrorCode::Internal, why);
    let secret = new_signing_key().map_err(internal)?;
    let (tenant, actor, id) = (call.tenant().clone(), call.actor(), WebhookId::mint());
    let sealed = call
        .app
        .secrets
        .sealer()
        .seal(Purpose::Webhook, &tenant, id.as_str(), &SecretString::from(secret.as_str()))
        .map_err(|_| internal("The signing key could not be sealed".to_owned()))?;
    let wanted = Wanted {
        waiting: events.contains(&WebhookEvent::Waiting),
        completed: events.contains(&WebhookEvent::Completed),
        failed: events.contains(&WebhookEvent::Failed),
    };
    let made = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let webhook = Webhook {
                    id,
                    url,
                    wanted,
                    sealed,
                    created_at: tx.now().await?,
                    last_at: None,
                    last_status: None,
                    failures: 0,
                    given_up: 0,
                };
                let most = limits::WEBHOOKS;
                if webhooks::list(tx, &tenant).await?.len() >= most {
                    let message = format!("A tenant has at most {most} webhooks");
                    return Err(ApiError::limit(ErrorCode::LimitExceeded, most as u64, message).into());
                }
                webhooks::insert(tx, &tenant, &webhook).await?;
                audit::write(tx, &tenant, &actor, "webhook.create", webhook.id.as_str(), None).await?;
                Ok(webhook)
            })
        })
        .await?;
    answer::json(201, &WebhookMade { webhook: view(made), secret })
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let tenant = call.tenant().clone();
    let rows = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { webhooks::list(tx, &tenant).await }))
        .await?;
    answer::json(200, &WebhookList { webhooks: rows.into_iter().map(view).collect() })
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let id = call.id("webhook", "Webhook", WebhookId::parse)?;
    let (tenant, actor) = (call.tenant().clone(), call.actor());
    let deleted = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let deleted = webhooks::delete(tx, &tenant, &id).await?;
                if deleted {
                    audit::write(tx, &tenant, &actor, "webhook.delete", id.as_str(), None).await?;
                }
                Ok(deleted)
            })
        })
        .await?;
    answer::gone(deleted, "Webhook")
}
