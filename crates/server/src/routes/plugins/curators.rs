//! Who may sign plugins, and with which keys. Private keys never leave.

use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_plugins::bundle::{Algorithm, PublicKey, SigningKey};
use toolyard_protocol::{CuratorId, ErrorCode, Hash, KeyId, KeyKind, Timestamp};
use toolyard_runtime::Purpose;
use toolyard_store::curators::{self, CuratorRow, KeyRow};
use toolyard_store::{StoreError, audit as journal};

use super::super::answer;
use super::super::call::Call;
use crate::http::Refusal;
use crate::registry::{self, TrustCurator};

/// Whom to trust, and for what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PutCurator {
    #[serde(default)]
    name: Option<String>,
    /// Plugins that it may sign: an id, the start of ids with `*` behind it, or `*`.
    plugins: Vec<String>,
    /// Keys of this gateway that may use the key that it holds for the
    /// curator. Missing means the caller's, for a new curator.
    #[serde(default)]
    signers: Option<Vec<KeyId>>,
}

/// A key to trust.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewKey {
    #[serde(default)]
    algorithm: Algorithm,
    /// SubjectPublicKeyInfo as base64. Missing means that the gateway makes a
    /// key and holds its private part.
    #[serde(default)]
    public_key: Option<String>,
    /// It signs nothing new from then on.
    #[serde(default)]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KeyView {
    /// SHA-256 of the public key.
    id: Hash,
    algorithm: String,
    public_key: String,
    /// The gateway holds the private part.
    held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CuratorView {
    id: CuratorId,
    name: String,
    plugins: Value,
    /// Backends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    signers: Option<Value>,
    keys: Vec<KeyView>,
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OneCurator {
    curator: CuratorView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CuratorList {
    curators: Vec<CuratorView>,
}

fn view(row: CuratorRow, keys: &[KeyRow], kind: KeyKind) -> CuratorView {
    let own = keys.iter().filter(|key| key.curator == row.id);
    let keys = own.map(|key| KeyView {
        id: key.id.clone(),
        algorithm: key.algorithm.clone(),
        public_key: key.public_key.clone(),
        held: key.sealed.is_some(),
        expires_at: key.expires_at,
        created_at: key.created_at,
    });
    CuratorView {
        keys: keys.collect(),
        id: row.id,
        name: row.name,
        plugins: row.plugins,
        signers: (kind == KeyKind::Secret).then_some(row.signers),
        created_at: row.created_at,
    }
}

fn named(call: &Call) -> Result<CuratorId, Refusal> {
    call.id("curator", "Curator", CuratorId::parse)
}

pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let (tenant, kind) = (call.tenant().clone(), call.principal.kind);
    let (rows, keys) = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(
                async move { Ok((curators::list(tx, &tenant).await?, curators::keys(tx, &tenant).await?)) },
            )
        })
        .await?;
    let curators = rows.into_iter().map(|row| view(row, &keys, kind)).collect();
    answer::json(200, &CuratorList { curators })
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let id = named(&call)?;
    shown(&call, 200, id).await
}

async fn shown(call: &Call, status: u16, id: CuratorId) -> Result<Response, Refusal> {
    let (tenant, kind) = (call.tenant().clone(), call.principal.kind);
    let (row, keys) = call
        .store()
        .read::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let row = curators::get(tx, &tenant, &id).await?;
                let row = row.ok_or_else(|| Refusal::not_found("Curator"))?;
                Ok((row, curators::keys(tx, &tenant).await?))
            })
        })
        .await?;
    answer::json(status, &OneCurator { curator: view(row, &keys, kind) })
}

/// `PUT /api/curators/{curator}`: what is trusted is said anew each time.
pub(super) async fn put(call: Call) -> Result<Response, Refusal> {
    let text = call.params.get("curator").map(String::as_str).unwrap_or_default();
    let id = CuratorId::parse(text).map_err(|e| Refusal::bad_request(e.to_string()))?;
    let PutCurator { name, plugins, signers } = call.json()?;
    let trust = TrustCurator {
        id: id.clone(),
        name: answer::label("name", name)?,
        plugins,
        signers: signers.map(|keys| json!(keys)),
        first_signer: call.principal.key.to_string(),
    };
    let desk = super::desk(&call);
    call.store()
        .write::<_, Refusal, _>(move |tx| Box::pin(async move { registry::trust(tx, &desk, trust).await }))
        .await?;
    shown(&call, 200, id).await
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    let (id, tenant, actor) = (named(&call)?, call.tenant().clone(), call.actor());
    let existed = call
        .store()
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let existed = curators::delete(tx, &tenant, &id).await?;
                if existed {
                    journal::write(tx, &tenant, &actor, "curator.delete", id.as_str(), None).await?;
                }
                Ok(existed)
            })
        })
        .await?;
    answer::gone(existed, "Curator")
}

pub(super) async fn add_key(call: Call) -> Result<Response, Refusal> {
    let id = named(&call)?;
    let (tenant, wanted) = (call.tenant().clone(), id.clone());
    let known = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { curators::get(tx, &tenant, &wanted).await })
        })
        .await?;
    if known.is_none() {
        return Err(Refusal::not_found("Curator"));
    }
    let NewKey { algorithm, public_key, expires_at } = call.json()?;
    let (public, sealed) = match public_key {
        Some(text) => {
            let key = PublicKey::parse(algorithm, &text);
            (key.map_err(|why| Refusal::bad_request(format!("publicKey: {why}")))?, None)
        }
        None => {
            let curator = id.clone();
            let broken = |_| Refusal::new(ErrorCode::Internal, "The key could not be made");
            let key = registry::aside(move || SigningKey::generate(curator, algorithm)).await?;
            let key = key.map_err(broken)?;
            let public = key.public().clone();
            let sealer = call.app.secrets.sealer();
            let sealed = sealer.seal(Purpose::Curator, call.tenant(), public.id().as_str(), key.private());
            (
                public,
                Some(sealed.map_err(|_| Refusal::new(ErrorCode::Internal, "The key could not be sealed"))?),
            )
        }
    };
    let (desk, curator) = (super::desk(&call), id.clone());
    call.store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let row = KeyRow {
                    id: public.id(),
                    curator,
                    algorithm: public.algorithm().as_str().to_owned(),
                    public_key: public.to_base64(),
                    sealed,
                    expires_at,
                    created_at: tx.now().await?,
                };
                registry::add_key(tx, &desk, &row).await
            })
        })
        .await?;
    shown(&call, 201, id).await
}
