//! One call, from "mine" to "the gateway has the outcome".
//!
//! The order is what makes it safe: claim, so that nobody else starts; write
//! down that it begins; run; write down how it ended; post until the gateway
//! has it; forget. A crash after any of these leaves enough to go on.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use toolyard_protocol::{ErrorCode, RunId};

use crate::call::ToolCall;
use crate::client::{Client, ClientEvent};
use crate::error::ClientError;
use crate::journal::{Begun, Outcome};
use crate::plugin::{Chosen, Handled};
use crate::tool::CallContext;

/// A claim holds for a minute.
const RENEW: Duration = Duration::from_secs(20);

/// What the model hears of a call that a former process began.
const UNKNOWN_TEXT: &str = "Uncertain: the client stopped while this tool was running. It may or may not have taken effect. Check before you repeat it.";

/// Takes a call before plugins do. `None` means "as usual".
pub(crate) type Override = Arc<dyn Fn(&ToolCall) -> Option<Handled> + Send + Sync>;

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Performed {
    /// The gateway has this outcome of it.
    Sent(Outcome),
    /// Another client, or another task, is at it.
    Elsewhere,
    /// It ended in another way.
    Gone,
}

/// Row 17: the request's own option, a tool's code, then hooks in order.
pub(crate) fn choose(client: &Client, call: &ToolCall, first: Option<&Override>) -> Option<Chosen> {
    if let Some(handled) = first.and_then(|option| option(call)) {
        return Some(Chosen::Hook(handled));
    }
    // The book is closed again before anybody else's code runs.
    let (tool, plugins) = {
        let book = client.shared.registry();
        // A gateway that resolves conflicts by a prefix calls it so.
        let renamed = || call.name.strip_prefix("client_").and_then(|name| book.tool(name));
        (book.tool(&call.name).or_else(renamed), book.plugins())
    };
    if let Some(tool) = tool {
        return Some(Chosen::Tool(tool));
    }
    plugins.iter().find_map(|plugin| plugin.on_tool_call(call)).map(Chosen::Hook)
}

/// Runs a call within its time. Whatever goes wrong is its outcome.
pub(crate) async fn run(
    client: &Client,
    call: &ToolCall,
    chosen: Chosen,
    cancel: &CancellationToken,
) -> Outcome {
    let shared = &client.shared;
    shared.say(|| format!("tool {} begins, call {}", call.name, call.id));
    shared.tell(&ClientEvent::ToolStart(call.clone()));
    let began = Instant::now();
    let (limit, work) = match chosen {
        Chosen::Hook(handled) => (shared.tool_timeout, handled),
        Chosen::Tool(tool) => {
            let context = CallContext::new(client.clone(), call.clone(), cancel.clone());
            let (limit, args) = (tool.timeout().or(shared.tool_timeout), call.args.clone());
            let work = async move { tool.execute(args, context).await.map_err(|e| e.to_string()) };
            (limit, work.boxed())
        }
    };
    let caught = AssertUnwindSafe(work).catch_unwind();
    let ended = match limit {
        None => Some(caught.await),
        Some(limit) => tokio::time::timeout(limit, caught).await.ok(),
    };
    let outcome = match (ended, limit) {
        (Some(Ok(outcome)), _) => outcome,
        (Some(Err(_)), _) => Err(format!("Tool {} crashed", call.name)),
        (None, limit) => {
            let after = limit.unwrap_or_default().as_millis();
            Err(format!("Tool {} timed out after {after} ms", call.name))
        }
    };
    let took = began.elapsed();
    shared.say(|| {
        let word = if outcome.is_ok() { "done" } else { "failed" };
        format!("tool {} {word} after {} ms, call {}", call.name, took.as_millis(), call.id)
    });
    shared.tell(&ClientEvent::ToolEnd { call: call.clone(), outcome: outcome.clone(), took });
    outcome
}

/// Performs a call of a run, once.
pub(crate) async fn perform(
    client: Client,
    call: ToolCall,
    chosen: Chosen,
    cancel: CancellationToken,
) -> Result<Performed, ClientError> {
    let Some(run_id) = call.run.clone() else {
        return Err(ClientError::settings("a call that belongs to no run cannot be answered"));
    };
    let journal = client.shared.journal.clone();
    match claim(&client, &call).await? {
        Claim::Mine => {}
        Claim::Elsewhere => return Ok(Performed::Elsewhere),
        Claim::Gone => {
            journal.forget(&call.id).await?;
            return Ok(Performed::Gone);
        }
    }
    let repeats_safely = matches!(&chosen, Chosen::Tool(tool) if tool.is_idempotent());
    let outcome = match journal.begin(&call.id, repeats_safely).await? {
        Begun::Running => return Ok(Performed::Elsewhere),
        Begun::Ended(outcome) => {
            client.shared.say(|| format!("tool {} was done before, call {}", call.name, call.id));
            outcome
        }
        Begun::Unknown => Err(UNKNOWN_TEXT.to_owned()),
        Begun::Fresh => {
            let _left = Leaving { client: &client, call: &call };
            let ran = tokio::select! {
                outcome = run(&client, &call, chosen, &cancel) => Some(outcome),
                () = renew(&client, &call) => None,
                () = cancel.cancelled() => None,
            };
            let Some(outcome) = ran else {
                journal.forget(&call.id).await?;
                return Ok(Performed::Gone);
            };
            journal.end(&call.id, &outcome).await?;
            outcome
        }
    };
    let _left = Leaving { client: &client, call: &call };
    let performed = post(&client, &run_id, &call, outcome).await?;
    journal.forget(&call.id).await?;
    Ok(performed)
}

/// A task that is dropped in the middle lets go of its call.
struct Leaving<'a> {
    client: &'a Client,
    call: &'a ToolCall,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.client.shared.journal.leave(&self.call.id);
    }
}

enum Claim {
    Mine,
    Elsewhere,
    Gone,
}

async fn claim(client: &Client, call: &ToolCall) -> Result<Claim, ClientError> {
    let Some(wait) = &call.wait else { return Ok(Claim::Mine) };
    match client.waits().claim(wait).await {
        Ok(()) => Ok(Claim::Mine),
        Err(error) if error.is(ErrorCode::Conflict) => Ok(Claim::Elsewhere),
        Err(error) if is_over(&error) => Ok(Claim::Gone),
        Err(error) => Err(error),
    }
}

/// Nobody takes an outcome of this call any more.
fn is_over(error: &ClientError) -> bool {
    let over = [
        ErrorCode::WaitEnded,
        ErrorCode::RunEnded,
        ErrorCode::ResultConflict,
        ErrorCode::NotFound,
        ErrorCode::ToolNotFound,
    ];
    over.iter().any(|code| error.is(*code))
}

/// Keeps the claim while a slow tool works. Ends when the call is over.
async fn renew(client: &Client, call: &ToolCall) {
    loop {
        tokio::time::sleep(RENEW).await;
        // Trouble with one renewal is no reason to stop what has begun.
        if matches!(claim(client, call).await, Ok(Claim::Gone)) {
            return;
        }
    }
}

/// Tells the gateway, for as long as it takes.
async fn post(
    client: &Client,
    run: &RunId,
    call: &ToolCall,
    mut outcome: Outcome,
) -> Result<Performed, ClientError> {
    let mut failures = 0;
    loop {
        let error = match client.runs().submit(run, &call.id, &outcome).await {
            Ok(_) => return Ok(Performed::Sent(outcome)),
            Err(error) => error,
        };
        if is_over(&error) {
            return Ok(Performed::Gone);
        }
        if error.passes() {
            failures += 1;
            tokio::time::sleep(client.shared.backoff.wait(failures, error.retry_after())).await;
            continue;
        }
        let takes_no_such_value = matches!(error.code(), Some("body_too_large" | "limit_exceeded"))
            || error.is(ErrorCode::BadRequest)
            || error.is(ErrorCode::InvalidJson);
        if outcome.is_err() || !takes_no_such_value {
            return Err(error);
        }
        // The run must not wait for ever for a result that the gateway refuses.
        outcome = Err(format!("The result was refused: {error}"));
    }
}
