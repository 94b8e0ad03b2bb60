//! `remote-agent` tools: an agent elsewhere that speaks A2A, as a tool.
//!
//! The card and the agent are reached by the guarded door. The card decides
//! where messages go, and it is somebody else's word: what the configuration
//! sends along (keys, mostly) goes to the card's own origin and nowhere else.
//! If the far agent asks for something, so does the call: it waits on disk and
//! goes on with the answer.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use toolyard_dialects::a2a::State;
use toolyard_dialects::a2a::client::{Ask, Peer, Told};
use toolyard_egress::{Door, EgressError, Header, Letter, Patience, Target, Verb};
use toolyard_protocol::agent::execution::RemoteAgent;
use toolyard_protocol::limits;
use toolyard_protocol::tool::ToolSpec;

use crate::mcp::Resumed;
use crate::secrets::Secrets;
use crate::{Asking, CallContext, ToolFailure};

/// How long a far agent may take if nobody says.
pub const DEFAULT_MS: u64 = 5 * 60 * 1000;
/// Bytes of a card.
const CARD_BYTES: u64 = 256 << 10;
/// How long a card may take.
const CARD_TIME: Duration = Duration::from_secs(15);
/// Between two looks at a task that still works.
const LOOK: Duration = Duration::from_millis(1_000);
/// Where a card lies below an agent's address.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// The ways out.
#[derive(Debug, Clone, Copy)]
pub struct Way<'w> {
    pub door: &'w Door,
    pub secrets: &'w Secrets,
}

/// Checks a configuration; the error says what is wrong.
pub fn check(far: &RemoteAgent) -> Result<(), String> {
    Target::parse(&card_address(far)).map_err(|e| format!("card: {e}"))?;
    for (name, value) in &far.headers {
        Header::chosen(name, "x".to_owned().into()).map_err(|e| format!("headers.{name:?}: {e}"))?;
        if !value.is_string() {
            return Err(format!("headers.{name:?}: must be text"));
        }
    }
    let most = limits::REQUEST_MAX_MS;
    if far.timeout.is_some_and(|ms| ms == 0 || ms > most) {
        return Err(format!("timeout: must be 1 to {most} ms"));
    }
    Ok(())
}

fn card_address(far: &RemoteAgent) -> String {
    let card = far.card.trim_end_matches('/');
    if card.ends_with(".json") { card.to_owned() } else { format!("{card}{WELL_KNOWN}") }
}

/// One call: from the message to the end of the far task, or to its question.
pub async fn execute(
    far: &RemoteAgent,
    spec: &ToolSpec,
    args: &Value,
    context: &CallContext,
    way: Way<'_>,
    resumed: Resumed,
) -> Result<Value, ToolFailure> {
    let total = Duration::from_millis(spec.timeout_ms.unwrap_or(DEFAULT_MS));
    let mut headers = Vec::with_capacity(far.headers.len() + 1);
    for (name, value) in &far.headers {
        let text = value.as_str().unwrap_or_default();
        let value = way.secrets.resolve(&context.tenant, text).await;
        let value = value.map_err(|why| tell(format!("The agent was not asked: {why}")))?;
        headers.push(Header::chosen(name, value).map_err(|e| tell(e.to_string()))?);
    }
    let card = way.door.target(&card_address(far)).map_err(|e| no_card(e.to_string()))?;
    let peer = fetch_card(way.door, &card, &headers).await?;
    let target = way.door.target(&peer.url).map_err(|e| tell(e.to_string()))?;
    if target.origin() != card.origin() && !headers.is_empty() {
        return Err(tell("The agent was not asked: its card names another host, and its keys stay here"));
    }
    headers.push(Header::plain("a2a-version", peer.version.as_str()));
    if !headers.iter().any(|header| header.name() == "traceparent") {
        headers.extend(context.traced());
    }
    let state = resumed.state.as_deref();
    let known = |name: &'static str| state.and_then(|s| s.get(name)).and_then(Value::as_str);
    let ask = match (&resumed.provided, known("task")) {
        (Some(given), Some(task)) => {
            let id = format!("{}-{}", context.call, known("round").unwrap_or("1"));
            peer.say(&id, &answer_of(given), Some(task), known("context"))
        }
        _ => peer.say(context.call.as_str(), &prompt_of(args), None, None),
    };
    let wire = Wire { door: way.door, peer: &peer, headers: &headers, total };
    let mut told = wire.post(ask, true).await?;
    // Some agents answer before they are done.
    while matches!(told.state, State::Submitted | State::Working) {
        let Some(task) = told.task.clone() else { break };
        tokio::time::sleep(LOOK).await;
        told = wire.post(peer.look(&task), false).await?;
    }
    finish(&peer, told, known("round"))
}

struct Wire<'w> {
    door: &'w Door,
    peer: &'w Peer,
    headers: &'w [Header],
    total: Duration,
}

impl Wire<'_> {
    /// Sends one request. One that `acts` and is not answered is uncertain.
    async fn post(&self, ask: Ask, acts: bool) -> Result<Told, ToolFailure> {
        let target = self.door.target(&ask.url).map_err(|e| tell(e.to_string()))?;
        let letter = Letter {
            verb: if ask.body.is_some() { Verb::Post } else { Verb::Get },
            target: &target,
            headers: self.headers,
            accept: "application/json",
            body: ask.body.map(|body| Bytes::from(body.to_string())),
            patience: Patience { head: self.total, idle: self.total, bytes: limits::REQUEST_ANSWER_BYTES },
        };
        let lost = |e: EgressError| {
            let text = format!("The agent {} did not answer: {e}", self.peer.name);
            if acts && !e.never_sent() { ToolFailure::Uncertain(text) } else { tell(text) }
        };
        let whole = self.door.ask(letter, self.total).await.map_err(lost)?;
        let refused = |why: &str| tell(format!("The agent {} refused: {why}", self.peer.name));
        let body: Value = serde_json::from_slice(&whole.body)
            .map_err(|_| refused(&format!("it answered {} without JSON", whole.status)))?;
        self.peer.read(&body).map_err(|why| refused(&why))
    }
}

async fn fetch_card(door: &Door, card: &Target, headers: &[Header]) -> Result<Peer, ToolFailure> {
    let letter = Letter {
        verb: Verb::Get,
        target: card,
        headers,
        accept: "application/json",
        body: None,
        patience: Patience { head: CARD_TIME, idle: CARD_TIME, bytes: CARD_BYTES },
    };
    let whole = door.ask(letter, CARD_TIME).await.map_err(|e| no_card(e.to_string()))?;
    if !(200..300).contains(&whole.status) {
        return Err(no_card(format!("it answered {}", whole.status)));
    }
    let card: Value =
        serde_json::from_slice(&whole.body).map_err(|_| no_card("it is not JSON".to_owned()))?;
    Peer::of_card(&card).map_err(no_card)
}

fn no_card(why: String) -> ToolFailure {
    tell(format!("The agent's card cannot be read: {why}"))
}

/// What the far agent is told: the prompt, or all arguments.
fn prompt_of(args: &Value) -> Value {
    match args.as_object() {
        Some(map) if map.len() == 1 && map.get("prompt").is_some_and(Value::is_string) => {
            map["prompt"].clone()
        }
        _ => args.clone(),
    }
}

/// What an answerer gave: a text, `{text}`, or data.
fn answer_of(given: &Value) -> Value {
    match given.get("text") {
        Some(text @ Value::String(_)) if given.as_object().is_some_and(|map| map.len() == 1) => text.clone(),
        _ => given.clone(),
    }
}

fn finish(peer: &Peer, told: Told, round: Option<&str>) -> Result<Value, ToolFailure> {
    let Told { task, context, state, text, others } = told;
    let said = |what: &str| {
        let why = if text.is_empty() { String::new() } else { format!(": {text}") };
        tell(format!("The agent {} {what}{why}", peer.name))
    };
    match state {
        State::Completed if others.is_empty() => Ok(Value::String(text)),
        State::Completed => Ok(json!({ "text": text, "parts": others })),
        State::Failed => Err(said("failed")),
        State::Rejected => Err(said("rejected the task")),
        State::Canceled => Err(said("canceled the task")),
        State::Submitted | State::Working => Err(said("gave no answer")),
        State::InputRequired | State::AuthRequired => {
            let round = round.and_then(|r| r.parse::<u32>().ok()).unwrap_or(0) + 1;
            let mut payload = json!({ "agent": peer.name, "message": text });
            if state == State::AuthRequired {
                payload["wants"] = json!("authorization");
            }
            if !others.is_empty() {
                payload["parts"] = json!(others);
            }
            let state = json!({ "task": task, "context": context, "round": round.to_string() });
            Err(ToolFailure::Ask(Box::new(Asking::Input { payload, state })))
        }
    }
}

fn tell(text: impl Into<String>) -> ToolFailure {
    ToolFailure::TellModel(text.into())
}
