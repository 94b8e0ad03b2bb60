//! A2A: thin routes over the dialect. Which agent, which binding, which
//! command; then the runtime's commands and the dialect's words.
//!
//! Everything of an agent lies below `/a2a/{agent}`, of the default agent
//! below `/a2a` too. JSON-RPC is taken at every path there that is no path of
//! the HTTP+JSON binding, as clients differ in what they append.

mod cards;
mod place;
mod push;
mod reply;
mod scripted;
mod send;
mod tasks;

use axum::response::Response;
use serde_json::Value;
use toolyard_dialects::a2a::card::Face;
use toolyard_dialects::a2a::{
    Command, Fault, FaultKind, Refused, Request, Rest, VERSION_HEADER, Version, is_rest, rest_request,
    rpc_request,
};

use super::call::Call;
use super::route::{Access, BodyKind, Route};
use super::table::{delete, get, post};
use crate::http::{Refusal, depth};
use place::Place;
use reply::Asked;

/// The lines of the table.
pub(super) fn routes() -> Vec<Route> {
    let talk = "Talk to the default agent over A2A, by JSON-RPC";
    let any = "Talk to an agent over A2A, by JSON-RPC or HTTP+JSON";
    vec![
        get("/.well-known/agent-card.json", Access::Card, "The card of the default agent", root_card)
            .gives::<Value>(200),
        get("/.well-known/jwks.json", Access::Card, "The keys that sign cards and notifications", keys)
            .gives::<Value>(200),
        post("/a2a", Access::Card, talk, |call| answer(call, "POST"))
            .takes::<Value>(BodyKind::Conversation)
            .gives::<Value>(200),
        post("/a2a/", Access::Card, talk, |call| answer(call, "POST"))
            .takes::<Value>(BodyKind::Conversation)
            .gives::<Value>(200),
        post("/a2a/{*path}", Access::Card, any, |call| answer(call, "POST"))
            .takes::<Value>(BodyKind::Conversation)
            .gives::<Value>(200),
        get("/a2a/{*path}", Access::Card, "Read a task or a card over A2A", |call| answer(call, "GET"))
            .gives::<Value>(200),
        delete("/a2a/{*path}", Access::Card, "Remove an address of a task over A2A", |call| {
            answer(call, "DELETE")
        }),
    ]
}

async fn root_card(call: Call) -> Result<Response, Refusal> {
    let place = Place::of(&call, "")?;
    scripted::ensure(&call, &place).await?;
    cards::card(&call, &place, Face::Hybrid).await
}

async fn keys(call: Call) -> Result<Response, Refusal> {
    super::answer::json(200, &call.app.secrets.sealer().signer().jwks())
}

/// One request below `/a2a`.
async fn answer(call: Call, verb: &'static str) -> Result<Response, Refusal> {
    let path = call.params.get("path").cloned().unwrap_or_default();
    let place = Place::of(&call, &path)?;
    scripted::ensure(&call, &place).await?;
    if verb == "GET" && place.rest == ".well-known/agent-card.json" {
        let face = place.face;
        return cards::card(&call, &place, face).await;
    }
    let header = call.headers.get(VERSION_HEADER).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let said = header.or_else(|| {
        let query = call.query.iter().find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER));
        query.map(|(_, value)| value.clone())
    });
    let rest = is_rest(verb, &place.rest);
    if !rest && verb != "POST" {
        return Err(Refusal::not_found("Route"));
    }
    let request = match parse(&call, &place, verb, rest, said.as_deref()) {
        Ok(request) => request,
        Err(refused) => return Ok(reply::refused(&call, &refused)),
    };
    let asked = Asked::new(&call, &request);
    let streams = match &request.command {
        Command::Send(send) => send.stream,
        Command::Subscribe { .. } => true,
        _ => false,
    };
    let (binding, version) = (request.binding.clone(), request.version);
    match perform(call, place, request, &asked).await {
        Ok(response) => Ok(response),
        Err(fault) => {
            let refused = Refused { binding, version, fault };
            // Clients of 0.3 that asked for a stream read nothing else.
            let framed = streams && version == Version::V03 && asked.wants_stream;
            Ok(if framed { asked.refuse_framed(&refused) } else { asked.refuse(&refused) })
        }
    }
}

fn parse(call: &Call, place: &Place, verb: &str, rest: bool, said: Option<&str>) -> Result<Request, Refused> {
    let refuse = |kind, text: &str| Refused {
        binding: reply::binding(rest),
        version: Version::said(said).unwrap_or(Version::V10),
        fault: Fault::new(kind, text),
    };
    if !call.body.is_empty() {
        if !reply::is_json(&call.headers) {
            let text = "The body must be application/json";
            return Err(refuse(FaultKind::ContentType, text));
        }
        depth::check(&call.body).map_err(|e| refuse(FaultKind::NoRequest, &e.message))?;
    }
    if !rest {
        return rpc_request(&call.body, said);
    }
    rest_request(Rest {
        verb,
        path: &place.rest,
        prefixed: place.prefixed,
        query: &call.query,
        body: &call.body,
        said,
    })
}

async fn perform(call: Call, place: Place, request: Request, asked: &Asked) -> Result<Response, Fault> {
    match request.command {
        Command::Send(send) => send::send(call, place, *send, asked).await,
        Command::Resume { task, answers } => send::resume(call, place, task, answers, asked).await,
        Command::Get { task, history } => tasks::get(call, place, task, history, asked).await,
        Command::List(list) => tasks::list(call, place, list, asked).await,
        Command::Cancel { task } => tasks::cancel(call, place, task, asked).await,
        Command::Subscribe { task } => tasks::subscribe(call, place, task, asked).await,
        Command::SetPush { task, config } => push::set(call, place, task, config, asked).await,
        Command::GetPush { task, config } => push::get(call, place, task, config, asked).await,
        Command::ListPush { task } => push::list(call, place, task, asked).await,
        Command::DeletePush { task, config } => push::delete(call, place, task, config, asked).await,
        // No card says that there is one.
        Command::ExtendedCard => match asked.version {
            Version::V10 => Err(Fault::new(FaultKind::Unsupported, "There is no extended agent card")),
            Version::V03 => Err(Fault::new(FaultKind::NoExtendedCard, "There is no extended agent card")),
        },
    }
}
