//! The loop of a chat: events out, calls executed on the way (rows H35–H41).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, SelectAll, unfold};
use futures::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::{CallId, MessageId, RunId};

use super::response::{ChatResponse, Gather};
use crate::api::{Posted, Wait, WaitFilter};
use crate::call::ToolCall;
use crate::client::{Client, ClientEvent};
use crate::error::ClientError;
use crate::event::{Event, EventKind};
use crate::journal::Outcome;
use crate::perform::{self, Override, Performed};
use crate::stream::EventStream;

/// What a chat tells.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// Something happened in a run.
    Run(Event),
    /// This program begins to execute a call.
    ToolStart(ToolCall),
    /// The gateway has the outcome of a call of this program.
    ToolResult { call: ToolCall, outcome: Outcome },
    /// The run waits for calls that nobody here executes. Another client may.
    Unhandled(Vec<ToolCall>),
    /// Calls of a further round stay open; the stream ends.
    MaxToolRoundsReached { limit: u32, pending: Vec<ToolCall> },
    /// The last item.
    Finished(Box<ChatResponse>),
}

type Items = Pin<Box<dyn Stream<Item = Result<ChatEvent, ClientError>> + Send>>;
type Events = Pin<Box<dyn Stream<Item = Result<Event, ClientError>> + Send>>;

/// A stream of a chat. To drop it leaves calls that are being executed; the
/// runs go on without a reader.
pub struct ChatStream {
    items: Items,
    runs: Vec<RunId>,
}

impl fmt::Debug for ChatStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatStream").field("runs", &self.runs).finish_non_exhaustive()
    }
}

impl Stream for ChatStream {
    type Item = Result<ChatEvent, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(cx)
    }
}

impl ChatStream {
    pub(super) fn new(client: Client, posted: Posted, max_rounds: u32, first: Option<Override>) -> Self {
        let runs: Vec<RunId> = posted.runs.iter().filter_map(|reached| reached.run_id.clone()).collect();
        let mut events = SelectAll::new();
        for reached in &posted.runs {
            let Some(run) = &reached.run_id else { continue };
            let fresh = matches!(reached.disposition.as_str(), "started" | "queued");
            let since = (!fresh).then(|| posted.message.id.clone());
            events.push(after_message(client.runs().stream(run), since));
        }
        let mut gather = Gather::default();
        gather.response.runs.clone_from(&runs);
        let talk = Talk {
            client,
            events,
            running: FuturesUnordered::new(),
            looking: FuturesUnordered::new(),
            ready: VecDeque::new(),
            cancels: HashMap::new(),
            unhandled: Vec::new(),
            parked: false,
            rounds: BTreeSet::new(),
            max_rounds,
            first,
            gather,
            state: State::Open,
        };
        let items = unfold(talk, |mut talk| async move {
            let item = Box::pin(talk.next()).await?;
            Some((item, talk))
        });
        Self { items: Box::pin(items), runs }
    }

    /// The runs that the message reached.
    pub fn runs(&self) -> &[RunId] {
        &self.runs
    }

    /// Reads to the end. Stops early when only calls are left that nobody here
    /// executes.
    pub async fn response(mut self) -> Result<ChatResponse, ClientError> {
        let mut pending = Vec::new();
        while let Some(item) = self.next().await {
            match item? {
                ChatEvent::Finished(response) => return Ok(*response),
                ChatEvent::Unhandled(calls) => {
                    pending = calls;
                    break;
                }
                _ => {}
            }
        }
        let status = "waiting_tool".to_owned();
        Ok(ChatResponse { runs: self.runs.clone(), status, pending, ..ChatResponse::default() })
    }
}

/// A run that was live before: what it did before it got the message is not
/// an answer to it.
fn after_message(events: EventStream, since: Option<MessageId>) -> Events {
    let Some(since) = since else { return events.boxed() };
    let mut heard = false;
    let shown = events.filter_map(move |item| {
        if let Ok(Event { kind: EventKind::MessageQueued { message_id }, .. }) = &item
            && *message_id == since
        {
            heard = true;
        }
        let show = heard || item.is_err();
        std::future::ready(show.then_some(item))
    });
    shown.boxed()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The round limit was reached: nothing more is read.
    Closing,
    Over,
}

type Done = (ToolCall, Result<Performed, ClientError>);
type Found = Result<Vec<Wait>, ClientError>;

struct Talk {
    client: Client,
    events: SelectAll<Events>,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Calls of runs below, which are announced on streams of their own.
    looking: FuturesUnordered<BoxFuture<'static, Found>>,
    ready: VecDeque<ChatEvent>,
    cancels: HashMap<CallId, CancellationToken>,
    /// Open calls of clients that nobody here executes.
    unhandled: Vec<ToolCall>,
    /// The run does nothing but wait for clients.
    parked: bool,
    /// Steps whose calls were executed here: each is one round of results.
    rounds: BTreeSet<(RunId, u32)>,
    max_rounds: u32,
    first: Option<Override>,
    gather: Gather,
    state: State,
}

impl Talk {
    async fn next(&mut self) -> Option<Result<ChatEvent, ClientError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            match self.state {
                State::Over => return None,
                State::Closing if self.running.is_empty() => return Some(self.finish().await),
                State::Open | State::Closing => {}
            }
            let open = self.state == State::Open;
            if self.parked && self.running.is_empty() && self.looking.is_empty() && !self.unhandled.is_empty()
            {
                self.parked = false;
                self.gather.response.pending.clone_from(&self.unhandled);
                return Some(Ok(ChatEvent::Unhandled(self.unhandled.clone())));
            }
            tokio::select! {
                Some(done) = self.running.next(), if !self.running.is_empty() => {
                    if let Err(error) = self.ended(done) {
                        self.state = State::Over;
                        return Some(Err(error));
                    }
                }
                Some(found) = self.looking.next(), if !self.looking.is_empty() => {
                    // A call that cannot be looked up waits for another client.
                    for wait in found.unwrap_or_default().iter().filter(|wait| wait.may_answer) {
                        self.offered(ToolCall::waiting(wait));
                    }
                }
                item = self.events.next(), if open => match item {
                    None => self.state = State::Closing,
                    Some(Err(error)) => {
                        self.state = State::Over;
                        return Some(Err(error));
                    }
                    Some(Ok(event)) => self.heard(event),
                },
            }
        }
    }

    fn heard(&mut self, event: Event) {
        self.gather.take(&event);
        let run = event.run.clone();
        let kind = event.kind.clone();
        self.ready.push_back(ChatEvent::Run(event));
        match (kind, run) {
            (EventKind::CallReady(call), Some(run)) if call.is_for_clients() => {
                self.offered(ToolCall::announced(&run, &call));
            }
            (EventKind::Returned(returned), _) => {
                self.unhandled.retain(|call| call.id != returned.tool_call_id);
                if let Some(cancel) = self.cancels.remove(&returned.tool_call_id) {
                    cancel.cancel();
                }
            }
            (EventKind::ChildAsked(asked), _) if asked.kind == "client" && asked.may_answer => {
                let (client, run) = (self.client.clone(), Some(asked.child_run_id));
                let filter = WaitFilter { run, kind: Some("client"), ..WaitFilter::default() };
                self.looking.push(Box::pin(async move { client.waits().list(&filter).await }));
            }
            (EventKind::Waiting(waiting), _) => self.parked = waiting.reason == "client",
            _ => {}
        }
    }

    /// A call that a client must execute: is it ours?
    fn offered(&mut self, call: ToolCall) {
        if self.cancels.contains_key(&call.id) || self.state != State::Open {
            return;
        }
        let Some(chosen) = perform::choose(&self.client, &call, self.first.as_ref()) else {
            self.unhandled.push(call);
            return;
        };
        if let (Some(run), Some(step)) = (&call.run, call.step) {
            let round = (run.clone(), step);
            if !self.rounds.contains(&round) {
                if self.max_rounds > 0 && self.rounds.len() >= self.max_rounds as usize {
                    // Never run what can no longer be sent.
                    return self.limit_reached(call);
                }
                self.rounds.insert(round);
            }
        }
        let cancel = CancellationToken::new();
        self.cancels.insert(call.id.clone(), cancel.clone());
        self.ready.push_back(ChatEvent::ToolStart(call.clone()));
        let client = self.client.clone();
        let work = async move {
            let done = perform::perform(client, call.clone(), chosen, cancel).await;
            (call, done)
        };
        self.running.push(Box::pin(work));
    }

    fn limit_reached(&mut self, call: ToolCall) {
        let limit = self.max_rounds;
        self.unhandled.push(call);
        self.gather.response.max_tool_rounds_reached = true;
        self.gather.response.pending.clone_from(&self.unhandled);
        self.client.shared.tell(&ClientEvent::MaxToolRoundsReached { limit });
        self.ready.push_back(ChatEvent::MaxToolRoundsReached { limit, pending: self.unhandled.clone() });
        self.state = State::Closing;
    }

    fn ended(&mut self, (call, done): Done) -> Result<(), ClientError> {
        match done? {
            Performed::Sent(outcome) => {
                self.gather.response.tool_results.push((call.clone(), outcome.clone()));
                self.ready.push_back(ChatEvent::ToolResult { call, outcome });
            }
            // Its outcome comes with the run's own events.
            Performed::Elsewhere | Performed::Gone => {}
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<ChatEvent, ClientError> {
        self.state = State::Over;
        let response = self.gather.finish();
        let plugins = self.client.shared.registry().plugins();
        for plugin in plugins {
            let name = plugin.name();
            self.client.shared.say(|| format!("hook afterResponse of {name}"));
            if let Err(why) = plugin.after_response(&response).await {
                // The answer is there; a hook's trouble does not take it away.
                tracing::warn!("plugin {name}: afterResponse failed: {why}");
                self.client.shared.say(|| format!("hook afterResponse of {name} failed: {why}"));
            }
        }
        self.client.shared.tell(&ClientEvent::StreamEnd);
        Ok(ChatEvent::Finished(Box::new(response)))
    }
}
