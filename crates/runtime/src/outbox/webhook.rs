//! A parcel for a webhook: one signed POST.

use std::sync::Arc;

use aws_lc_rs::hmac;
use bytes::Bytes;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use toolyard_egress::{Header, Letter, Patience, Verb};
use toolyard_protocol::{TenantId, Timestamp, WebhookId};
use toolyard_store::outbox::Parcel;
use toolyard_store::webhooks::{self, Attempt, PARCEL, Webhook};
use toolyard_store::{StoreError, Tx};
use toolyard_tools::sealer::Purpose;

use super::{ATTEMPT, Delivery, Went};
use crate::runtime::Runtime;

/// Nobody reads more of an answer.
const ANSWER_BYTES: u64 = 64 << 10;

pub(super) async fn deliver(
    runtime: &Arc<Runtime>,
    delivery: &Delivery,
    parcel: &Parcel,
    now: Timestamp,
) -> Went {
    let webhook = match find(runtime, parcel).await {
        Ok(Some(webhook)) => webhook,
        // It was removed: nobody waits for this.
        Ok(None) => return Went::Dropped { why: None },
        Err(e) => return failed(None, e.to_string()),
    };
    let name = webhook.id.as_str();
    let key = match delivery.sealer.open(Purpose::Webhook, &parcel.tenant, name, &webhook.sealed) {
        Ok(key) => key,
        Err(why) => return failed(None, format!("its signing key stays closed: {why}")),
    };
    let mut body = parcel.payload.clone();
    if let Some(map) = body.as_object_mut() {
        map.insert("id".to_owned(), json!(parcel.id));
    }
    let body = body.to_string();
    let target = match delivery.door.target(&webhook.url) {
        Ok(target) => target,
        Err(e) => return failed(None, e.to_string()),
    };
    let event = parcel.payload["type"].as_str().unwrap_or_default().to_owned();
    let headers = [
        Header::plain("x-toolyard-id", parcel.id.clone()),
        Header::plain("x-toolyard-event", event),
        Header::plain("x-toolyard-signature", sign(&key, now, &body)),
    ];
    let letter = Letter {
        verb: Verb::Post,
        target: &target,
        headers: &headers,
        accept: "*/*",
        body: Some(Bytes::from(body)),
        patience: Patience { head: ATTEMPT, idle: ATTEMPT, bytes: ANSWER_BYTES },
    };
    match delivery.door.send(letter).await {
        Err(e) => failed(None, e.to_string()),
        Ok(answer) if answer.is_success() => Went::Delivered { status: Some(answer.status.into()) },
        Ok(answer) if answer.status == 410 => {
            Went::Dropped { why: Some("it answered 410: gone for good".to_owned()) }
        }
        Ok(answer) => failed(Some(answer.status.into()), format!("it answered {}", answer.status)),
    }
}

fn failed(status: Option<i64>, why: String) -> Went {
    Went::Failed { status, why }
}

/// `t=<seconds>,v1=<hex>`: an HMAC-SHA256 over `<seconds>.<body>`. A receiver
/// that also looks at the time refuses what somebody sends again later.
fn sign(key: &SecretString, now: Timestamp, body: &str) -> String {
    let seconds = now.millis() / 1000;
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose_secret().as_bytes());
    let tag = hmac::sign(&key, format!("{seconds}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

/// The end of a parcel's id names its webhook.
fn webhook_of(id: &str) -> Option<WebhookId> {
    WebhookId::parse(id.rsplit(':').next()?).ok()
}

async fn find(runtime: &Arc<Runtime>, parcel: &Parcel) -> Result<Option<Webhook>, StoreError> {
    let Some(id) = webhook_of(&parcel.id) else { return Ok(None) };
    let tenant = parcel.tenant.clone();
    let found = runtime.store.read(move |tx| Box::pin(async move { webhooks::get(tx, &tenant, &id).await }));
    found.await
}

/// Keeps the state of the address that people see.
pub(super) async fn note(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    kind: &str,
    parcel: &str,
    went: &Went,
    spent: bool,
) -> Result<(), StoreError> {
    let (true, Some(id)) = (kind == PARCEL, webhook_of(parcel)) else { return Ok(()) };
    let attempt = match went {
        Went::Delivered { status } => Attempt { status: *status, delivered: true, given_up: false },
        Went::Failed { status, .. } => Attempt { status: *status, delivered: false, given_up: spent },
        Went::Dropped { why: Some(_) } => Attempt { status: Some(410), delivered: false, given_up: true },
        Went::Dropped { why: None } => return Ok(()),
    };
    webhooks::note(tx, tenant, &id, attempt).await
}
