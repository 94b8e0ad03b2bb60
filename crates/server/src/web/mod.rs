//! The web app: its files out of the binary, with the rules that a browser
//! must keep for them. It asks for no key: the page gets one at
//! `POST /api/session`, and everything it shows comes through the API.

mod files;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use toolyard_protocol::Hash;

/// The page runs its own code only, and talks to this gateway and to the MCP
/// servers that the operator names.
fn policy(origins: &[String]) -> HeaderValue {
    let also: String = origins.iter().map(|origin| format!(" {origin}")).collect();
    let text = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         font-src 'self'; connect-src 'self'{also}; frame-src 'self'; worker-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // Origins were checked with the configuration; nothing at all is stricter than a gap.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The web app, under the rules of this gateway.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    policy: HeaderValue,
}

/// The room for plugin code: an origin of its own, and no way out of it.
const ROOM: &str = "sandbox.html";
const ROOM_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
    script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:; frame-ancestors 'self'";

const INDEX: &str = "index.html";
/// Files here have the hash of their content in their name.
const HASHED: &str = "assets/";
/// What belongs to programs answers programs, also where nothing is.
const NOT_PAGES: [&str; 7] = ["api", "a2a", "ag-ui", "copilotkit", "mcp", "v1", ".well-known"];

const UNBUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Toolyard</title>\
    <h1>The web app is not in this build</h1>\
    <p>The gateway works. To have its web app too, install Node.js 20 or newer and run <code>make run</code>, \
    or <code>scripts/build-app</code> and then <code>cargo build</code>.</p>\
    <p><a href=\"/api/openapi.json\">Every route of the API</a></p></html>";

impl Web {
    /// `origins`: where the page may look for MCP servers, beside this gateway.
    pub(crate) fn new(origins: &[String]) -> Self {
        Self { policy: policy(origins) }
    }

    /// The answer to a path that is no route; none if it is no page either.
    pub(crate) fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        if *method != Method::GET && *method != Method::HEAD {
            return None;
        }
        let path = path.strip_prefix('/')?;
        let first = path.split('/').next().unwrap_or_default();
        if NOT_PAGES.contains(&first) {
            return None;
        }
        let found = if path.is_empty() { None } else { files::find(path).map(|bytes| (path, bytes)) };
        // Every view has an address, and the page knows which view it means.
        let found = found
            .or_else(|| wants_page(path, headers).then(|| files::find(INDEX)).flatten().map(|b| (INDEX, b)));
        match found {
            Some((name, bytes)) => Some(self.file(name, bytes, headers)),
            None if wants_page(path, headers) => Some(self.unbuilt()),
            None => None,
        }
    }

    fn file(&self, name: &str, bytes: &'static [u8], headers: &HeaderMap) -> Response<Body> {
        let tag = format!("\"{}\"", Hash::of(bytes).as_str().get(..32).unwrap_or_default());
        let cache = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
        let same = headers.get(IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == tag.as_bytes());
        let gzip =
            headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("gzip"));
        let short = if gzip { files::find(&format!("{name}.gz")) } else { None };
        let (status, body) =
            if same { (StatusCode::NOT_MODIFIED, &[][..]) } else { (StatusCode::OK, short.unwrap_or(bytes)) };
        let policy = if name == ROOM { HeaderValue::from_static(ROOM_POLICY) } else { self.policy.clone() };
        let mut response = with_rules(status, Body::from(body), policy);
        let head = response.headers_mut();
        head.insert(CONTENT_TYPE, HeaderValue::from_static(media(name)));
        head.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        head.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            head.insert(ETAG, tag);
        }
        if !same {
            head.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            if short.is_some() {
                head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        if name == ROOM {
            // The page itself shows it.
            head.remove(X_FRAME_OPTIONS);
        }
        response
    }

    fn unbuilt(&self) -> Response<Body> {
        let mut response = with_rules(StatusCode::OK, Body::from(UNBUILT), self.policy.clone());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        response
    }
}

/// A person's browser asks for a page, not for a file that is missing.
fn wants_page(path: &str, headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("text/html"));
    path.is_empty() || (accepts && !path.starts_with(HASHED))
}

fn with_rules(status: StatusCode, body: Body, policy: HeaderValue) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let head = response.headers_mut();
    head.insert(CONTENT_SECURITY_POLICY, policy);
    let mut set = |name: HeaderName, value: &'static str| head.insert(name, HeaderValue::from_static(value));
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    set(REFERRER_POLICY, "no-referrer");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    );
    response
}

fn media(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "webmanifest" => "application/json",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
