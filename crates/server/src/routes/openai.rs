//! `/v1/chat/completions`, `/v1/responses` and `/v1/models`: agents for
//! programs that speak OpenAI's API.

use std::collections::HashSet;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};
use toolyard_dialects::history::Entry;
use toolyard_dialects::openai::{self, Format, ModelEntry, chat, responses};
use toolyard_dialects::telling::Telling;
use toolyard_protocol::agent::OutputSection;
use toolyard_protocol::{ErrorCode, RunId, WaitId, limits};
use toolyard_runtime::{Answer, Replied, Reply, Turn, Turned};
use toolyard_schema::NameRule;
use toolyard_store::{StoreError, agents, runs, waits};

use super::call::Call;
use super::{answer, entries};
use crate::http::Refusal;
use crate::sse;

/// A refusal in OpenAI's form.
pub(super) fn refused(refusal: Refusal) -> Response {
    let body = openai::error_body(&refusal.error).to_string();
    // Status and headers are the native ones.
    let (parts, _) = refusal.into_response().into_parts();
    let mut response = Response::from_parts(parts, body.into());
    response.headers_mut().remove(axum::http::header::CONTENT_LENGTH);
    response
}

/// `POST /v1/chat/completions`
pub(super) async fn completions(call: Call) -> Result<Response, Refusal> {
    let request = chat::parse(call.json()?)?;
    let known = entries::calls(&request.entries);
    let thread = match request.thread.clone() {
        Some(thread) => thread,
        None => entries::space_of_calls(&call, &known).await?.unwrap_or_else(new_thread),
    };
    let asked = Asked {
        model: &request.model,
        thread,
        entries: request.entries,
        tools: &request.tools,
        format: request.format,
        answers: Vec::new(),
        ends: false,
    };
    let turned = take(&call, asked).await?;
    let telling = chat::Chat::new(chat::Opening {
        model: request.model,
        run: turned.run.clone(),
        viewer: turned.viewer.clone(),
        start: turned.start.clone(),
        stream: request.stream,
        include_usage: request.include_usage,
        known: known.into_iter().collect(),
    });
    answer_with(call, turned, Box::new(telling), request.stream).await
}

/// `POST /v1/responses`
pub(super) async fn respond(call: Call) -> Result<Response, Refusal> {
    let request = responses::parse(call.json()?)?;
    let known: HashSet<String> = entries::calls(&request.entries).into_iter().collect();
    let (thread, ends) = match (&request.previous, &request.thread) {
        (Some(previous), _) => (space_of_response(&call, previous).await?, true),
        (None, Some(thread)) => (thread.clone(), true),
        (None, None) => {
            let calls = entries::calls(&request.entries);
            let found = entries::space_of_calls(&call, &calls).await?;
            let found = match found {
                Some(space) => Some(space),
                None => space_of_waits(&call, &request.approvals).await?,
            };
            (found.unwrap_or_else(new_thread), false)
        }
    };
    let asked = Asked {
        model: &request.model,
        thread,
        entries: request.entries,
        tools: &request.tools,
        format: request.format,
        answers: approvals(&call, &request.approvals).await?,
        ends,
    };
    let turned = take(&call, asked).await?;
    let telling = responses::Responses::new(responses::Opening {
        model: request.model,
        run: turned.run.clone(),
        viewer: turned.viewer.clone(),
        start: turned.start.clone(),
        stream: request.stream,
        previous: request.previous,
        known,
    });
    answer_with(call, turned, Box::new(telling), request.stream).await
}

/// What both kinds of request ask for.
struct Asked<'r> {
    model: &'r str,
    thread: String,
    entries: Vec<Entry>,
    tools: &'r [Value],
    format: Format,
    answers: Vec<Reply>,
    /// The entries are the end of the conversation and not all of it.
    ends: bool,
}

async fn take(call: &Call, asked: Asked<'_>) -> Result<Turned, Refusal> {
    let agent = entries::agent(asked.model)?;
    let tools = call.app.runtime.accept_client_tools(&call.principal, NameRule::Config, asked.tools)?;
    let (mut items, results) = entries::read(asked.entries, ToOwned::to_owned);
    if asked.ends {
        // New words have new names; what a history repeats of the gateway's is known.
        items.retain(|item| item.speaker != toolyard_protocol::message::Speaker::Assistant);
        for item in &mut items {
            item.name = Some(new_thread());
        }
    }
    let mut replies = asked.answers;
    replies.extend(results);
    let turn = Turn {
        by: call.principal.clone(),
        agent: Some(agent.clone()),
        default_agent: agent,
        thread: asked.thread,
        items,
        replies,
        cut: None,
        tools,
        model: None,
        picks: None,
        output: output(call, asked.format)?,
        metadata: None,
        trace: call.trace(),
    };
    Ok(call.app.runtime.turn(turn).await?)
}

/// The form of the answer. A schema is held to the limits of a tool's.
fn output(call: &Call, format: Format) -> Result<Option<OutputSection>, Refusal> {
    let (name, schema, strict) = match format {
        Format::Text => return Ok(None),
        Format::Json => ("answer".to_owned(), json!({ "type": "object" }), false),
        Format::Schema { name, schema, strict } => (name, schema, strict),
    };
    answer::within("response_format", Some(&schema), call.app.config.limits.body_bytes)?;
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    Ok(Some(OutputSection { schema, name: Some(name).filter(|name| !name.is_empty()), strict }))
}

fn new_thread() -> String {
    format!("openai-{}", uuid::Uuid::now_v7().simple())
}

async fn space_of_response(call: &Call, response: &str) -> Result<String, Refusal> {
    let missing = || Refusal::not_found("Response");
    let run: RunId = responses::run_of(response).ok_or_else(missing)?;
    let tenant = call.tenant().clone();
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &run).await }));
    let space = found.await?.and_then(|row| row.space).ok_or_else(missing)?;
    Ok(space.to_string())
}

async fn space_of_waits(call: &Call, asked: &[responses::Approval]) -> Result<Option<String>, Refusal> {
    let Some(id) = asked.first().and_then(|approval| WaitId::parse(&approval.wait).ok()) else {
        return Ok(None);
    };
    let tenant = call.tenant().clone();
    let found = call
        .store()
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { waits::find(tx, &tenant, &id).await }));
    Ok(found.await?.and_then(|row| row.space).map(|space| space.to_string()))
}

async fn approvals(call: &Call, asked: &[responses::Approval]) -> Result<Vec<Reply>, Refusal> {
    let mut replies = Vec::with_capacity(asked.len());
    for responses::Approval { wait, approve, reason } in asked {
        let missing = || Refusal::not_found("Approval request");
        let id = WaitId::parse(wait).map_err(|_| missing())?;
        let (tenant, asked) = (call.tenant().clone(), id.clone());
        let found = call.store().read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { waits::find(tx, &tenant, &asked).await })
        });
        let row = found.await?.ok_or_else(missing)?;
        let answer = match approve {
            true => Answer::Allow { edited: None },
            false => Answer::Deny { message: reason.clone() },
        };
        replies.push(Reply { call: row.wait.call, said: Replied::Answer { wait: Some(id), answer } });
    }
    Ok(replies)
}

async fn answer_with(
    call: Call,
    turned: Turned,
    telling: Box<dyn Telling>,
    stream: bool,
) -> Result<Response, Refusal> {
    let response = sse::tell(call, turned.viewer, turned.run, Some(turned.space), telling);
    if stream {
        let mut response = response;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        return Ok(response);
    }
    let cut = || {
        Refusal::new(ErrorCode::ShuttingDown, "The gateway stopped before the answer was there. Ask again.")
    };
    let bytes = whole(response).await.ok_or_else(cut)?;
    let body: Value = serde_json::from_slice(&bytes).map_err(|_| cut())?;
    let status = openai::error_status(&body).and_then(|status| StatusCode::from_u16(status).ok());
    let mut response = (status.unwrap_or(StatusCode::OK), bytes).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// A telling that is said at once. Each piece is copied and let go: the stream
/// counts what is held of it, and would wait for ever.
async fn whole(response: Response) -> Option<Vec<u8>> {
    let mut pieces = response.into_body().into_data_stream();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&piece.ok()?);
        if whole.len() > limits::WHOLE_ANSWER_BYTES {
            return None;
        }
    }
    Some(whole)
}

/// `GET /v1/models`
pub(super) async fn models(call: Call) -> Result<Response, Refusal> {
    answer::json(200, &openai::model_list(&listed(&call).await?))
}

/// `GET /v1/models/{model}`
pub(super) async fn model(call: Call) -> Result<Response, Refusal> {
    let name = call.params.get("model").cloned().unwrap_or_default();
    let found = listed(&call).await?.into_iter().find(|entry| entry.name.as_str() == name);
    answer::json(200, &openai::model_view(&found.ok_or_else(|| Refusal::not_found("Model"))?))
}

async fn listed(call: &Call) -> Result<Vec<ModelEntry>, Refusal> {
    let tenant = call.tenant().clone();
    let found = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let mut found: Vec<ModelEntry> = Vec::new();
            loop {
                let after = found.last().map(|entry| entry.name.to_string());
                let page = agents::list(tx, &tenant, after.as_deref(), limits::PAGE_MAX).await?;
                if page.is_empty() {
                    return Ok(found);
                }
                let entry =
                    |agent: agents::Agent| ModelEntry { name: agent.name, created_at: agent.created_at };
                found.extend(page.into_iter().map(entry));
            }
        })
    });
    Ok(found.await?)
}
