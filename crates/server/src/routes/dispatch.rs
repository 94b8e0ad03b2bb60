//! From a request to its handler: key, rate, membership, body. The same way
//! for every route of the table.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::RequestPartsExt;
use axum::extract::{Query, RawPathParams, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use toolyard_protocol::Event;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::{ErrorCode, KeyId, KeyKind, Principal, RunId, SpaceId, TenantId, Viewer};
use toolyard_store::{StoreError, log, runs, spaces};

use super::audit;
use super::call::{Call, Sight};
use super::route::{Access, BodyKind, Handler, Route};
use crate::app::App;
use crate::auth::Wanted;
use crate::config::Limits;
use crate::http::listen::Cut;
use crate::http::{Refusal, body};

/// The header of a request that is to happen once.
const IDEMPOTENCY: &str = "idempotency-key";

/// Answers a request by its line of the table.
pub(super) async fn dispatch(
    route: &Route,
    name: &'static str,
    app: Arc<App>,
    request: Request,
) -> Result<Response, Refusal> {
    let handler = match &route.handler {
        Handler::Open(handler) => {
            if route.access == Access::Local {
                check_local(&app, request.headers()).await?;
            }
            return handler(app).await;
        }
        Handler::Visited(handler) => return handler(app, read_query(request.uri())?).await,
        Handler::Socket(open) => return open(app, request.into_parts().0).await,
        Handler::Knocked(handler) => {
            let (parts, payload) = request.into_parts();
            let pause = Duration::from_secs(app.config.limits.body_seconds);
            let limit = most(BodyKind::None, &app.config.limits);
            let body = body::read(&parts.headers, payload, limit, pause).await?;
            return handler(app, parts.headers, body).await;
        }
        Handler::Keyed(handler) => handler,
    };
    let (mut parts, payload) = request.into_parts();
    let params = path_params(&mut parts).await?;
    let query = read_query(&parts.uri)?;
    let (principal, signed) = caller(route, &app, &parts.headers, &params, &query).await?;
    app.rates.take(&principal)?;
    // An answer that is stored under a key may outlive the place that it is about.
    let finds = route.finds && principal.kind == KeyKind::Secret && !parts.headers.contains_key(IDEMPOTENCY);
    let sight = match route.access {
        Access::Member if finds => Sight::Backend(Viewer::secret()),
        Access::Member => Box::pin(look_and_note(route, &app, &principal, &params)).await?,
        Access::Open | Access::Local | Access::Secret | Access::Either | Access::Signed | Access::Card => {
            Sight::Nothing
        }
    };
    let again = finds.then(|| (app.clone(), principal.clone(), params.clone()));
    let answer = async {
        let limits = &app.config.limits;
        let pause = Duration::from_secs(limits.body_seconds);
        let body = body::read(&parts.headers, payload, most(route.body, limits), pause).await?;
        let cut = parts.extensions.get::<Cut>().cloned();
        let headers = parts.headers;
        handler(Call { app, principal, sight, params, query, headers, body, route: name, signed, cut }).await
    }
    .await;
    // Whatever else is wrong with a request, that its place is not there comes first.
    let wrong = answer.as_ref().is_err_and(|refused| !refused.status().is_server_error());
    if let Some((app, principal, params)) = again.filter(|_| wrong) {
        Box::pin(look_and_note(route, &app, &principal, &params)).await?;
    }
    answer
}

/// As [`look`]; the audit has who brought a result for what is not theirs.
async fn look_and_note(
    route: &Route,
    app: &App,
    principal: &Principal,
    params: &HashMap<String, String>,
) -> Result<Sight, Refusal> {
    let looked = look(app, principal, params).await;
    if let Err(refused) = &looked
        && route.body == BodyKind::Results
        && audit::is_foreign(refused)
    {
        note(app, principal, params).await?;
    }
    looked
}

/// What is open for this machine needs a secret key of the operator's tenant
/// when others reach the gateway: it tells of all tenants.
async fn check_local(app: &App, headers: &HeaderMap) -> Result<(), Refusal> {
    if app.sites.is_local() {
        return Ok(());
    }
    let principal = app.auth.principal(&app.store, headers, Wanted::Secret).await?;
    app.rates.take(&principal)?;
    if principal.tenant != TenantId::default_tenant() {
        return Err(Refusal::forbidden("Only the operator's tenant may read this"));
    }
    Ok(())
}

fn most(kind: BodyKind, limits: &Limits) -> usize {
    match kind {
        // What a route does not read may still be sent, as `{}` with a DELETE.
        BodyKind::None => 4096.min(limits.body_bytes),
        BodyKind::Json => limits.body_bytes,
        BodyKind::Conversation => limits.conversation_body_bytes,
        BodyKind::Results => limits.result_body_bytes,
        BodyKind::File => limits.file_bytes,
    }
}

pub(super) fn read_query(uri: &axum::http::Uri) -> Result<HashMap<String, String>, Refusal> {
    let read = Query::<HashMap<String, String>>::try_from_uri(uri);
    Ok(read.map_err(|_| Refusal::bad_request("The query cannot be read"))?.0)
}

async fn path_params(parts: &mut Parts) -> Result<HashMap<String, String>, Refusal> {
    let raw: RawPathParams =
        parts.extract().await.map_err(|_| Refusal::bad_request("The path cannot be read"))?;
    Ok(raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn caller(
    route: &Route,
    app: &App,
    headers: &HeaderMap,
    params: &HashMap<String, String>,
    query: &HashMap<String, String>,
) -> Result<(Principal, bool), Refusal> {
    if route.access == Access::Signed && query.contains_key("signature") {
        return signed(app, params, query).await.map(|principal| (principal, true));
    }
    if route.access == Access::Card && is_card(route, params) && !has_key(headers) {
        let key = KeyId::parse("key_agent_card").map_err(|_| Refusal::not_found("Agent"))?;
        let tenant = TenantId::default_tenant();
        return Ok((Principal { tenant, key, kind: KeyKind::Public, entity: None }, false));
    }
    let wanted = match route.access {
        Access::Local | Access::Secret => Wanted::Secret,
        Access::Open | Access::Either | Access::Member | Access::Signed | Access::Card => Wanted::Either,
    };
    Ok((app.auth.principal(&app.store, headers, wanted).await?, false))
}

/// Is an agent card asked for?
fn is_card(route: &Route, params: &HashMap<String, String>) -> bool {
    let open = |path: &str| path.ends_with(".well-known/agent-card.json");
    route.method == axum::http::Method::GET
        && (route.path.starts_with("/.well-known/") || params.get("path").is_some_and(|path| open(path)))
}

fn has_key(headers: &HeaderMap) -> bool {
    ["x-secret-key", "x-public-key", "authorization"].iter().any(|name| headers.contains_key(*name))
}

async fn signed(
    app: &App,
    params: &HashMap<String, String>,
    query: &HashMap<String, String>,
) -> Result<Principal, Refusal> {
    let refused = || Refusal::new(ErrorCode::Unauthorized, "This address is not valid, or no longer");
    let text = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let tenant = TenantId::parse(text("tenant")).map_err(|_| refused())?;
    let until: i64 = text("expires").parse().map_err(|_| refused())?;
    let file = params.get("file").map(String::as_str).unwrap_or_default();
    let now = app.store.read::<_, StoreError, _>(move |tx| Box::pin(async move { tx.now().await })).await?;
    if !app.signer.is_good(&tenant, file, until, text("signature"), now) {
        return Err(refused());
    }
    let key = KeyId::parse("key_signed_address").map_err(|_| refused())?;
    Ok(Principal { tenant, key, kind: KeyKind::Public, entity: None })
}

/// Finds what the path names, within the caller's tenant, and what the caller
/// is there. Another tenant's is not found; one's own without a seat is refused.
async fn look(app: &App, principal: &Principal, params: &HashMap<String, String>) -> Result<Sight, Refusal> {
    if let Some(text) = params.get("space") {
        let missing = || Refusal::not_found("SmartSpace");
        let id = SpaceId::parse(text).map_err(|_| missing())?;
        let (tenant, asked) = (principal.tenant.clone(), id.clone());
        let found: Option<spaces::Space> = app
            .store
            .read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { spaces::get(tx, &tenant, &asked).await })
            })
            .await?;
        let space = found.ok_or_else(missing)?;
        let viewer = viewer(app, principal, Some(&id)).await?;
        let viewer = viewer.ok_or_else(|| Refusal::forbidden("Entity is not a member of this SmartSpace"))?;
        return Ok(Sight::Space(Box::new(space), viewer));
    }
    let missing = || Refusal::not_found("Run");
    let text = params.get("run").map(String::as_str).unwrap_or_default();
    let id = RunId::parse(text).map_err(|_| missing())?;
    let tenant = principal.tenant.clone();
    let found: Option<runs::RunRow> = app
        .store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &id).await }))
        .await?;
    let run = found.ok_or_else(missing)?;
    let viewer = run_viewer(app, principal, &run).await?;
    let viewer = viewer.ok_or_else(|| Refusal::forbidden("Not a member of this run's SmartSpace"))?;
    Ok(Sight::Run(Box::new(run), viewer))
}

/// A result for a run or a space that is not the caller's.
async fn note(app: &App, principal: &Principal, params: &HashMap<String, String>) -> Result<(), Refusal> {
    let run = params.get("run").and_then(|text| RunId::parse(text).ok());
    let space = params.get("space").and_then(|text| SpaceId::parse(text).ok());
    let target = run.as_ref().map(RunId::as_str).or(space.as_ref().map(SpaceId::as_str));
    match target {
        Some(target) => audit::note_refusal(app, principal, "result.refused", target).await,
        // What is no id is nobody's.
        None => Ok(()),
    }
}

/// The caller as somebody who looks at a space; none if it has no seat there.
pub(crate) async fn viewer(
    app: &App,
    principal: &Principal,
    space: Option<&SpaceId>,
) -> Result<Option<Viewer>, Refusal> {
    let (kind, entity) = match (principal.kind, &principal.entity) {
        (KeyKind::Secret, _) => return Ok(Some(Viewer::secret())),
        (KeyKind::Public, None) => return Ok(None),
        (KeyKind::Public, Some(entity)) => (KeyKind::Public, entity.clone()),
    };
    let Some(space) = space.cloned() else { return Ok(None) };
    let (tenant, asked) = (principal.tenant.clone(), entity.clone());
    let role = app
        .store
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { spaces::role(tx, &tenant, &space, &asked).await })
        })
        .await?;
    Ok(role.map(|role| Viewer { kind, entity: Some(entity), role: Some(role) }))
}

/// As [`viewer`], of a run: one without a space is for who triggered it.
pub(crate) async fn run_viewer(
    app: &App,
    principal: &Principal,
    run: &runs::RunRow,
) -> Result<Option<Viewer>, Refusal> {
    // A child's words are the output of its parent's tool: they are seen as that is.
    if run.parent.is_some() && principal.kind == KeyKind::Public && !is_open(app, run).await? {
        return Ok(None);
    }
    if run.space.is_some() || principal.kind == KeyKind::Secret {
        return viewer(app, principal, run.space.as_ref()).await;
    }
    let triggered = principal.entity.is_some() && principal.entity == run.triggered_by;
    Ok(triggered.then(|| Viewer { kind: KeyKind::Public, entity: principal.entity.clone(), role: None }))
}

/// Whether users may look into a child run.
async fn is_open(app: &App, run: &runs::RunRow) -> Result<bool, Refusal> {
    let (tenant, id) = (run.tenant.clone(), run.id.clone());
    let first = app
        .store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { log::event(tx, &tenant, &id, 1).await }));
    let Some(Event::RunCreated(created)) = first.await? else { return Ok(false) };
    Ok(created.errand.shown().is_some_and(|errand| errand.visibility == Visibility::Public))
}
