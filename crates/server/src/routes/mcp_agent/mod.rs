//! `/mcp/{agent}`: an agent for MCP clients. The transport is
//! `toolyard_mcp::server`'s, the words are `dialects::mcp`'s; here requests
//! become commands of the runtime, for one caller.

mod calls;
mod desk;
mod library;
mod news;
mod runs;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request};
use axum::response::Response;

use super::call::Call;
use crate::http::{Refusal, depth};
use desk::AgentDesk;
pub(crate) use news::ToolNews;

pub(super) async fn post(call: Call) -> Result<Response, Refusal> {
    depth::check(&call.body)?;
    answer(call, Method::POST).await
}

pub(super) async fn get(call: Call) -> Result<Response, Refusal> {
    answer(call, Method::GET).await
}

pub(super) async fn delete(call: Call) -> Result<Response, Refusal> {
    answer(call, Method::DELETE).await
}

async fn answer(call: Call, method: Method) -> Result<Response, Refusal> {
    if !call.app.config.mcp_server.enabled {
        return Err(Refusal::not_found("Route"));
    }
    // On a local address the edge has looked at it already; elsewhere a page
    // from another site must not use what a browser holds for this one.
    call.app.sites.check_page(&call.headers)?;
    let desk = AgentDesk::open(&call).await?;
    let owner = desk.owner();
    let mut request = Request::new(call.body.clone());
    *request.method_mut() = method;
    *request.headers_mut() = call.headers.clone();
    let response = call.app.mcp_clients.answer(Arc::new(desk), &owner, request).await;
    Ok(response.map(Body::new))
}
