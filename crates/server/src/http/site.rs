//! Which site talks to us: Host and Origin when bound to loopback (row X11),
//! and the answers to browsers' questions about origins (CORS).
//!
//! A page on the internet can reach a local gateway by a name that it points
//! to 127.0.0.1. Its requests carry that name as Host, or its Origin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use toolyard_protocol::ErrorCode;
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::origin::{Pattern, split_port};
use super::refusal::Refusal;
use super::version;
use crate::sse::RUN;

/// Who may call from a browser.
#[derive(Debug, Clone)]
pub(crate) struct Sites {
    allowed: Arc<[Pattern]>,
    /// The address, if it is one that only this machine reaches.
    loopback: Option<SocketAddr>,
}

impl Sites {
    pub(crate) fn new(origins: &[String], bound: SocketAddr) -> Self {
        Self {
            allowed: origins.iter().filter_map(|o| Pattern::parse(o)).collect(),
            loopback: bound.ip().is_loopback().then_some(bound),
        }
    }

    /// Does only this machine reach the gateway?
    pub(crate) fn is_local(&self) -> bool {
        self.loopback.is_some()
    }

    fn allows(&self, origin: &str) -> bool {
        self.allowed.iter().any(|pattern| pattern.allows(origin))
    }

    /// Refuses requests that a foreign page sent to a local gateway.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Refusal> {
        let Some(bound) = self.loopback else { return Ok(()) };
        let refused = |what: &str| {
            Refusal::new(ErrorCode::OriginRefused, format!("{what} is not allowed on a local gateway"))
        };
        let host = one(request.headers(), header::HOST).map_err(|()| refused("More than one Host"))?;
        // HTTP/2 and absolute-form requests name the host in the URI.
        let host = host.or_else(|| request.uri().authority().map(|a| a.as_str()));
        let Some(host) = host else { return Err(refused("A request without Host")) };
        if !is_local(host, bound) {
            return Err(refused("This Host"));
        }
        match one(request.headers(), header::ORIGIN) {
            Err(()) => Err(refused("More than one Origin")),
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.allows(origin) || origin == format!("http://{host}") => Ok(()),
            Ok(Some(_)) => Err(refused("This Origin")),
        }
    }

    /// Refuses sockets of pages from elsewhere: a browser asks nobody before
    /// it opens one.
    pub(crate) fn check_page(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let refused = || Refusal::new(ErrorCode::OriginRefused, "This Origin is not allowed");
        let Some(origin) = one(headers, header::ORIGIN).map_err(|()| refused())? else { return Ok(()) };
        let host = one(headers, header::HOST).map_err(|()| refused())?.unwrap_or_default();
        let own = [format!("http://{host}"), format!("https://{host}")];
        if self.allows(origin) || own.iter().any(|own| own == origin) { Ok(()) } else { Err(refused()) }
    }

    /// Was this sent by a page that the gateway itself served? Pages of other
    /// local programs are not, although they may call with a key.
    pub(crate) fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let (Ok(Some(host)), Ok(Some(origin))) = (one(headers, header::HOST), one(headers, header::ORIGIN))
        else {
            return false;
        };
        let from = one(headers, HeaderName::from_static("sec-fetch-site"));
        origin == format!("http://{host}") && matches!(from, Ok(None | Some("same-origin")))
    }

    pub(crate) fn cors(&self) -> CorsLayer {
        let sites = self.clone();
        let allow = AllowOrigin::predicate(move |origin: &HeaderValue, _| {
            origin.to_str().is_ok_and(|origin| sites.allows(origin))
        });
        CorsLayer::new()
            .allow_origin(allow)
            .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
            .allow_headers([
                header::AUTHORIZATION,
                header::CONTENT_TYPE,
                HeaderName::from_static("x-public-key"),
                HeaderName::from_static("x-secret-key"),
                HeaderName::from_static("x-filename"),
                HeaderName::from_static("x-mcp-mode"),
                HeaderName::from_static("mcp-session-id"),
                HeaderName::from_static("mcp-protocol-version"),
                HeaderName::from_static("mcp-method"),
                HeaderName::from_static("mcp-name"),
                HeaderName::from_static("idempotency-key"),
                HeaderName::from_static("last-event-id"),
                version::SDK,
            ])
            .expose_headers([
                header::RETRY_AFTER,
                HeaderName::from_static("x-request-id"),
                HeaderName::from_static("mcp-session-id"),
                version::VERSION,
                version::WARNING,
                RUN,
            ])
            .max_age(Duration::from_secs(600))
    }
}

/// The one value of a header; an error if there are several or it is no text.
fn one(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(());
    }
    first.map(|v| v.to_str().map_err(|_| ())).transpose()
}

/// A name of this machine, with any port: forwarded ports differ from ours.
fn is_local(host: &str, bound: SocketAddr) -> bool {
    let Some((name, port)) = split_port(host) else { return false };
    if port.is_some_and(|p| p.parse::<u16>().is_err()) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let ip = name.trim_start_matches('[').trim_end_matches(']');
    matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]") || ip == bound.ip().to_string()
}
