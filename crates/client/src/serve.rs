//! The worker loop of a program whose tools an agent uses: a robot, a laptop,
//! a service behind a firewall. It looks at what waits, follows what happens,
//! executes the calls that it has code for and answers them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::IntoFuture;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::{CallId, RunId, SpaceId};

use crate::api::WaitFilter;
use crate::call::ToolCall;
use crate::client::Client;
use crate::error::ClientError;
use crate::event::{Event, EventKind};
use crate::perform::{self, Performed};
use crate::stream::EventStream;
use crate::wire::Repeat;

/// Calls that run at once, unless the program says otherwise.
const CONCURRENCY: usize = 16;
/// A claim of another program lasts a minute: what it did not finish is seen
/// again soon after.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Calls that are remembered as not ours, or as done.
const REMEMBERED: usize = 4096;

/// What is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything in a space, for ever.
    Space(SpaceId),
    /// One run and the runs below it, to its end.
    Run(RunId),
}

impl From<&SpaceId> for Scope {
    fn from(space: &SpaceId) -> Self {
        Self::Space(space.clone())
    }
}

impl From<&RunId> for Scope {
    fn from(run: &RunId) -> Self {
        Self::Run(run.clone())
    }
}

/// How often the loop did something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Calls whose outcome the gateway has.
    pub answered: u64,
}

/// A worker loop. Await it.
#[must_use]
#[derive(Debug)]
pub struct ServeTools {
    client: Client,
    scope: Scope,
    concurrency: usize,
    until: CancellationToken,
    look_again: Duration,
}

impl Client {
    /// Executes calls of a space or a run that this client has executors for.
    /// A space is served until `until`; a run until it is over.
    pub fn serve_tools(&self, scope: impl Into<Scope>) -> ServeTools {
        ServeTools {
            client: self.clone(),
            scope: scope.into(),
            concurrency: CONCURRENCY,
            until: CancellationToken::new(),
            look_again: LOOK_AGAIN,
        }
    }
}

impl ServeTools {
    /// Calls that run at once; more wait their turn.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls.max(1);
        self
    }

    /// Stops when the token is cancelled. Calls that run are finished first.
    pub fn until(mut self, stop: CancellationToken) -> Self {
        self.until = stop;
        self
    }

    /// How often to look for calls that another program claimed and left.
    pub fn look_again(mut self, every: Duration) -> Self {
        self.look_again = every;
        self
    }

    async fn run(self) -> Result<Served, ClientError> {
        let Self { client, scope, concurrency, until, look_again } = self;
        introduce(&client).await?;
        // The position first, then what waits: nothing falls in between.
        let events = match &scope {
            Scope::Space(space) => {
                let at = client.spaces().get(space).await?.last_seq;
                client.spaces().stream(space, at)
            }
            Scope::Run(run) => {
                let at = client.runs().get(run).await?.last_seq;
                client.runs().stream_after(run, at)
            }
        };
        let mut desk = Desk {
            client,
            concurrency,
            running: FuturesUnordered::new(),
            queue: VecDeque::new(),
            seen: HashSet::new(),
            cancels: HashMap::new(),
            served: Served::default(),
        };
        desk.look(&scope_filter(&scope)).await?;
        desk.follow(events, &scope, &until, look_again).await?;
        desk.finish().await
    }
}

impl IntoFuture for ServeTools {
    type Output = Result<Served, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Tells the gateway which program this is.
async fn introduce(client: &Client) -> Result<(), ClientError> {
    let tools: Vec<String> = client.tool_definitions().into_iter().map(|tool| tool.name).collect();
    let mut body = json!({
        "clientId": client.id(), "clientType": "rust", "capabilities": { "tools": tools },
    });
    if let Some(name) = &client.shared.name {
        body["name"] = json!(name);
    }
    let _: Value = client.post("/api/clients/register", &body, Repeat::Safely).await?;
    Ok(())
}

fn scope_filter(scope: &Scope) -> WaitFilter {
    let kind = Some("client");
    match scope {
        Scope::Space(space) => WaitFilter { space: Some(space.clone()), kind, ..WaitFilter::default() },
        Scope::Run(run) => WaitFilter { run: Some(run.clone()), kind, ..WaitFilter::default() },
    }
}

type Done = (ToolCall, Result<Performed, ClientError>);

struct Desk {
    client: Client,
    concurrency: usize,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    queue: VecDeque<ToolCall>,
    seen: HashSet<CallId>,
    cancels: HashMap<CallId, CancellationToken>,
    served: Served,
}

impl Desk {
    async fn follow(
        &mut self,
        mut events: EventStream,
        scope: &Scope,
        until: &CancellationToken,
        look_again: Duration,
    ) -> Result<(), ClientError> {
        loop {
            self.fill();
            tokio::select! {
                () = until.cancelled() => return Ok(()),
                Some(done) = self.running.next(), if !self.running.is_empty() => self.ended(done)?,
                event = events.next() => match event {
                    None => return Ok(()),
                    Some(event) => self.heard(event?, scope).await?,
                },
                () = tokio::time::sleep(look_again) => self.look(&scope_filter(scope)).await?,
            }
        }
    }

    async fn heard(&mut self, event: Event, scope: &Scope) -> Result<(), ClientError> {
        match (event.kind, event.run) {
            (EventKind::CallReady(call), Some(run)) if call.is_for_clients() => {
                self.offer(ToolCall::announced(&run, &call));
            }
            (EventKind::Returned(returned), _) => {
                self.queue.retain(|call| call.id != returned.tool_call_id);
                if let Some(cancel) = self.cancels.remove(&returned.tool_call_id) {
                    cancel.cancel();
                }
            }
            // The announcement is on the child's own stream.
            (EventKind::ChildAsked(asked), _) if asked.kind == "client" => {
                let run = Some(asked.child_run_id);
                self.look(&WaitFilter { run, kind: Some("client"), ..WaitFilter::default() }).await?;
            }
            (EventKind::Reset, _) => self.look(&scope_filter(scope)).await?,
            _ => {}
        }
        Ok(())
    }

    /// Takes up what waits in the ledger.
    async fn look(&mut self, filter: &WaitFilter) -> Result<(), ClientError> {
        match self.client.waits().list(filter).await {
            Ok(waits) => {
                for wait in waits.iter().filter(|wait| wait.may_answer && wait.kind == "client") {
                    self.offer(ToolCall::waiting(wait));
                }
                Ok(())
            }
            // The stream says when the gateway is back, or gives up.
            Err(error) if error.passes() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn offer(&mut self, call: ToolCall) {
        if self.seen.len() >= REMEMBERED {
            self.seen.retain(|id| self.cancels.contains_key(id));
        }
        if self.seen.insert(call.id.clone()) {
            self.queue.push_back(call);
        }
    }

    /// Starts what has room.
    fn fill(&mut self) {
        while self.running.len() < self.concurrency
            && let Some(call) = self.queue.pop_front()
        {
            let Some(chosen) = perform::choose(&self.client, &call, None) else {
                let name = &call.name;
                self.client
                    .shared
                    .say(|| format!("No executor for tool: {name}; another client may have one"));
                continue;
            };
            let (client, cancel) = (self.client.clone(), CancellationToken::new());
            self.cancels.insert(call.id.clone(), cancel.clone());
            self.running.push(Box::pin(async move {
                let done = perform::perform(client, call.clone(), chosen, cancel).await;
                (call, done)
            }));
        }
    }

    fn ended(&mut self, (call, done): Done) -> Result<(), ClientError> {
        self.cancels.remove(&call.id);
        match done {
            Ok(Performed::Sent(_)) => self.served.answered += 1,
            Ok(Performed::Gone) => {}
            // Its claim may lapse: look at it again.
            Ok(Performed::Elsewhere) => {
                self.seen.remove(&call.id);
            }
            Err(error) if error.passes() => {
                self.seen.remove(&call.id);
            }
            // One call that this key may not answer is no reason to leave the others.
            Err(ClientError::Refused(refusal)) => {
                tracing::warn!("call {} of tool {} was refused: {}", call.id, call.name, refusal.message);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Served, ClientError> {
        while let Some(done) = self.running.next().await {
            self.ended(done)?;
        }
        Ok(self.served)
    }
}
