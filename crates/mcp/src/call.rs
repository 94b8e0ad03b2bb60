//! One call of a tool: sent at most once, unless a repeat can do no harm.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, ErrorData};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::limits;

use crate::answer::{Answer, Paused};
use crate::ask::Ask;
use crate::connect::Live;
use crate::fault::{Fault, FaultKind};
use crate::flight::Progress;
use crate::link::{Link, Order};
use crate::settings::{Owner, ServerSettings};
use crate::task::Ticket;
use crate::wire::pending::{Spoilt, spoilt_kind, unwrap};

/// Progress reaches the caller at most so often.
const TELL: Duration = Duration::from_millis(100);

/// Hears how far a call is.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// What is called, and who hears of it.
#[derive(Clone)]
pub struct Call {
    /// The server's own name of the tool.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Goes on with a call that paused: its state and the answers by key.
    pub resume: Option<(Paused, Map<String, Value>)>,
    /// A second run can do no harm ([`McpTool::repeats_safely`](crate::McpTool::repeats_safely)).
    pub repeats_safely: bool,
    pub progress: Option<OnProgress>,
    /// Answers questions while the call is open. Without it they are declined.
    pub ask: Option<Arc<dyn Ask>>,
    pub cancel: CancellationToken,
    /// When this is cancelled, a task of the server's is left alone: somebody
    /// else goes on with its ticket.
    pub leave: CancellationToken,
    /// The caller's own patience: a connection may be shared with others.
    pub(crate) times: Times,
}

/// How long a caller waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) start: Duration,
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

impl Times {
    pub(crate) const fn of(settings: &ServerSettings) -> Self {
        Self { start: settings.start, idle: settings.idle, total: settings.total }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl Call {
    pub fn new(tool: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            resume: None,
            repeats_safely: false,
            progress: None,
            ask: None,
            cancel: CancellationToken::new(),
            leave: CancellationToken::new(),
            times: Times {
                start: Duration::from_millis(limits::MCP_START_MS),
                idle: Duration::from_millis(limits::TOOL_TIMEOUT_MS),
                total: Duration::from_millis(limits::MCP_TOTAL_MS),
            },
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The server answered; perhaps with an error of the tool.
    Done(Answer),
    /// The server answered that it will not do it, or cannot say what came of it.
    Failed(String),
    /// The server needs input first. Keep it, and call again with the answers.
    Paused(Paused),
    /// The server works on; keep the ticket and follow it.
    Task(Ticket),
    /// Nothing reached the server.
    NotSent { why: String, needs_login: bool },
    /// The call may have taken effect. Nobody may repeat it unasked.
    Unknown(String),
    /// The caller cancelled. The server was told; it may have finished before.
    Canceled,
}

/// What came of one try.
pub(crate) enum Tried {
    Answer(Value),
    Error(ErrorData),
    Spoilt(Spoilt),
    NeverSent(Fault),
    Lost(Fault),
    Silent(String),
    Canceled,
}

/// Makes the request of a call.
fn request(call: &Call) -> ClientRequest {
    let mut params = CallToolRequestParams::new(call.tool.clone()).with_arguments(call.arguments.clone());
    if let Some((paused, answers)) = &call.resume {
        params.request_state = paused.request_state.clone();
        if !answers.is_empty() {
            let answers = answers.iter().map(|(key, value)| (key.clone(), value.clone()));
            params.input_responses = Some(answers.collect());
        }
    }
    ClientRequest::CallToolRequest(CallToolRequest::new(params))
}

/// Makes the call, mending the connection once if need be.
pub(crate) async fn make(link: &Arc<Link>, owner: &Owner, mut call: Call) -> Outcome {
    let mut round = call.resume.as_ref().map_or(0, |(paused, _)| paused.round);
    let mut mended = false;
    loop {
        let live = match ready(link, call.times.start).await {
            Ok(live) => live,
            Err(refused) => return refused,
        };
        let tried = attempt(&live, owner, &call, request(&call)).await;
        match tried {
            Tried::NeverSent(fault) if !mended && retries(&fault) => {
                mended = true;
                link.order(Order::Suspect(fault));
                gone(link, &live).await;
            }
            Tried::NeverSent(fault) if matches!(fault.kind, FaultKind::Login { .. }) => {
                // The state knows what the server asks for before the caller does.
                let outcome = conclude(link, Tried::NeverSent(fault), round);
                gone(link, &live).await;
                return outcome;
            }
            Tried::Lost(fault) if !mended && call.repeats_safely => {
                mended = true;
                link.order(Order::Suspect(fault));
                gone(link, &live).await;
            }
            other => match conclude(link, other, round) {
                // The server only wants to be asked again.
                Outcome::Paused(paused) if paused.requests.is_empty() => {
                    round = paused.round;
                    call.resume = Some((paused, Map::new()));
                }
                outcome => return outcome,
            },
        }
    }
}

/// A fault before anything was sent, which another try may mend.
const fn retries(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Passing { never_sent: true, after: None })
}

/// Waits until the keeper has noticed that a connection is gone.
async fn gone(link: &Link, live: &Live) {
    let soon = Instant::now() + Duration::from_secs(2);
    link.wait(soon, |now| now.live.as_ref().is_none_or(|new| !Arc::ptr_eq(&new.flights, &live.flights)))
        .await;
}

/// The connection, waited for as long as a start may take.
pub(crate) async fn ready(link: &Link, start: Duration) -> Result<Live, Outcome> {
    link.touch();
    link.wake(false);
    let until = Instant::now() + start;
    let now = link.wait(until, |now| now.live.is_some() || now.state.is_hopeless()).await;
    if let Some(live) = now.live {
        return Ok(live);
    }
    let server = &link.settings.name;
    let needs_login = matches!(now.state, crate::status::State::NeedsAuth { .. });
    let why = match now.state.why() {
        Some(why) => format!("MCP server {server} is {}: {why}", now.state.word()),
        None => format!("MCP server {server} is {}", now.state.word()),
    };
    Err(Outcome::NotSent { why, needs_login })
}

/// Sends a request and waits for its one answer.
pub(crate) async fn attempt(live: &Live, owner: &Owner, call: &Call, request: ClientRequest) -> Tried {
    let mut flight = live.flights.board(owner.clone(), call.ask.clone());
    if call.cancel.is_cancelled() {
        return Tried::Canceled;
    }
    let sent = live.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let Ok(mut handle) = sent else {
        return Tried::NeverSent(Fault::never_sent("the connection is closed"));
    };
    let id = handle.id.to_string();
    flight.sent(id.clone(), handle.progress_token.0.to_string());
    let (idle, total) = (call.times.idle, call.times.total);
    let start = Instant::now();
    let (mut last_word, mut asked) = (start, Duration::ZERO);
    let mut told: Option<Instant> = None;
    loop {
        // Nobody is blamed for the time that a person thinks.
        let asking = flight.is_asking();
        let idle_end = last_word + idle;
        let total_end = start + total + asked;
        let turn = Instant::now();
        tokio::select! {
            biased;
            answer = &mut handle.rx => {
                return match answer {
                    Ok(answer) => concluded(live, &id, answer),
                    Err(_) => Tried::Lost(Fault::passing("the connection ended before the answer")),
                };
            }
            () = call.cancel.cancelled() => {
                let _ = tokio::time::timeout(Duration::from_secs(2), handle.cancel(Some("canceled by the user".to_owned()))).await;
                return Tried::Canceled;
            }
            progress = flight.progress() => {
                let now = Instant::now();
                last_word = now;
                if let (Some(progress), Some(tell)) = (progress, &call.progress)
                    && told.is_none_or(|at| now.duration_since(at) >= TELL)
                {
                    told = Some(now);
                    tell(progress);
                }
            }
            () = tokio::time::sleep(Duration::from_millis(250)), if asking => {
                asked += turn.elapsed();
                last_word = Instant::now();
            }
            () = tokio::time::sleep_until(idle_end.min(total_end).into()), if !asking => {
                if flight.is_asking() {
                    continue;
                }
                let why = if idle_end <= total_end {
                    format!("no word from it within {idle:?}")
                } else {
                    format!("no answer from it within {total:?}")
                };
                let _ = tokio::time::timeout(Duration::from_secs(2), handle.cancel(Some("timed out".to_owned()))).await;
                return Tried::Silent(why);
            }
        }
    }
}

fn concluded(live: &Live, id: &str, answer: Result<rmcp::model::ServerResult, ServiceError>) -> Tried {
    let lost = |text: &str| Tried::Lost(Fault::passing(text));
    match answer {
        Ok(result) => Tried::Answer(unwrap(result)),
        Err(ServiceError::McpError(error)) => match spoilt_kind(&error) {
            Some(spoilt) => Tried::Spoilt(spoilt),
            None if error.message.contains("session was re-initialized before the response") => {
                lost("the server forgot the session before it answered")
            }
            None => Tried::Error(error),
        },
        Err(ServiceError::TransportSend(_)) => match live.pending.take_fault(id) {
            Some(fault) if fault.was_never_sent() => Tried::NeverSent(fault),
            Some(fault) => Tried::Lost(fault),
            None => lost("the request could not be sent whole"),
        },
        Err(_) => lost("the connection ended before the answer"),
    }
}

/// What one try means for the caller, and for the connection.
fn conclude(link: &Link, tried: Tried, round: u32) -> Outcome {
    let server = &link.settings.name;
    let unknown = |why: &str| {
        Outcome::Unknown(format!(
            "Outcome unknown: MCP server {server}: {why}. The call may or may not have taken effect. Check before you repeat it."
        ))
    };
    match tried {
        Tried::Answer(raw) => answered(raw, round),
        Tried::Error(error) => {
            if error.code == ErrorCode::INVALID_PARAMS || error.code == ErrorCode::METHOD_NOT_FOUND {
                // Perhaps the tool is gone.
                link.order(Order::Relist);
            }
            let text = toolyard_schema::clean(&error.message, 2000).text;
            Outcome::Failed(format!("MCP server {server} answered with error {}: {text}", error.code.0))
        }
        Tried::Spoilt(Spoilt::TooLarge) => Outcome::Failed(format!(
            "MCP server {server} did the call, but its answer is larger than {} bytes and was dropped",
            limits::MCP_MESSAGE_BYTES
        )),
        Tried::Spoilt(Spoilt::Unreadable) => {
            Outcome::Failed(format!("MCP server {server} answered something that is not JSON-RPC"))
        }
        Tried::Spoilt(Spoilt::Cut) => {
            link.order(Order::Renew);
            unknown("the answer was cut off")
        }
        Tried::NeverSent(fault) => {
            let needs_login = matches!(fault.kind, FaultKind::Login { .. });
            let why = format!("MCP server {server}: {}", fault.text);
            // One refused call says nothing of the others.
            if !matches!(fault.kind, FaultKind::Lasting) {
                link.order(Order::Suspect(fault));
            }
            Outcome::NotSent { why, needs_login }
        }
        Tried::Lost(fault) => {
            let text = fault.text.clone();
            link.order(Order::Suspect(fault));
            unknown(&text)
        }
        Tried::Silent(why) => {
            link.order(Order::Renew);
            unknown(&why)
        }
        Tried::Canceled => Outcome::Canceled,
    }
}

/// The three kinds of answers.
pub(crate) fn answered(raw: Value, round: u32) -> Outcome {
    match raw.get("resultType").and_then(Value::as_str) {
        Some("input_required") => paused(&raw, round),
        Some("task") => match Ticket::read(&raw) {
            Some(ticket) => Outcome::Task(ticket),
            None => Outcome::Failed("the server began a task without an id".to_owned()),
        },
        _ => Outcome::Done(Answer::read(raw)),
    }
}

pub(crate) fn paused(raw: &Value, round: u32) -> Outcome {
    let requests = raw.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
    let request_state = raw.get("requestState").and_then(Value::as_str).map(str::to_owned);
    let paused = Paused { requests, request_state, round: round + 1 };
    if paused.round > limits::MCP_ROUNDS {
        return Outcome::Failed(format!("the server asks for input more than {} times", limits::MCP_ROUNDS));
    }
    if paused.requests.len() > limits::MCP_QUESTIONS {
        return Outcome::Failed(format!(
            "the server asks more than {} questions at once",
            limits::MCP_QUESTIONS
        ));
    }
    if paused.requests.is_empty() && paused.request_state.is_none() {
        return Outcome::Failed("the server asks for input, but asks nothing".to_owned());
    }
    let unsupported = paused.questions().find_map(|(_, question)| match question {
        crate::Question::Unsupported { method } => Some(method),
        crate::Question::Form { .. } | crate::Question::Url { .. } => None,
    });
    match unsupported {
        Some(method) => Outcome::Failed(format!(
            "the server asks for {}, which this gateway does not do for servers",
            toolyard_schema::clean(&method, 64).text
        )),
        None => Outcome::Paused(paused),
    }
}
