//! Submit, review, sign, publish.

use axum::response::Response;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_plugins::bundle::{Algorithm, Candidate, SigningKey};
use toolyard_protocol::manifest::PluginVersion;
use toolyard_protocol::{ApiError, CuratorId, ErrorCode, PluginId};
use toolyard_runtime::Purpose;
use toolyard_store::curators::{self, CuratorRow, KeyRow};
use toolyard_store::plugins::{self, VersionRow};
use toolyard_store::{StoreError, Tx};

use super::super::answer;
use super::super::call::{Call, Made};
use super::{desk, view};
use crate::http::{Refusal, body};
use crate::registry::{self, Desk, Ready, Signing};

/// What a person says of a version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review {
    decision: Verdict,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Approve,
    Reject,
}

/// What is signed, and by whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignPlugin {
    /// The id of a submitted plugin, or a whole document: who signs that has reviewed it.
    #[schemars(with = "Value")]
    plugin: Box<serde_json::value::RawValue>,
    /// Of a submitted plugin. Missing means the newest.
    #[serde(default)]
    version: Option<PluginVersion>,
    /// Missing means the one curator that the caller's key signs for.
    #[serde(default)]
    curator_id: Option<CuratorId>,
}

pub(super) async fn submit(call: Call) -> Result<Response, Refusal> {
    body::check_type(&call.headers)?;
    let desk = desk(&call);
    let candidate = registry::read(call.body.clone()).await?;
    let ready = ready(&call, &desk, candidate).await?;
    call.once(move |tx| {
        Box::pin(async move {
            let row = registry::submit(tx, &desk, &ready).await?;
            Ok(Made { status: 201, body: json!(view::version(row)) })
        })
    })
    .await
}

async fn ready(call: &Call, desk: &Desk, candidate: Candidate) -> Result<Ready, Refusal> {
    let (desk, id, version) = (desk.clone(), candidate.id().clone(), candidate.version().clone());
    let before = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { registry::newest_signed(tx, &desk, &id, &version).await })
        })
        .await?;
    Ready::new(candidate, before).await
}

fn named(call: &Call) -> Result<(PluginId, PluginVersion), Refusal> {
    let id = call.id("plugin", "Plugin", PluginId::parse)?;
    Ok((id, call.id("version", "Plugin", PluginVersion::parse)?))
}

async fn find(
    tx: &mut Tx<'_>,
    desk: &Desk,
    id: &PluginId,
    version: &PluginVersion,
) -> Result<VersionRow, Refusal> {
    let row = plugins::get_version(tx, &desk.tenant, id, version).await?;
    row.ok_or_else(|| Refusal::not_found("Plugin"))
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let ((id, version), desk) = (named(&call)?, desk(&call));
    let row = call
        .store()
        .read::<_, Refusal, _>(move |tx| Box::pin(async move { find(tx, &desk, &id, &version).await }))
        .await?;
    answer::json(200, &view::version(row))
}

pub(super) async fn review(call: Call) -> Result<Response, Refusal> {
    let ((id, version), desk) = (named(&call)?, desk(&call));
    let review: Result<Review, Refusal> = call.json();
    let row = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let row = find(tx, &desk, &id, &version).await?;
                let Review { decision, note } = review?;
                let note = answer::label("note", note)?.unwrap_or_default();
                registry::review(tx, &desk, row, decision == Verdict::Approve, note).await
            })
        })
        .await?;
    answer::json(200, &view::version(row))
}

pub(super) async fn publish(call: Call) -> Result<Response, Refusal> {
    let ((id, version), desk) = (named(&call)?, desk(&call));
    let row = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let row = find(tx, &desk, &id, &version).await?;
                registry::publish(tx, &desk, row).await
            })
        })
        .await?;
    answer::json(200, &view::version(row))
}

/// `POST /api/plugins/sign`: the audit, then the signature, by a key that the
/// gateway holds for the curator. Only the curator's own keys may ask.
pub(super) async fn sign(call: Call) -> Result<Response, Refusal> {
    let SignPlugin { plugin, version, curator_id } = call.json()?;
    let desk = desk(&call);
    let key = key_of(&call, curator_id).await?;
    // A whole document: to sign it is to submit and to approve it.
    let given = if plugin.get().starts_with('{') {
        let candidate = registry::read(plugin.get().to_owned()).await?;
        Some(ready(&call, &desk, candidate).await?)
    } else {
        None
    };
    let id = match &given {
        Some(ready) => ready.candidate.id().clone(),
        None => serde_json::from_str::<PluginId>(plugin.get())
            .map_err(|_| Refusal::bad_request("plugin: must be the id of a plugin, or a document"))?,
    };
    let version = given.as_ref().map(|ready| ready.candidate.version().clone()).or(version);
    let taken = desk.clone();
    let row = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(ready) = given else { return newest(tx, &taken, &id, version).await };
                let row = registry::submit(tx, &taken, &ready).await?;
                match row.state {
                    plugins::State::Submitted => registry::review(tx, &taken, row, true, String::new()).await,
                    _ => Ok(row),
                }
            })
        })
        .await?;
    let candidate = registry::read(row.document.clone()).await?;
    let ready = ready(&call, &desk, candidate).await?;
    let signing = Signing::new(row, ready, key).await?;
    let row = call
        .store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move { registry::put_signature(tx, &desk, &signing).await })
        })
        .await?;
    answer::json(200, &view::version(row))
}

async fn newest(
    tx: &mut Tx<'_>,
    desk: &Desk,
    id: &PluginId,
    version: Option<PluginVersion>,
) -> Result<VersionRow, Refusal> {
    match version {
        Some(version) => find(tx, desk, id, &version).await,
        None => {
            let newest = plugins::versions(tx, &desk.tenant, id).await?.into_iter().next();
            newest.ok_or_else(|| Refusal::not_found("Plugin"))
        }
    }
}

/// The key that the gateway holds for a curator, opened for one of its signers.
async fn key_of(call: &Call, asked: Option<CuratorId>) -> Result<SigningKey, Refusal> {
    let tenant = call.tenant().clone();
    let (rows, keys): (Vec<CuratorRow>, Vec<KeyRow>) = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(
                async move { Ok((curators::list(tx, &tenant).await?, curators::keys(tx, &tenant).await?)) },
            )
        })
        .await?;
    let caller = call.principal.key.as_str();
    let signs = |row: &&CuratorRow| {
        row.signers.as_array().is_some_and(|keys| keys.iter().any(|key| key.as_str() == Some(caller)))
    };
    let mut own = rows.iter().filter(signs).filter(|row| asked.as_ref().is_none_or(|id| row.id == *id));
    let curator = match (own.next(), own.next()) {
        (Some(curator), None) => curator,
        (Some(_), Some(_)) => {
            return Err(Refusal::bad_request("curatorId: this key signs for several curators"));
        }
        (None, _) => return Err(Refusal::forbidden("This key may not sign for a curator")),
    };
    let mut held = keys
        .iter()
        .filter(|key| key.curator == curator.id)
        .filter_map(|key| Some((key, key.sealed.as_ref()?)));
    let Some((key, sealed)) = held.next_back() else {
        let text = format!(
            "The gateway holds no key of the curator {}: sign with `toolyard plugin sign` and submit the result",
            curator.id
        );
        return Err(ApiError::new(ErrorCode::Conflict, text).into());
    };
    let sealer = call.app.secrets.sealer();
    let closed = |why: String| {
        tracing::error!(curator = %curator.id, %why, "a curator's key cannot be opened");
        Refusal::new(ErrorCode::Internal, "The curator's key cannot be opened")
    };
    let private: SecretString = sealer
        .open(Purpose::Curator, call.tenant(), key.id.as_str(), sealed)
        .map_err(|why| closed(why.to_string()))?;
    let algorithm = Algorithm::parse(&key.algorithm).ok_or_else(|| closed("unknown algorithm".to_owned()))?;
    SigningKey::from_private(curator.id.clone(), algorithm, private).map_err(|why| closed(why.to_string()))
}
