//! The router, made from the table. A route outside the table cannot exist.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use futures::FutureExt;
use toolyard_protocol::ErrorCode;
use tracing::Instrument;

use super::dispatch::dispatch;
use super::openai;
use super::route::Route;
use super::table::table;
use crate::app::App;
use crate::http::{Refusal, meter, version};
use crate::web::Web;

pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in table() {
        let route = Arc::new(route);
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { continue };
        let name: &'static str = Box::leak(format!("{} {}", route.method, route.path).into_boxed_str());
        let (path, app) = (route.path, app.clone());
        let handler = move |request: Request| answer(route.clone(), name, app.clone(), request);
        router = router.route(path, on(filter, handler));
    }
    let (sites, web) = (app.sites.clone(), Web::new(&app.config.web_app_origins()));
    router
        .fallback(move |request: Request| async move {
            let page = web.answer(request.method(), request.uri().path(), request.headers());
            page.unwrap_or_else(|| Refusal::not_found("Route").into_response())
        })
        .method_not_allowed_fallback(|| async {
            Refusal::new(ErrorCode::MethodNotAllowed, "This route does not know this method").into_response()
        })
        .layer(app.sites.cors())
        .layer(axum::middleware::from_fn(move |request: Request, next: axum::middleware::Next| {
            let checked = sites.check(&request);
            let warning = version::warning(request.headers());
            async move {
                let mut response = match checked {
                    Ok(()) => next.run(request).await,
                    Err(refused) => refused.into_response(),
                };
                version::stamp(response.headers_mut(), warning.as_deref());
                response
            }
        }))
        // Without it every request builds its route and the layers around it anew.
        .with_state(())
}

/// One request, from its arrival to the head of its answer.
async fn answer(route: Arc<Route>, name: &'static str, app: Arc<App>, request: Request) -> Response {
    let started = Instant::now();
    let id = uuid::Uuid::now_v7().simple().to_string();
    let method = route.method.clone();
    let (path, plain) = (route.path, route.plain);
    let span = tracing::info_span!("request", id, route = name);
    // On the heap at once: what lies around it is moved several times.
    let work = Box::pin(async move { dispatch(&route, name, app, request).await });
    // A panic in one request is that request's trouble only.
    let done = AssertUnwindSafe(work.instrument(span.clone())).catch_unwind().await;
    let _entered = span.enter();
    let mut response = match done {
        Ok(Ok(response)) => response,
        Ok(Err(refused)) => {
            // The message may repeat what was sent: it is not logged.
            tracing::debug!(code = refused.error.code.as_str(), "refused");
            match plain {
                true => refused.into_plain(),
                // Also what the edge refuses, such as a wrong key.
                false if path.starts_with("/v1/") => openai::refused(refused),
                false => refused.into_response(),
            }
        }
        Err(_) => {
            tracing::error!("a request panicked");
            Refusal::new(ErrorCode::Internal, "Something went wrong inside the gateway.").into_response()
        }
    };
    let took = started.elapsed();
    let status = response.status().as_u16();
    meter::request(method.as_str(), path, status, took.as_secs_f64());
    tracing::debug!(status, ms = took.as_millis(), "answered");
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
    headers
        .entry(HeaderName::from_static("x-content-type-options"))
        .or_insert(HeaderValue::from_static("nosniff"));
    response
}
