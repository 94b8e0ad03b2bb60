//! `request` tools: an HTTP request to somebody's API (row G10).
//!
//! The configuration decides where a request goes; the model's input only ever
//! becomes a value inside it. Every request passes the guarded door. Secrets
//! are put in at the last moment, and taken out of the answer if it repeats them.

mod answer;
mod check;
mod compose;
mod url;

use std::collections::HashMap;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::Value;
use toolyard_egress::{Door, EgressError, Header, Letter, Patience, Verb};
use toolyard_protocol::agent::execution::{Method, Request};
use toolyard_protocol::limits;

pub use check::check;

use crate::secrets::{NoSecret, Secrets};
use crate::template::Reference;
use crate::{CallContext, ToolFailure};

/// The values of all references of one request.
type Values = HashMap<Reference, SecretString>;

/// Sends the request of one call and answers `{success, status, data, headers}`.
pub async fn execute(
    request: &Request,
    args: &Value,
    context: &CallContext,
    door: &Door,
    secrets: &Secrets,
) -> Result<Value, ToolFailure> {
    let tell = |text: String| ToolFailure::TellModel(text);
    let mut values = Values::new();
    for reference in check::references(request).map_err(tell)? {
        let value = secrets.read(&context.tenant, &reference).await.map_err(no_secret)?;
        values.insert(reference, value);
    }
    let composed = compose::compose(request, args, &values).map_err(tell)?;
    let mut headers = composed.headers;
    if !headers.iter().any(|header| header.name() == "idempotency-key") {
        headers.push(Header::plain("idempotency-key", context.call.to_string()));
    }
    if !headers.iter().any(|header| header.name() == "traceparent") {
        headers.extend(context.traced());
    }
    let refused = |e: EgressError| tell(said(&e, total_ms(request)));
    let target = url::target(door, &composed.url).map_err(refused)?;
    let total = Duration::from_millis(total_ms(request));
    let letter = Letter {
        verb: verb(request.method),
        target: &target,
        headers: &headers,
        accept: "application/json, */*;q=0.5",
        body: composed.body,
        patience: Patience { head: total, idle: total, bytes: limits::REQUEST_ANSWER_BYTES },
    };
    // Nobody knows what became of a request that left and was not answered.
    let harmless = request.method == Method::Get;
    let lost = |e: EgressError| match e.never_sent() || harmless || matches!(e, EgressError::TooLarge { .. })
    {
        true => refused(e),
        false => ToolFailure::Uncertain(said(&e, total_ms(request))),
    };
    let whole = door.ask(letter, total).await.map_err(lost)?;
    Ok(answer::render(whole, &values))
}

/// How long a request may take in all.
pub fn total_ms(request: &Request) -> u64 {
    request.timeout.unwrap_or(limits::TOOL_TIMEOUT_MS)
}

fn verb(method: Method) -> Verb {
    match method {
        Method::Get => Verb::Get,
        Method::Post => Verb::Post,
        Method::Put => Verb::Put,
        Method::Patch => Verb::Patch,
        Method::Delete => Verb::Delete,
    }
}

fn no_secret(why: NoSecret) -> ToolFailure {
    ToolFailure::TellModel(format!("The request was not sent: {why}"))
}

/// For the model. No error of the door tells a URL, a header or a body.
fn said(error: &EgressError, total: u64) -> String {
    match error {
        EgressError::Timeout { .. } => format!("Tool timed out after {total}ms"),
        EgressError::Refused(_) | EgressError::Inside | EgressError::Redirects { .. } => {
            format!("The request was refused: {error}")
        }
        EgressError::Astray(why) => said(why, total),
        EgressError::Unreachable(_)
        | EgressError::TooLarge { .. }
        | EgressError::Broken(_)
        | EgressError::Unavailable(_) => format!("The request failed: {error}"),
    }
}
