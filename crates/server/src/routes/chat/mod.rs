//! The conversation surface of `useChat` apps: `POST /api/chat`, its stream
//! for a page that comes back, and stop. Refusals are plain text, because such
//! apps show the body to people.

mod ask;
mod socket;
mod wire;

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use toolyard_dialects::ai_sdk::{ChatAnswer, ChatFrame, Options};
use toolyard_dialects::telling::Start;

use super::answer;
use super::call::Call;
use super::route::{Access, BodyKind, Route};
use super::table::{get, post};
use crate::http::Refusal;
use wire::Wire;

const WIRE: &[(&str, &str)] = &[
    ("ui", "The client's version of the AI SDK: 5 has no approvals, 4 reads the data stream."),
    ("metadata", "`on`: the message says its run and what it used."),
    ("finishReason", "`off`: for the first clients of version 5, which refuse it."),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        post("/api/chat", Access::Either, "Take a turn of a conversation, as useChat does", ask::ask)
            .takes::<wire::ChatRequest>(BodyKind::Conversation)
            .asks(WIRE)
            .media("text/event-stream")
            .plain(),
        get("/api/chat/{chat}/stream", Access::Either, "Follow the answer that is on its way", stream)
            .asks(WIRE)
            .media("text/event-stream")
            .plain(),
        post("/api/chat/{chat}/stop", Access::Either, "Stop the answer that is on its way", stop)
            .gives::<Stopped>(200)
            .plain(),
        Route::socket::<ChatFrame, ChatAnswer>(
            "/api/chat/connect",
            "Take turns and follow answers on a WebSocket, as WebSocketChatTransport does",
            |app, parts| Box::pin(socket::connect(app, parts)),
        )
        .asks(WIRE),
    ]
}

/// Whether there was something to stop.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stopped {
    stopped: bool,
}

fn thread(call: &Call) -> String {
    call.params.get("chat").cloned().unwrap_or_default()
}

/// `GET …/stream`: the whole turn again, then what is new. A run that waits is
/// told to where it waits, so that a page that was closed gets its call again.
async fn stream(call: Call) -> Result<Response, Refusal> {
    let wire = Wire::of(&call)?;
    let found = call.app.runtime.follow(call.principal.clone(), thread(&call)).await?;
    let Some(found) = found.filter(|found| !found.status.is_final()) else {
        return Ok(answer::nothing());
    };
    Ok(wire.tell(call, found.viewer, (found.space, found.run), Start::Turn(found.turn), Options::default()))
}

/// `POST …/stop`: closing the stream stops nothing, this does.
async fn stop(call: Call) -> Result<Response, Refusal> {
    let reason = Some("Stopped by the user".to_owned());
    let stopped = call.app.runtime.stop_thread(call.principal.clone(), thread(&call), reason).await?;
    answer::json(200, &Stopped { stopped })
}
