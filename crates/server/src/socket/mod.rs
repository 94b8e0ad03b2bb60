//! `/api/clients/connect`: a program that executes tools, on a WebSocket.
//!
//! The socket only carries: calls wait in the ledger, and the runtime decides
//! who is offered which. What is said here is also possible over HTTP, by the
//! same commands. A page in a browser cannot set headers, so the keys may come
//! with the first message; never in the address, which is logged by whoever
//! stands between.

mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::RequestPartsExt;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use toolyard_dialects::native::socket::SocketAuth;
use toolyard_protocol::{ApiError, ErrorCode, Principal};

use crate::app::App;
use crate::auth::Wanted;
use crate::http::Refusal;

/// Unsent bytes of one socket. What is larger than that waits in the ledger.
const WRITE_BUFFER: usize = 4 << 20;

/// Answers the request that opens a socket.
pub(crate) async fn connect(app: Arc<App>, mut parts: Parts) -> Result<Response, Refusal> {
    check_opening(&app, &parts)?;
    let asked = app.auth.principal(&app.store, &parts.headers, Wanted::Either).await;
    let upgrade = upgrade(&mut parts, app.config.limits.result_body_bytes).await;
    let principal = match asked {
        Ok(principal) => Some(principal),
        // Without any key in the headers the first message brings one.
        Err(_) if upgrade.is_ok() && !has_keys(&parts.headers) => None,
        Err(refused) => return Err(refused),
    };
    if let Some(principal) = &principal {
        app.rates.take(principal)?;
    }
    let upgrade = upgrade?;
    let headers = credentials(&parts.headers);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let tasks = app.tasks.clone();
        tasks.spawn("client socket", session::serve(app, socket, headers, principal));
    }))
}

/// Refuses pages that may not call, and everybody when the gateway stops.
pub(crate) fn check_opening(app: &App, parts: &Parts) -> Result<(), Refusal> {
    app.sites.check_page(&parts.headers)?;
    if app.shutdown.is_cancelled() {
        return Err(Refusal::new(ErrorCode::ShuttingDown, "The gateway is stopping"));
    }
    Ok(())
}

/// A socket with messages of at most so many bytes.
pub(crate) async fn upgrade(parts: &mut Parts, most: usize) -> Result<WebSocketUpgrade, Refusal> {
    let upgrade = parts.extract::<WebSocketUpgrade>().await.map_err(|_| {
        Refusal::bad_request("This address speaks WebSocket: send GET with Upgrade: websocket and version 13")
    })?;
    Ok(upgrade.max_message_size(most).max_frame_size(most).max_write_buffer_size(
        // A whole message must fit.
        WRITE_BUFFER.max(2 * most),
    ))
}

fn has_keys(headers: &HeaderMap) -> bool {
    CREDENTIALS.iter().any(|name| headers.contains_key(*name))
}

const CREDENTIALS: [&str; 3] = ["x-secret-key", "x-public-key", "authorization"];

/// The keys alone: they are looked at again while the socket is open.
pub(crate) fn credentials(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in CREDENTIALS {
        if let Some(value) = headers.get(name) {
            kept.insert(HeaderName::from_static(name), value.clone());
        }
    }
    kept
}

/// Keys that a message names as headers would.
pub(crate) fn named(given: &HashMap<String, String>) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let Some(known) = CREDENTIALS.iter().find(|known| name.eq_ignore_ascii_case(known)) else { continue };
        let value = HeaderValue::from_str(value);
        let value =
            value.map_err(|_| ApiError::new(ErrorCode::Unauthorized, format!("{known} is no key")))?;
        headers.insert(HeaderName::from_static(known), value);
    }
    Ok(headers)
}

/// Keys of the first message, as headers would bring them.
fn said(auth: &SocketAuth) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let bearer = auth.token.as_ref().map(|token| format!("Bearer {token}"));
    for (name, value) in [
        ("x-secret-key", auth.secret_key.as_ref()),
        ("x-public-key", auth.public_key.as_ref()),
        ("authorization", bearer.as_ref()),
    ] {
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).ok()?);
        }
    }
    Some(headers)
}

/// Who opened the socket, if its headers said so.
type Opened = Option<Principal>;

/// How long a program that reads nothing is waited for.
fn patience(app: &App) -> Duration {
    Duration::from_secs(app.config.limits.reader_seconds)
}

/// How often a program is pinged.
pub(crate) fn ping(app: &App) -> Duration {
    Duration::from_secs(app.config.limits.socket_ping_seconds)
}

/// How long a program may say nothing, not even to a ping.
pub(crate) fn silence(app: &App) -> Duration {
    ping(app).saturating_mul(5) / 2
}

/// Sends a message, unless the program does not read. False ends the socket.
pub(crate) async fn send(app: &App, socket: &mut WebSocket, message: Message) -> bool {
    matches!(tokio::time::timeout(patience(app), socket.send(message)).await, Ok(Ok(())))
}

/// Says goodbye.
pub(crate) async fn close(app: &App, socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    send(app, socket, Message::Close(Some(frame))).await;
}
