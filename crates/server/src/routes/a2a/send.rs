//! Messages to an agent: new tasks, answers to tasks that wait, and both forms
//! of a reply.
//!
//! Everything is checked before anything is stored. A result that does not fit
//! leaves its task as it was.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use toolyard_dialects::a2a::{
    self, Answer, Asked as Wanted, Begin, Content, Fault, FaultKind, Form, Offer, Send, TaskStream, Taste,
    Until, Version,
};
use toolyard_dialects::telling::Start;
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{ApiError, FileId, Hash, MessageId, RunId, Viewer, WaitId, limits};
use toolyard_runtime::{
    Answer as Given, AnswerIn, BroughtTools, Caller, Item, NameRule, Remember, ResultIn, TASK_METADATA,
    TaskRead, TaskReader, Turn, tck,
};
use toolyard_store::blobs::{self, FileRow};
use toolyard_store::runs::RunRow;
use toolyard_store::{StoreError, waits};

use super::place::Place;
use super::reply::Asked;
use super::{push, tasks};
use crate::http::Refusal;
use crate::routes::call::Call;
use crate::sse;

/// A task that a message reached.
struct Reached {
    row: RunRow,
    viewer: Viewer,
    begin: Begin,
    taste: Taste,
}

pub(super) async fn send(call: Call, place: Place, send: Send, asked: &Asked) -> Result<Response, Fault> {
    let known = match &send.task {
        Some(task) => Some(open_task(&call, &place, task, &send).await?),
        None => None,
    };
    let tools = match send.offer.as_ref().and_then(|offer| offer.tools.as_ref()) {
        Some(given) => Some(accept(&call, given)?),
        None => None,
    };
    if let Some(config) = &send.push {
        push::check(&call, config).await?;
    }
    let aware = send.offer.is_some() || send.message.extensions.iter().any(|uri| uri == a2a::CLIENT_TOOLS);
    let asked = asked.clone().with_client_tools(aware);
    let taste = taste_of(&asked, send.offer.as_ref());
    let mut reached = None;
    if let (Some((row, viewer)), false) = (&known, send.answers.is_empty()) {
        give(&call, row, viewer, send.answers.clone(), "message.parts").await?;
        let row = tasks::again(&call, &row.id).await?;
        let begin = Begin::After(row.last_seq);
        reached = Some(Reached { begin, row, viewer: viewer.clone(), taste });
    }
    if !send.message.parts.is_empty() {
        let context = known.as_ref().and_then(|(row, _)| row.space.as_ref());
        let thread = match (context, &send.message.context) {
            (Some(space), _) => space.to_string(),
            (None, Some(name)) => name.clone(),
            (None, None) => uuid::Uuid::now_v7().to_string(),
        };
        let parts = parts(&call, &place, &send, asked.version).await?;
        reached = Some(speak(&call, &place, &send, (thread, parts, tools), taste).await?);
    }
    let Some(reached) = reached else { return Err(Fault::field("message.parts", "must say something")) };
    if let Some(config) = send.push.clone() {
        push::keep(&call, &reached.row.id, config, asked.version, push::Since::Start).await?;
    }
    let until = if send.offer.as_ref().is_some_and(|offer| offer.hold) { Until::End } else { Until::Pause };
    let form = if send.stream { Form::Stream(until) } else { Form::Whole };
    // The kit's agent may answer without a task.
    let bare = place.agent.as_str() == "tck" && send.message.id.starts_with("tck-message-response");
    respond(call, reached, form, send.at_once && !send.stream, send.history, bare, &asked).await
}

/// `tasks/resume` of seeds/001.
pub(super) async fn resume(
    call: Call,
    place: Place,
    task: RunId,
    answers: Vec<Answer>,
    asked: &Asked,
) -> Result<Response, Fault> {
    let (row, viewer) = tasks::find(&call, &place, &task).await?;
    refuse_ended(&row)?;
    give(&call, &row, &viewer, answers, "toolResults").await?;
    let row = tasks::again(&call, &task).await?;
    let asked = asked.clone().with_client_tools(true);
    let taste = asked.taste();
    let reached = Reached { begin: Begin::After(row.last_seq), row, viewer, taste };
    if asked.wants_stream {
        return respond(call, reached, Form::Stream(Until::End), false, None, false, &asked).await;
    }
    // The document's client goes on reading its first stream: the task comes at once.
    let read = read(&call, &reached, &asked).await?;
    let task = read.task.task(read.history, None, true);
    Ok(asked.answer(a2a::write::task(&task, asked.version)))
}

/// The tools that a client offers, checked before anything is stored.
fn accept(call: &Call, given: &[Value]) -> Result<BroughtTools, Fault> {
    let accepted = call.app.runtime.accept_client_tools(&call.principal, NameRule::Config, given);
    accepted.map_err(|error| Fault::field("tools", error.message))
}

fn taste_of(asked: &Asked, offer: Option<&Offer>) -> Taste {
    Taste { literal: offer.is_some_and(|offer| offer.literal), ..asked.taste() }
}

fn refuse_ended(row: &RunRow) -> Result<(), Fault> {
    if row.status.is_final() {
        let text = "The task has ended. Send a message without taskId to go on in the same context";
        return Err(Fault::new(FaultKind::Unsupported, text));
    }
    Ok(())
}

/// The task that a message names: the caller's, not ended, of that context.
async fn open_task(call: &Call, place: &Place, task: &RunId, send: &Send) -> Result<(RunRow, Viewer), Fault> {
    let (row, viewer) = tasks::find(call, place, task).await?;
    refuse_ended(&row)?;
    if let Some(context) = &send.message.context {
        let read = tasks::reader(call, &viewer, Taste::default(), String::new());
        let own = tasks::read(call, read, row.clone()).await?.task.context().to_owned();
        let space = row.space.as_ref().map(ToString::to_string);
        if *context != own && Some(context) != space.as_ref() {
            return Err(Fault::field("message.contextId", "is not the context of this task"));
        }
    }
    Ok((row, viewer))
}

/// Hands results and answers in: all that can be checked is checked first.
/// `at` is where the request has them.
async fn give(
    call: &Call,
    row: &RunRow,
    viewer: &Viewer,
    answers: Vec<Answer>,
    at: &'static str,
) -> Result<(), Fault> {
    let open = open_waits(call, row).await?;
    let mut results = Vec::new();
    let mut decided = Vec::new();
    for answer in answers {
        match answer {
            Answer::Result { call: id, tool, outcome } => {
                let known = open.iter().find(|wait| wait.wait.call == id);
                if let (Some(wait), Some(tool)) = (known, &tool)
                    && wait.wait.tool != *tool
                {
                    let text = format!("the call {id} is one of {}, not of {tool}", wait.wait.tool);
                    return Err(Fault::field(at, text));
                }
                results.push(ResultIn { call: id, outcome });
            }
            Answer::Decision { wait, allow, args, scope } => {
                let answer = match allow {
                    true => Given::Allow { edited: args },
                    false => Given::Deny { message: None },
                };
                let remember = match scope.as_deref() {
                    None | Some("once") => None,
                    Some("session") => Some(Remember::Session),
                    Some("always") => Some(Remember::Always),
                    Some(_) => return Err(Fault::field(at, "scope must be once, session or always")),
                };
                decided.push((named(&open, &wait, at)?, AnswerIn { answer, remember, args_hash: None }));
            }
            Answer::Value { wait, value } => {
                let answer = AnswerIn { answer: Given::Provide(value), remember: None, args_hash: None };
                decided.push((named(&open, &wait, at)?, answer));
            }
        }
    }
    let actor = Actor::caller(&call.principal, None);
    let caller = Caller { tenant: call.tenant().clone(), viewer: viewer.clone(), actor };
    if !results.is_empty() {
        let names: Vec<_> = results.iter().map(|result| result.call.to_string()).collect();
        let taken = call.app.runtime.submit(caller.clone(), row.id.clone(), results).await;
        taken.map_err(|mut error| {
            error.message = format!("{} ({})", error.message, names.join(", "));
            bad_answer(error, at)
        })?;
    }
    for (wait, answer) in decided {
        let taken = call.app.runtime.answer(caller.clone(), wait, answer).await;
        taken.map_err(|error| bad_answer(error, at))?;
    }
    Ok(())
}

/// What does not fit a wait is the parameters' fault; an ended run is its own.
fn bad_answer(error: ApiError, at: &'static str) -> Fault {
    use toolyard_protocol::ErrorCode;
    match error.code {
        ErrorCode::RunEnded => Fault::new(FaultKind::Unsupported, error.message),
        code if code.status() >= 500 => Fault::from(error),
        _ => Fault::field(at, error.message),
    }
}

async fn open_waits(call: &Call, row: &RunRow) -> Result<Vec<waits::WaitRow>, Fault> {
    let (tenant, run) = (call.tenant().clone(), row.id.clone());
    let open = call.store().read::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let mut open = waits::open_of_run(tx, &tenant, &run).await?;
            // Answers to a child's questions are taken under its root.
            let below = waits::below(tx, &tenant, &run).await?;
            open.extend(below.into_iter().filter(|wait| wait.ended_seq.is_none()));
            Ok(open)
        })
    });
    open.await.map_err(|e| Fault::from(Refusal::from(e).error))
}

fn named(open: &[waits::WaitRow], wanted: &Wanted, at: &str) -> Result<WaitId, Fault> {
    let found = open.iter().find(|row| match wanted {
        Wanted::Wait(id) => row.wait.id == *id,
        Wanted::Call(call) => row.wait.call == *call && row.wait.kind.wakes_when_answered(),
    });
    match (found, wanted) {
        (Some(row), _) => Ok(row.wait.id.clone()),
        // It may have been answered a moment ago: the ledger says so itself.
        (None, Wanted::Wait(id)) => Ok(id.clone()),
        (None, Wanted::Call(_)) => Err(Fault::field(at, "nobody waits for this")),
    }
}

/// Says something: in a new task, or in the one that is live.
async fn speak(
    call: &Call,
    place: &Place,
    send: &Send,
    (thread, parts, tools): (String, Vec<Part>, Option<BroughtTools>),
    taste: Taste,
) -> Result<Reached, Fault> {
    let runtime = &call.app.runtime;
    let tools = match tools {
        Some(tools) => tools,
        // They stay with the conversation until others come.
        None => runtime.thread_tools(call.principal.clone(), thread.clone(), place.agent.clone()).await?,
    };
    let aware = taste.client_tools || !tools.is_empty();
    let turn = Turn {
        by: call.principal.clone(),
        agent: Some(place.agent.clone()),
        default_agent: place.agent.clone(),
        thread,
        items: vec![Item {
            // Clients repeat their ids: each message here is a new one.
            name: Some(MessageId::mint().to_string()),
            speaker: Speaker::User,
            parts,
            metadata: Some(a2a::kept(&send.message)),
        }],
        replies: Vec::new(),
        cut: None,
        tools,
        model: None,
        picks: None,
        metadata: Some(json!({ TASK_METADATA: { "clientTools": aware, "literal": taste.literal } })),
        output: None,
        trace: call.trace(),
    };
    let turned = runtime.turn(turn).await.map_err(|error| match error.code {
        toolyard_protocol::ErrorCode::NotFound => Fault::new(FaultKind::Unsupported, error.message),
        toolyard_protocol::ErrorCode::ToolNameConflict => Fault::field("tools", error.message),
        _ => Fault::from(error),
    })?;
    let begin = match (turned.fresh, turned.start) {
        (true, _) => Begin::Fresh,
        (false, Start::After(seq)) => Begin::After(seq),
        (false, Start::Taking(message)) => Begin::Taking(message),
        (false, Start::Turn(_)) => Begin::Now,
    };
    let row = tasks::again(call, &turned.run).await?;
    Ok(Reached { row, viewer: turned.viewer, begin, taste })
}

/// The parts of a message in the gateway's words. Bytes become files.
async fn parts(call: &Call, place: &Place, send: &Send, version: Version) -> Result<Vec<Part>, Fault> {
    let mut out = Vec::with_capacity(send.message.parts.len() + 1);
    for (i, part) in send.message.parts.iter().enumerate() {
        let media_type = part.media_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
        let name = part.filename.clone();
        out.push(match &part.content {
            Content::Text(text) => Part::text(text.clone()),
            Content::Data(value) => Part::text(a2a::data_text(value)),
            Content::Url(url) if url.starts_with("https://") || url.starts_with("http://") => {
                Part::File { media_type, file: None, url: Some(url.clone()), name }
            }
            Content::Url(_) => {
                return Err(Fault::field(
                    format!("message.parts[{i}].url"),
                    "must be an http or https address",
                ));
            }
            Content::Raw(text) => {
                let file = keep_file(call, i, text, media_type.clone(), name.clone()).await?;
                Part::File { media_type, file: Some(file), url: None, name }
            }
        });
    }
    if place.agent.as_str() == "tck" {
        let value = json!({ "messageId": send.message.id, "version": version.as_str() });
        out.push(Part::Data { name: tck::MARK.to_owned(), value });
    }
    Ok(out)
}

async fn keep_file(
    call: &Call,
    i: usize,
    text: &str,
    media_type: String,
    name: Option<String>,
) -> Result<FileId, Fault> {
    let wrong = |why: String| Fault::field(format!("message.parts[{i}]"), why);
    let plain = text.trim_end_matches('=');
    let bytes = STANDARD_NO_PAD.decode(plain).or_else(|_| URL_SAFE_NO_PAD.decode(plain));
    let bytes = bytes.map_err(|_| wrong("must be base64".to_owned()))?;
    if bytes.len() > limits::FILE_BYTES {
        return Err(wrong(format!("is larger than {} bytes", limits::FILE_BYTES)));
    }
    let (tenant, entity) = (call.tenant().clone(), call.principal.entity.clone());
    let kept = call.store().write::<_, StoreError, _>(move |tx| {
        Box::pin(async move {
            let file = FileRow {
                id: FileId::mint(),
                hash: Hash::of(&bytes),
                media_type,
                name,
                bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
                entity,
                run: None,
                created_at: tx.now().await?,
            };
            blobs::put(tx, &tenant, &file.hash, &bytes).await?;
            blobs::put_file(tx, &tenant, &file).await?;
            Ok(file.id)
        })
    });
    kept.await.map_err(|e| Fault::from(Refusal::from(e).error))
}

async fn read(call: &Call, reached: &Reached, asked: &Asked) -> Result<TaskRead, Fault> {
    let reader = tasks::reader(call, &reached.viewer, reached.taste, asked.files());
    tasks::read(call, reader, reached.row.clone()).await
}

/// Answers a message: with the task as it stands, at its end, or as a stream.
async fn respond(
    call: Call,
    reached: Reached,
    form: Form,
    at_once: bool,
    most: Option<u32>,
    bare: bool,
    asked: &Asked,
) -> Result<Response, Fault> {
    let TaskRead { task, history, taste } = read(&call, &reached, asked).await?;
    if at_once {
        let task = task.task(history, most, true);
        return Ok(asked.answer(a2a::answer::sent(&task, asked.version)));
    }
    let context = task.context().to_owned();
    let Reached { row, viewer, begin, .. } = reached;
    let reader: TaskReader = tasks::reader(&call, &viewer, taste, asked.files());
    let telling = TaskStream::new(
        reader.blank(&row.id, context, taste),
        asked.version,
        asked.binding.clone(),
        form,
        begin,
    )
    .with_history(history, most)
    .maybe_bare(bare);
    let response = sse::tell(call, viewer, row.id, row.space, Box::new(telling));
    Ok(match form {
        Form::Stream(_) => asked.dress_stream(response),
        Form::Whole | Form::Ended => asked.dress(response),
    })
}
