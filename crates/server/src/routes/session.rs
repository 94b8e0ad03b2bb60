//! How the web app gets its key. A page of a local gateway in development just
//! asks; elsewhere it brings the code of the address that the gateway printed.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_protocol::{ErrorCode, Hash, KeyKind, TenantId, limits};
use toolyard_store::keys::{self, Key};
use toolyard_store::{StoreError, audit};

use super::answer;
use crate::app::App;
use crate::auth::new_key;
use crate::config::{AuthMode, Mode};
use crate::http::{Refusal, body};

/// Keys of pages, in lists of keys.
pub(super) const LABEL: &str = "web app";

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct NewSession {
    /// Of the address that the gateway printed. A local gateway in development needs none.
    code: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session {
    /// A secret key of the operator's tenant. It can be revoked like any other,
    /// and ends when 32 newer pages have come.
    key: String,
    /// Whom a chat talks to if it names nobody.
    default_agent: String,
    mode: Mode,
}

/// `POST /api/session`
pub(super) async fn create(app: Arc<App>, headers: HeaderMap, sent: Bytes) -> Result<Response, Refusal> {
    let asked: NewSession = if sent.is_empty() {
        NewSession::default()
    } else {
        body::check_type(&headers)?;
        body::parse(&sent)?
    };
    let open = app.config.mode == Mode::Development || app.config.auth == AuthMode::Off;
    let at_home = open && app.sites.is_local() && app.sites.is_own_page(&headers);
    if !at_home && !asked.code.as_deref().is_some_and(|code| app.start_code.take(code)) {
        return Err(Refusal::new(
            ErrorCode::Unauthorized,
            "Open the address that the gateway printed when it started, or give a secret key.",
        ));
    }
    let key = new_key(KeyKind::Secret).map_err(|why| Refusal::new(ErrorCode::Internal, why))?;
    let hash = Hash::of(key.as_bytes());
    let tenant = TenantId::default_tenant();
    app.store
        .write::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let made: Key = keys::insert(tx, &tenant, KeyKind::Secret, &hash, LABEL).await?;
                audit::write(tx, &tenant, LABEL, "key.create", made.id.as_str(), None).await?;
                // A page whose key is gone asks for another one.
                for old in keys::drop_oldest(tx, &tenant, LABEL, limits::PAGE_KEYS).await? {
                    audit::write(tx, &tenant, LABEL, "key.expire", old.as_str(), None).await?;
                }
                Ok(())
            })
        })
        .await?;
    let session = Session { key, default_agent: app.config.default_agent.clone(), mode: app.config.mode };
    answer::json(201, &session)
}
