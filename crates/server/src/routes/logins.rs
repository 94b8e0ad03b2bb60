//! Users who log in at MCP servers. They come back to an address that asks for
//! no key: the state that they bring is one, and good once.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_protocol::agent::McpServer;
use toolyard_protocol::{ApiError, EntityId, KeyKind, TenantId, Timestamp};
use toolyard_runtime::{NoLogin, check_agent};
use toolyard_store::{StoreError, agents as stored, audit, entities};

use super::call::Call;
use super::{agents, answer, page};
use crate::app::App;
use crate::http::Refusal;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewLogin {
    /// The agent whose server it is, by id or name. Missing means the operator's.
    #[serde(default)]
    agent_id: Option<String>,
    /// Who logs in: only with a secret key.
    #[serde(default)]
    entity_id: Option<EntityId>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginBegun {
    /// Open it in the browser of the user.
    login_url: String,
    expires_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginView {
    server: String,
    entity_id: EntityId,
    logged_in: bool,
}

fn refused(why: NoLogin) -> Refusal {
    match why {
        NoLogin::Unknown => Refusal::not_found("Login"),
        NoLogin::Refused(text) => Refusal::bad_request(text),
    }
}

/// A user for themselves; a backend says for whom.
async fn whose(call: &Call, said: Option<EntityId>) -> Result<EntityId, Refusal> {
    match (call.principal.kind, &call.principal.entity) {
        (KeyKind::Public, Some(own)) if said.as_ref().is_none_or(|said| said == own) => Ok(own.clone()),
        (KeyKind::Public, _) => Err(Refusal::forbidden("A user logs in for themselves only")),
        (KeyKind::Secret, _) => {
            let said = said.ok_or_else(|| ApiError::missing("entityId"))?;
            let (tenant, asked) = (call.tenant().clone(), said.clone());
            let found = call.store().read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { entities::get(tx, &tenant, &asked).await })
            });
            found.await?.map(|_| said).ok_or_else(|| Refusal::not_found("Entity"))
        }
    }
}

/// The server of the path: an agent's, or the operator's.
async fn server(call: &Call, agent: Option<String>) -> Result<McpServer, Refusal> {
    let missing = || Refusal::not_found("MCP server");
    let name = call.params.get("server").cloned().unwrap_or_default();
    let Some(agent) = agent else {
        let mut known = call.app.mcp.operator.iter().filter(|settings| settings.tenants.has(call.tenant()));
        let known = known.any(|settings| settings.name.as_str() == name);
        return if known { Ok(McpServer::named(name)) } else { Err(missing()) };
    };
    let tenant = call.tenant().clone();
    let config = call
        .store()
        .read::<_, StoreError, _>(move |tx| {
            Box::pin(async move {
                let Some(agent) = agents::find(tx, &tenant, &agent).await? else { return Ok(None) };
                stored::version(tx, &tenant, &agent.hash).await
            })
        })
        .await?;
    let config = config.ok_or_else(|| Refusal::not_found("Agent"))?;
    let servers = check_agent(&config)?.config.mcp.map(|mcp| mcp.servers).unwrap_or_default();
    servers.into_iter().find(|server| server.name == name).ok_or_else(missing)
}

/// `POST /api/mcp/servers/{server}/login`
pub(super) async fn begin(call: Call) -> Result<Response, Refusal> {
    let NewLogin { agent_id, entity_id } =
        if call.body.is_empty() { NewLogin::default() } else { call.json()? };
    let server = server(&call, agent_id).await?;
    let entity = whose(&call, entity_id).await?;
    let begun = call.app.mcp.begin_login(call.tenant(), &entity, &server).await.map_err(refused)?;
    answer::json(200, &LoginBegun { login_url: begun.url, expires_at: begun.expires_at })
}

/// `GET /api/mcp/servers/{server}/login`
pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    let server = server(&call, call.query.get("agentId").cloned()).await?;
    let entity_id = whose(&call, page::typed(&call.query, "entityId", EntityId::parse)?).await?;
    let logged_in = call.app.mcp.is_logged_in(call.tenant(), &entity_id, &server).await.map_err(refused)?;
    answer::json(200, &LoginView { server: server.name, entity_id, logged_in })
}

/// `DELETE /api/mcp/servers/{server}/login`: forgets the user's tokens.
pub(super) async fn end(call: Call) -> Result<Response, Refusal> {
    let server = server(&call, call.query.get("agentId").cloned()).await?;
    let entity = whose(&call, page::typed(&call.query, "entityId", EntityId::parse)?).await?;
    call.app.mcp.log_out(call.tenant(), &entity, &server).await.map_err(refused)?;
    told(&call.app, call.tenant(), &call.actor(), "mcp.logout", &server.name).await?;
    Ok(answer::nothing())
}

async fn told(
    app: &App,
    tenant: &TenantId,
    actor: &str,
    what: &'static str,
    server: &str,
) -> Result<(), StoreError> {
    let (tenant, actor, server) = (tenant.clone(), actor.to_owned(), server.to_owned());
    app.store
        .write(move |tx| {
            Box::pin(async move { audit::write(tx, &tenant, &actor, what, &server, None).await })
        })
        .await
}

/// `GET /api/mcp/callback`: the user's browser comes back from the server that
/// knows them. The answer is a page for people.
pub(super) async fn callback(app: Arc<App>, query: HashMap<String, String>) -> Result<Response, Refusal> {
    let text = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let state = text("state");
    if state.is_empty() {
        return Ok(shown(
            400,
            "No login",
            "This address is where a login comes back to. There is none here.",
        ));
    }
    if query.contains_key("error") || text("code").is_empty() {
        // What the far side wrote is not repeated: anybody may write it.
        return Ok(match app.mcp.drop_login(state).await {
            Ok(()) => {
                shown(400, "Not logged in", "The login was refused or given up. You may begin a new one.")
            }
            Err(why) => shown(400, "Not logged in", &why.to_string()),
        });
    }
    let done = match app.mcp.finish_login(state, &came_back(&app, &query)).await {
        Ok(done) => done,
        Err(why) => {
            tracing::warn!(%why, "a login at an MCP server failed");
            let text = match why {
                NoLogin::Unknown => why.to_string(),
                NoLogin::Refused(_) => {
                    "The server did not accept the login. You may begin a new one.".to_owned()
                }
            };
            return Ok(shown(400, "Not logged in", &text));
        }
    };
    told(&app, &done.tenant, done.entity.as_str(), "mcp.login", &done.server).await?;
    if let Err(e) = app.runtime.logged_in(&done.tenant, &done.entity, &done.account).await {
        tracing::warn!(error = %e, "what waited for a login could not go on by itself");
    }
    let name = name_of(&app, &done.tenant, &done.entity).await?;
    let text = format!(
        "Agents that work for {name} may now use {}. If that is not you, log out there and tell whoever sent you here.",
        done.server
    );
    Ok(shown(200, "Logged in", &text))
}

/// The address that the user came back to, as the login began with it.
fn came_back(app: &App, query: &HashMap<String, String>) -> String {
    let here = format!("{}?", app.mcp_callback());
    let behind = here.len();
    let mut back = url::form_urlencoded::Serializer::for_suffix(here, behind);
    for name in ["code", "state", "iss"] {
        if let Some(value) = query.get(name) {
            back.append_pair(name, value);
        }
    }
    back.finish()
}

/// Whom a login serves, so that nobody lends theirs without seeing to whom.
async fn name_of(app: &App, tenant: &TenantId, entity: &EntityId) -> Result<String, Refusal> {
    let (tenant, asked) = (tenant.clone(), entity.clone());
    let found = app.store.read::<_, StoreError, _>(move |tx| {
        Box::pin(async move { entities::get(tx, &tenant, &asked).await })
    });
    let found = found.await?;
    let name = found.and_then(|entity| entity.display_name.or(entity.external_id));
    Ok(name.unwrap_or_else(|| entity.to_string()))
}

/// A page without code, and of nobody else.
fn shown(status: u16, title: &str, text: &str) -> Response {
    let (title, text) = (escaped(title), escaped(text));
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1><p>{text}</p><p>You can close this page.</p></html>"
    );
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = (status, page).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
        out
    })
}
