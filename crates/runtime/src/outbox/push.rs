//! A parcel for an address of one task: the task as it stood, signed.
//!
//! What is sent is what the one who asked for it may see. The token and the
//! credentials that it gave go along, so that the receiver knows who asked; the
//! signature says that it comes from here, now, and about this task.

use std::sync::Arc;

use bytes::Bytes;
use secrecy::ExposeSecret;
use serde_json::Value;
use toolyard_dialects::a2a::{Item, Taste, Version, write};
use toolyard_egress::{Header, Letter, Patience, Verb};
use toolyard_protocol::{EntityId, RunId, Timestamp, Viewer};
use toolyard_store::outbox::Parcel;
use toolyard_store::push_configs::{self, PushConfig};
use toolyard_store::{StoreError, runs, spaces};
use toolyard_tools::sealer::Purpose;

use super::{ATTEMPT, Delivery, Went};
use crate::runtime::Runtime;
use crate::task::TaskReader;

/// Nobody reads more of an answer.
const ANSWER_BYTES: u64 = 16 << 10;

/// The header that carries the signature.
pub const NOTICE_HEADER: &str = "x-toolyard-notice";

pub(super) async fn deliver(
    runtime: &Arc<Runtime>,
    delivery: &Delivery,
    parcel: &Parcel,
    now: Timestamp,
) -> Went {
    let failed = |why: String| Went::Failed { status: None, why };
    let (config, body) = match words(runtime, delivery, parcel).await {
        Ok(Some(found)) => found,
        // The address or the task is gone: nobody waits for this.
        Ok(None) => return Went::Dropped { why: None },
        Err(e) => return failed(e.to_string()),
    };
    let name = format!("{}/{}", config.run, config.id);
    let opened = delivery.sealer.open(Purpose::Push, &parcel.tenant, &name, &config.sealed);
    let given: Value = match opened {
        Ok(text) => serde_json::from_str(text.expose_secret()).unwrap_or_default(),
        Err(why) => return failed(format!("its credentials stay closed: {why}")),
    };
    let target = match delivery.door.target(&config.url) {
        Ok(target) => target,
        Err(e) => return failed(e.to_string()),
    };
    let body = body.to_string();
    let notice = delivery.sealer.signer().notice(&parcel.id, config.run.as_str(), body.as_bytes(), now);
    let mut headers = vec![
        Header::plain("content-type", "application/json"),
        Header::plain("a2a-version", config.version.clone()),
        Header::plain(NOTICE_HEADER, notice),
    ];
    if let Some(token) = given["token"].as_str() {
        headers.push(Header::secret("x-a2a-notification-token", token.into()));
    }
    if let (Some(scheme), Some(credentials)) = (given["scheme"].as_str(), given["credentials"].as_str()) {
        headers.push(Header::secret("authorization", format!("{scheme} {credentials}").into()));
    }
    let letter = Letter {
        verb: Verb::Post,
        target: &target,
        headers: &headers,
        accept: "*/*",
        body: Some(Bytes::from(body)),
        patience: Patience { head: ATTEMPT, idle: ATTEMPT, bytes: ANSWER_BYTES },
    };
    match delivery.door.send(letter).await {
        Err(e) => failed(e.to_string()),
        Ok(answer) if answer.is_success() => Went::Delivered { status: Some(answer.status.into()) },
        Ok(answer) if answer.status == 410 => {
            Went::Dropped { why: Some("it answered 410: gone for good".to_owned()) }
        }
        Ok(answer) => {
            Went::Failed { status: Some(answer.status.into()), why: format!("it answered {}", answer.status) }
        }
    }
}

/// The address and what it is told.
async fn words(
    runtime: &Arc<Runtime>,
    delivery: &Delivery,
    parcel: &Parcel,
) -> Result<Option<(PushConfig, Value)>, StoreError> {
    let Some(run) = parcel.payload["run"].as_str().and_then(|id| RunId::parse(id).ok()) else {
        return Ok(None);
    };
    let Some((_, id)) = parcel.id.split_once(":push:") else { return Ok(None) };
    let (tenant, id, seq) = (parcel.tenant.clone(), id.to_owned(), parcel.payload["seq"].as_i64());
    let files = delivery.files.clone();
    let read = runtime.store.read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let Some(config) = push_configs::get(tx, &tenant, &run, &id).await? else { return Ok(None) };
            let Some(row) = runs::get(tx, &tenant, &run).await? else { return Ok(None) };
            let viewer = match config.owner.split_once(':') {
                Some(("public", entity)) => {
                    let Ok(entity) = EntityId::parse(entity) else { return Ok(None) };
                    let role = match &row.space {
                        Some(space) => spaces::role(tx, &tenant, space, &entity).await?,
                        None => None,
                    };
                    // Who has lost the seat is told nothing more.
                    let Some(role) = role else { return Ok(None) };
                    Viewer::public(entity, role)
                }
                _ => Viewer::secret(),
            };
            let reader = TaskReader { tenant, viewer, taste: Taste::default(), files, until: seq };
            let read = reader.read(tx, &row).await?;
            let task = read.task.task(read.history, None, true);
            Ok(Some((config, task)))
        })
    });
    let Some((config, task)) = read.await? else { return Ok(None) };
    let version = if config.version == "0.3" { Version::V03 } else { Version::V10 };
    Ok(Some((config, write::item(&Item::Task(task), version))))
}
