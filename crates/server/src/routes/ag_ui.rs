//! `POST /ag-ui/{agent}`, and CopilotKit's routes: its clients work without
//! its own runtime in between.

use std::collections::HashSet;
use std::convert::Infallible;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Map, Value, json};
use toolyard_dialects::ag_ui::{self, AgUi, CONTEXT, Encoding, Opening, Recoder, Resolved, Resume, RunInput};
use toolyard_dialects::telling::{Start, Telling};
use toolyard_protocol::event::Event;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::{AgentName, MessageId, RunId, SpaceId, ToolOutcome, Viewer, WaitId, limits};
use toolyard_runtime::{Answer, BroughtTools, Following, Replied, Reply, Turn, Turned};
use toolyard_schema::NameRule;
use toolyard_store::{StoreError, agents, log, messages, spaces, waits};

use super::call::Call;
use super::{answer, entries};
use crate::http::Refusal;
use crate::sse;

/// Where the application's state lies in the metadata of its space.
const STATE: &str = "agUiState";

/// `POST /ag-ui/{agent}` and `POST /copilotkit/agent/{agent}/run`
pub(super) async fn run(call: Call) -> Result<Response, Refusal> {
    let agent = entries::agent(call.params.get("agent").map(String::as_str).unwrap_or_default())?;
    let input = ag_ui::parse(call.json()?)?;
    let encoding = Encoding::of_accept(call.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()));
    let tools = call.app.runtime.accept_client_tools(&call.principal, NameRule::Config, &input.tools)?;
    let answers = answers(&call, &input.resume).await?;
    let turn = turn(&call, agent, &input, tools, answers)?;
    let turned = call.app.runtime.turn(turn).await?;
    let state = keep_state(&call, &turned.space, input.state.clone()).await?;
    let held_back = entries::asking_tools(&call, &turned.run).await?;
    let Turned { space, run, start, kept, viewer, .. } = turned;
    let opening = Opening {
        thread: input.thread,
        client_run: input.run,
        version: input.version,
        viewer: viewer.clone(),
        run: run.clone(),
        history: input.history,
        held_back,
        brought: kept.iter().map(ToString::to_string).collect(),
        state,
        start,
        restores: false,
        later: Vec::new(),
    };
    Ok(tell(call, viewer, run, space, opening, encoding))
}

fn turn(
    call: &Call,
    agent: AgentName,
    input: &RunInput,
    tools: BroughtTools,
    answers: Vec<Reply>,
) -> Result<Turn, Refusal> {
    let name = |id: &str| ag_ui::stored_name(id).to_owned();
    let (mut items, results) = entries::read(input.messages.clone(), name);
    // A decision that also stands in the history as a result is no result.
    let decided: HashSet<_> = answers.iter().map(|reply| reply.call.clone()).collect();
    let mut replies = answers;
    replies.extend(results.into_iter().filter(|reply| !decided.contains(&reply.call)));
    if !input.context.is_empty()
        && let Some(last) = items.iter_mut().rev().find(|item| item.speaker == Speaker::User)
    {
        let lines: String =
            input.context.iter().map(|c| format!("\n- {}: {}", c.description, c.value)).collect();
        last.parts.push(Part::text(format!("\n\nContext from the application:{lines}")));
        last.metadata = Some(json!({ CONTEXT: true }));
    }
    Ok(Turn {
        by: call.principal.clone(),
        agent: Some(agent.clone()),
        default_agent: agent,
        thread: input.thread.clone(),
        items,
        replies,
        cut: None,
        tools,
        model: None,
        picks: None,
        output: None,
        metadata: None,
        trace: call.trace(),
    })
}

/// What the client says to interrupts, each read by the kind of its wait.
async fn answers(call: &Call, resume: &[Resume]) -> Result<Vec<Reply>, Refusal> {
    let mut replies = Vec::with_capacity(resume.len());
    for entry in resume {
        let missing = || Refusal::not_found("Interrupt");
        let id = WaitId::parse(&entry.interrupt).map_err(|_| missing())?;
        let (tenant, asked) = (call.tenant().clone(), id.clone());
        let found = call
            .store()
            .read::<_, StoreError, _>(move |tx| {
                Box::pin(async move { waits::find(tx, &tenant, &asked).await })
            })
            .await?;
        let wait = found.ok_or_else(missing)?.wait;
        let answer = |answer| Replied::Answer { wait: Some(id.clone()), answer };
        let said = match ag_ui::resolve(entry, wait.kind)? {
            Resolved::Allow { edited } => answer(Answer::Allow { edited }),
            Resolved::Deny { reason } => answer(Answer::Deny { message: reason }),
            Resolved::Provide(value) => answer(Answer::Provide(value)),
            Resolved::Result(value) => Replied::Outcome(ToolOutcome::Ok(value)),
            Resolved::Failed(text) => Replied::Outcome(ToolOutcome::Failed(text)),
        };
        replies.push(Reply { call: wait.call, said });
    }
    Ok(replies)
}

/// The state that holds: what the application sends, else what it sent before.
async fn keep_state(call: &Call, space: &SpaceId, sent: Option<Value>) -> Result<Option<Value>, Refusal> {
    let sent = sent.filter(|state| *state != json!({}));
    answer::within("state", sent.as_ref(), limits::METADATA_BYTES)?;
    let (tenant, space) = (call.tenant().clone(), space.clone());
    let Some(sent) = sent else {
        let found = call.store().read::<_, StoreError, _>(move |tx| {
            Box::pin(async move { spaces::get(tx, &tenant, &space).await })
        });
        let metadata = found.await?.and_then(|space| space.metadata);
        return Ok(metadata.and_then(|metadata| metadata.get(STATE).cloned()));
    };
    let state = sent.clone();
    call.store()
        .write::<_, Refusal, _>(move |tx| {
            Box::pin(async move {
                let Some(mut row) = spaces::get(tx, &tenant, &space).await? else { return Ok(()) };
                let mut metadata = match row.metadata.take() {
                    Some(Value::Object(metadata)) => metadata,
                    _ => Map::new(),
                };
                if metadata.get(STATE) != Some(&state) {
                    metadata.insert(STATE.to_owned(), state);
                    row.metadata = Some(Value::Object(metadata));
                    spaces::update(tx, &tenant, &row).await?;
                }
                Ok(())
            })
        })
        .await?;
    Ok(Some(sent))
}

fn tell(
    call: Call,
    viewer: Viewer,
    run: RunId,
    space: SpaceId,
    opening: Opening,
    encoding: Encoding,
) -> Response {
    let response = sse::tell(call, viewer, run, Some(space), Box::new(AgUi::new(opening)));
    dressed(response, encoding)
}

fn dressed(response: Response, encoding: Encoding) -> Response {
    let mut response = match encoding {
        Encoding::Sse => response,
        Encoding::Protobuf => response.map(|body| {
            let mut recoder = Recoder::default();
            let frames = body.into_data_stream().map(move |piece| {
                let bytes = piece.map(|piece| Bytes::from(recoder.push(&piece))).unwrap_or_default();
                Ok::<_, Infallible>(bytes)
            });
            Body::from_stream(frames)
        }),
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
    response
}

/// `POST /copilotkit/agent/{agent}/connect`: the thread as messages, with its
/// open calls, and then what happens in it.
pub(super) async fn connect(call: Call) -> Result<Response, Refusal> {
    entries::known_agent(&call).await?;
    let input = ag_ui::parse(call.json()?)?;
    let encoding = Encoding::of_accept(call.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()));
    let found = call.app.runtime.follow(call.principal.clone(), input.thread.clone()).await?;
    let mut opening = Opening {
        thread: input.thread,
        client_run: input.run,
        version: input.version,
        viewer: Viewer::secret(),
        run: RunId::mint(),
        history: Vec::new(),
        held_back: HashSet::new(),
        brought: HashSet::new(),
        state: None,
        start: Start::Turn(1),
        restores: true,
        later: Vec::new(),
    };
    let Some(Following { space, run, viewer, .. }) = found else {
        let mut out = String::new();
        let mut telling = AgUi::new(opening);
        telling.begin(&mut out);
        telling.end_at_rest(&mut out);
        return Ok(dressed(Response::new(Body::from(out)), encoding));
    };
    opening.state = keep_state(&call, &space, None).await?;
    opening.held_back = entries::asking_tools(&call, &run).await?;
    let (history, later) = history(&call, &space, &run, &viewer).await?;
    opening = Opening { viewer: viewer.clone(), run: run.clone(), history, later, ..opening };
    Ok(tell(call, viewer, run, space, opening, encoding))
}

type Restored = (Vec<Value>, Vec<(MessageId, Value)>);

/// The messages of a thread but those of one run, and of these the ones that
/// the run read after it began.
async fn history(call: &Call, space: &SpaceId, run: &RunId, viewer: &Viewer) -> Result<Restored, Refusal> {
    let (tenant, space, run) = (call.tenant().clone(), space.clone(), run.clone());
    let of_run = run.clone();
    let found = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let Some(row) = spaces::get(tx, &tenant, &space).await? else { return Ok((Vec::new(), 0)) };
            let all = messages::of_branch(tx, &tenant, &space, &row.branch).await?;
            let first = log::event(tx, &tenant, &of_run, 1).await?;
            let up_to = match first {
                Some(Event::RunCreated(created)) => created.history_to,
                _ => i64::MAX,
            };
            Ok((all, up_to))
        })
    });
    let (all, up_to): (Vec<Message>, i64) = found.await?;
    let (mut history, mut later) = (Vec::new(), Vec::new());
    for message in all.iter().filter(|message| message.run.as_ref() != Some(&run)) {
        let told = ag_ui::restored(message, viewer);
        if message.seq <= up_to {
            history.extend(told);
        } else {
            later.extend(told.into_iter().map(|value| (message.id.clone(), value)));
        }
    }
    Ok((history, later))
}

/// `POST /copilotkit/agent/{agent}/stop/{thread}`
pub(super) async fn stop(call: Call) -> Result<Response, Refusal> {
    entries::known_agent(&call).await?;
    let thread = call.params.get("thread").cloned().unwrap_or_default();
    let stopped = call.app.runtime.stop_thread(call.principal.clone(), thread, None).await?;
    answer::json(200, &json!({ "stopped": stopped }))
}

/// `GET /copilotkit/info`: the agents of this tenant.
pub(super) async fn info(call: Call) -> Result<Response, Refusal> {
    let mut listed = Map::new();
    for (name, description) in named_agents(&call).await? {
        let view = json!({
            "name": name, "description": description, "className": "Toolyard", "capabilities": capabilities(),
        });
        listed.insert(name, view);
    }
    let version = env!("CARGO_PKG_VERSION");
    answer::json(
        200,
        &json!({ "version": version, "mode": "sse", "agents": listed, "audioFileTranscriptionEnabled": false }),
    )
}

fn capabilities() -> Value {
    json!({
        "transport": { "streaming": true, "httpBinary": true, "resumable": true },
        "tools": { "supported": true, "parallelCalls": true, "clientProvided": true },
        "state": { "snapshots": true, "persistentState": true },
        "reasoning": { "supported": true, "streaming": true },
        "humanInTheLoop": {
            "supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true,
        },
    })
}

/// Agents by name, with what they say of themselves.
async fn named_agents(call: &Call) -> Result<Vec<(String, String)>, Refusal> {
    let tenant = call.tenant().clone();
    let found = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let mut found: Vec<(String, String)> = Vec::new();
            loop {
                let after = found.last().map(|(name, _)| name.clone());
                let page = agents::list(tx, &tenant, after.as_deref(), limits::PAGE_MAX).await?;
                if page.is_empty() {
                    return Ok(found);
                }
                for agent in page {
                    let config = agents::version(tx, &tenant, &agent.hash).await?.unwrap_or_default();
                    let said = config["agent"]["description"].as_str().unwrap_or_default().to_owned();
                    found.push((agent.name.to_string(), said));
                }
            }
        })
    });
    Ok(found.await?)
}
