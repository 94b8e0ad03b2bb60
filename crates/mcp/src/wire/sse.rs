//! An answer's body as server-sent events, each within a limit, with our
//! answers wrapped on the way.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use sse_stream::{Error as SseError, Sse, SseStream};
use toolyard_egress::{Body, EgressError};
use toolyard_protocol::limits;

use super::pending::{Pending, Spoilt, spoilt};

pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Why a body cannot be read on.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Egress(#[from] EgressError),
    #[error("an event is larger than {} bytes", limits::MCP_MESSAGE_BYTES)]
    TooLarge,
}

/// The body in pieces, cut off when one event grows too large.
struct Pieces {
    body: Body,
    /// Bytes since the last blank line.
    open: usize,
    failed: bool,
}

async fn next_piece(mut pieces: Pieces) -> Option<(Result<Bytes, Broken>, Pieces)> {
    if pieces.failed {
        return None;
    }
    let piece = match pieces.body.next().await {
        Ok(None) => return None,
        Ok(Some(piece)) => piece,
        Err(e) => {
            pieces.failed = true;
            return Some((Err(e.into()), pieces));
        }
    };
    pieces.open = match last_blank_line(&piece) {
        Some(at) => piece.len() - at,
        None => pieces.open + piece.len(),
    };
    if pieces.open > limits::MCP_MESSAGE_BYTES {
        pieces.failed = true;
        return Some((Err(Broken::TooLarge), pieces));
    }
    Some((Ok(piece), pieces))
}

fn last_blank_line(piece: &[u8]) -> Option<usize> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"];
    (0..piece.len()).rev().find(|at| ends.iter().any(|end| piece[*at..].starts_with(end)))
}

struct State {
    inner: Events,
    pending: Arc<Pending>,
    /// The request that this body answers, until it is answered.
    waiting: Option<String>,
    /// The server gave an event id: rmcp resumes a stream that is cut.
    resumable: bool,
    ahead: VecDeque<Result<Sse, SseError>>,
    ended: bool,
}

/// The events of a body. `request` is the id of the request it answers, if it
/// answers one: that request ends with this stream, whatever happens.
pub(crate) fn events(body: Body, pending: Arc<Pending>, request: Option<String>) -> Events {
    let pieces = unfold(Pieces { body, open: 0, failed: false }, next_piece).boxed();
    let inner = SseStream::from_bytes_stream(pieces).boxed();
    let state =
        State { inner, pending, waiting: request, resumable: false, ahead: VecDeque::new(), ended: false };
    unfold(state, next_event).boxed()
}

async fn next_event(mut state: State) -> Option<(Result<Sse, SseError>, State)> {
    if let Some(event) = state.ahead.pop_front() {
        return Some((event, state));
    }
    if state.ended {
        return None;
    }
    match state.inner.next().await {
        Some(Ok(event)) => {
            let event = wrapped(event, &mut state);
            Some((Ok(event), state))
        }
        Some(Err(e)) => {
            let too_large = matches!(&e, SseError::Body(cause) if cause.is::<Broken>() && cause.to_string().contains("larger"));
            let why = if too_large { Spoilt::TooLarge } else { Spoilt::Cut };
            if !too_large && state.resumable {
                return Some((Err(e), state));
            }
            state.ended = true;
            match state.waiting.take() {
                Some(id) => Some((Ok(Sse::default().data(spoilt(&id, why).to_string())), state)),
                None => Some((Err(e), state)),
            }
        }
        None => {
            state.ended = true;
            let id = state.waiting.take().filter(|_| !state.resumable)?;
            Some((Ok(Sse::default().data(spoilt(&id, Spoilt::Cut).to_string())), state))
        }
    }
}

fn wrapped(mut event: Sse, state: &mut State) -> Sse {
    state.resumable |= event.id.as_ref().is_some_and(|id| !id.is_empty());
    let Some(data) = event.data.as_deref().filter(|data| !data.trim().is_empty()) else {
        return event;
    };
    let Ok(value) = serde_json::from_str::<serde_json::Value>(data) else {
        // An answer that cannot be read must not leave its caller waiting.
        if let Some(id) = super::line::id_of(data.as_bytes()).filter(|id| state.waiting.as_ref() == Some(id))
        {
            state.waiting = None;
            event.data = Some(spoilt(&id, Spoilt::Unreadable).to_string());
        }
        return event;
    };
    if value.get("method").is_none() && answers(&value, state.waiting.as_deref()) {
        state.waiting = None;
    }
    event.data = Some(state.pending.wrap(value).to_string());
    event
}

fn answers(message: &serde_json::Value, request: Option<&str>) -> bool {
    let id = message.get("id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    request.is_some() && id.as_deref() == request
}
