//! `tools/call`: a message to the agent, or one of its tools by hand. The
//! answer is a result, a question to the client's user, or a task.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolyard_dialects::mcp::{self, Able, Asking, STARTED_BY, Standing, ToolUse, Until};
use toolyard_dialects::telling::Start;
use toolyard_mcp::server::{Fault, Visit};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::tool::ToolSpec;
use toolyard_protocol::{MessageId, TraceParent};
use toolyard_runtime::{BroughtTools, Item, Turn, Turned};

use super::desk::{AgentDesk, Found, fault};
use super::runs::{self, Reached, Watched};

/// How often one call may ask a client of the older era.
const ROUNDS: usize = 10;

/// A run to follow, or a word to the model that there is none.
enum Begun {
    Run(Box<Reached>),
    Refused(Value),
}

pub(super) async fn call(
    desk: &AgentDesk,
    tool_use: ToolUse,
    visit: &Visit,
    able: Able,
) -> Result<Value, Fault> {
    let found = desk.find_tool(&tool_use.name).await?;
    if let Some(run) = &tool_use.run {
        let mut reached = runs::find(desk, run).await?;
        reached.own = true;
        runs::give(desk, &reached, &tool_use.replies, visit).await?;
        return follow(desk, reached, visit, able).await;
    }
    let begun = match found {
        Found::Ask => ask(desk, &tool_use.arguments, visit).await?,
        Found::Own(spec) => call_own(desk, &spec, tool_use.arguments, visit).await?,
    };
    match begun {
        Begun::Run(reached) => follow(desk, *reached, visit, able).await,
        Begun::Refused(result) => Ok(result),
    }
}

async fn ask(desk: &AgentDesk, arguments: &Map<String, Value>, visit: &Visit) -> Result<Begun, Fault> {
    let asking = match Asking::read(arguments) {
        Ok(asking) => asking,
        Err(text) => return Ok(Begun::Refused(mcp::tool_error(text))),
    };
    if let Some(run) = &asking.run {
        return Ok(match runs::find(desk, run).await {
            Ok(reached) => Begun::Run(Box::new(reached)),
            Err(missing) => Begun::Refused(mcp::tool_error(missing.message)),
        });
    }
    let thread = asking.session.unwrap_or_else(new_thread);
    let runtime = &desk.app.runtime;
    // What another client of this conversation brought last stays there.
    let tools = runtime.thread_tools(desk.principal.clone(), thread.clone(), desk.agent.clone()).await;
    let mut turn = turn(desk, thread, tools.map_err(fault)?, json!({ STARTED_BY: {} }));
    turn.trace = trace(desk, visit);
    turn.items = vec![Item {
        name: Some(MessageId::mint().to_string()),
        speaker: Speaker::User,
        parts: vec![Part::text(asking.message.unwrap_or_default())],
        metadata: None,
    }];
    reach(desk, runtime.turn(turn).await).await
}

async fn call_own(
    desk: &AgentDesk,
    spec: &ToolSpec,
    arguments: Map<String, Value>,
    visit: &Visit,
) -> Result<Begun, Fault> {
    let metadata = json!({ STARTED_BY: { "tool": spec.name } });
    let mut turn = turn(desk, new_thread(), BroughtTools::default(), metadata);
    turn.trace = trace(desk, visit);
    let turned = desk.app.runtime.turn_directly(turn, &spec.name, &Value::Object(arguments)).await;
    reach(desk, turned).await
}

/// MCP has a place of its own for it; the way there may have another.
fn trace(desk: &AgentDesk, visit: &Visit) -> Option<TraceParent> {
    let told = visit.meta()["traceparent"].as_str().and_then(TraceParent::parse);
    told.or_else(|| desk.call(visit).trace())
}

fn new_thread() -> String {
    format!("mcp-{}", uuid::Uuid::now_v7().simple())
}

fn turn(desk: &AgentDesk, thread: String, tools: BroughtTools, metadata: Value) -> Turn {
    Turn {
        by: desk.principal.clone(),
        agent: Some(desk.agent.clone()),
        default_agent: desk.agent.clone(),
        thread,
        items: Vec::new(),
        replies: Vec::new(),
        cut: None,
        tools,
        model: None,
        picks: None,
        output: None,
        metadata: Some(metadata),
        trace: None,
    }
}

async fn reach(
    desk: &AgentDesk,
    turned: Result<Turned, toolyard_protocol::ApiError>,
) -> Result<Begun, Fault> {
    match turned {
        Ok(turned) => {
            let mut reached = runs::find(desk, &turned.run).await?;
            reached.own = true;
            reached.taking = match turned.start {
                Start::Taking(message) => Some(message),
                Start::After(_) | Start::Turn(_) => None,
            };
            Ok(Begun::Run(Box::new(reached)))
        }
        // The model can read why, and try otherwise.
        Err(error) if error.code.status() < 500 => Ok(Begun::Refused(mcp::tool_error(error.message))),
        Err(error) => Err(fault(error)),
    }
}

async fn follow(desk: &AgentDesk, reached: Reached, visit: &Visit, able: Able) -> Result<Value, Fault> {
    let modern = visit.is_modern();
    let longest =
        (able.tasks && modern).then(|| Duration::from_millis(desk.app.config.mcp_server.task_after_ms));
    // Without patience every call is a task.
    if longest.is_some_and(|longest| longest.is_zero()) {
        return task(desk, &reached, visit, able).await;
    }
    for _ in 0..ROUNDS {
        let stands = match runs::watch(desk, &reached, Until::Rest, visit, longest).await? {
            Watched::Stands(stands) => stands,
            Watched::Long => return task(desk, &reached, visit, able).await,
        };
        if modern && let Some(question) = mcp::input_required(&stands, able) {
            return Ok(question);
        }
        if modern || !ask_now(desk, &reached, &stands, visit, able).await? {
            return Ok(mcp::call_result(&stands, reached.session()));
        }
    }
    let stands = runs::stand(desk, &reached, visit).await?;
    Ok(mcp::call_result(&stands, reached.session()))
}

/// The call goes on as a task.
async fn task(desk: &AgentDesk, reached: &Reached, visit: &Visit, able: Able) -> Result<Value, Fault> {
    let stands = runs::stand(desk, reached, visit).await?;
    let row = runs::find(desk, &reached.row.id).await?.row;
    Ok(mcp::task_created(&stands, able, (row.created_at, row.updated_at)))
}

/// Asks a client of the older era while its call is open. False: nothing came
/// of it, or there was nothing to ask.
async fn ask_now(
    desk: &AgentDesk,
    reached: &Reached,
    stands: &Standing,
    visit: &Visit,
    able: Able,
) -> Result<bool, Fault> {
    if !stands.waits {
        return Ok(false);
    }
    let mut replies = Map::new();
    for (key, request) in stands.open.iter().flat_map(|open| open.requests(able)) {
        // A client that cannot answer after all leaves the question open.
        let reply = tokio::select! {
            reply = visit.ask(request) => reply,
            () = visit.cancelled() => return Err(runs::taken_back(desk, reached).await),
        };
        let Ok(reply) = reply else { return Ok(false) };
        replies.insert(key, reply);
    }
    if replies.is_empty() {
        return Ok(false);
    }
    match runs::give(desk, reached, &replies, visit).await {
        // A form that does not fit leaves the question open; the result says so.
        Err(fault) if fault.code == Fault::INVALID_PARAMS => Ok(false),
        given => given,
    }
}
