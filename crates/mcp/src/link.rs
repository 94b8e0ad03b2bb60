//! One connection and its task: started, watched, mended, given up. All that
//! others know of it is its snapshot.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::Hash;

use crate::connect::Live;
use crate::fault::Fault;
use crate::listing::Listing;
use crate::settings::{Launch, ServerSettings, Share};
use crate::status::{ServerStatus, State};

/// Orders that wait for the task; more are dropped, as they only repeat.
const ORDERS: usize = 16;

/// Knows a connection again.
pub(crate) type Key = (Hash, Share);

/// What others may ask of a connection's task.
#[derive(Debug)]
pub(crate) enum Order {
    /// Somebody needs it: try again if the pause is over, or at once.
    Wake { at_once: bool },
    /// Read the tools again.
    Relist,
    /// A call got no answer: a session that the server forgot looks like this.
    Renew,
    /// A call met this fault.
    Suspect(Fault),
}

/// All that is known of a connection now.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) state: State,
    pub(crate) since: Instant,
    pub(crate) live: Option<Live>,
    pub(crate) listing: Option<Arc<Listing>>,
    pub(crate) generation: u64,
    pub(crate) connections: u32,
}

/// The shared side of a connection.
pub(crate) struct Link {
    pub(crate) key: Key,
    pub(crate) settings: ServerSettings,
    snapshot: watch::Sender<Snapshot>,
    orders: mpsc::Sender<Order>,
    used: Mutex<Instant>,
    pub(crate) stop: CancellationToken,
}

impl Link {
    pub(crate) fn new(
        key: Key,
        settings: ServerSettings,
        stop: CancellationToken,
    ) -> (Arc<Self>, mpsc::Receiver<Order>) {
        let (orders, inbox) = mpsc::channel(ORDERS);
        let first = Snapshot {
            state: if settings.enabled { State::Starting } else { State::Disabled },
            since: Instant::now(),
            live: None,
            listing: None,
            generation: 0,
            connections: 0,
        };
        let link = Self {
            key,
            settings,
            snapshot: watch::Sender::new(first),
            orders,
            used: Mutex::new(Instant::now()),
            stop,
        };
        (Arc::new(link), inbox)
    }

    /// Says that somebody uses it now.
    pub(crate) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
    pub(crate) fn unused_for(&self) -> Duration {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.try_send(order);
    }

    /// Somebody needs the connection. What was hopeless is not, if now is the
    /// time to try again: whoever looks next waits for the try.
    pub(crate) fn wake(&self, at_once: bool) {
        self.snapshot.send_if_modified(|now| {
            let hope = match &now.state {
                State::Failed { until, .. } => at_once || *until <= Instant::now(),
                State::NeedsAuth { .. } => at_once,
                State::Disabled
                | State::Starting
                | State::Ready
                | State::Degraded { .. }
                | State::BackingOff { .. }
                | State::Stopped => false,
            };
            if hope {
                (now.state, now.since) = (State::Starting, Instant::now());
            }
            hope
        });
        self.order(Order::Wake { at_once });
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    pub(crate) fn set(&self, state: State) {
        self.snapshot.send_modify(|now| {
            if now.state != state {
                tracing::info!(server = %self.settings.name, from = now.state.word(), to = state.word(), why = state.why().unwrap_or_default(), "an MCP server changed its state");
                now.since = Instant::now();
            }
            if !matches!(state, State::Ready) {
                now.live = None;
            }
            now.state = state;
        });
    }

    /// A new connection works.
    pub(crate) fn ready(&self, live: Live, listing: Listing) {
        self.set(State::Ready);
        self.snapshot.send_modify(|now| {
            now.live = Some(live);
            now.listing = Some(Arc::new(listing));
            now.connections += 1;
            now.generation += 1;
        });
    }

    /// The same connection has a new list.
    pub(crate) fn relisted(&self, listing: Listing) {
        self.snapshot.send_modify(|now| {
            now.listing = Some(Arc::new(listing));
            now.generation += 1;
        });
    }

    /// Waits for something, at most until `until`. Answers what is known then.
    pub(crate) async fn wait(&self, until: Instant, enough: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let mut seen = self.snapshot.subscribe();
        let waited = tokio::time::timeout_at(until.into(), seen.wait_for(enough)).await;
        match waited {
            Ok(Ok(now)) => now.clone(),
            Ok(Err(_)) | Err(_) => self.snapshot(),
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let now = self.snapshot();
        let until = match &now.state {
            State::BackingOff { until, .. } | State::Failed { until, .. } => Some(*until),
            State::Disabled
            | State::Starting
            | State::Ready
            | State::Degraded { .. }
            | State::NeedsAuth { .. }
            | State::Stopped => None,
        };
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let program = now.live.as_ref().and_then(|live| live.program.as_ref());
        ServerStatus {
            name: self.settings.name.to_string(),
            transport: self.settings.launch.word(),
            origin: self.settings.origin,
            owner: self.key.1.clone(),
            state: now.state.word(),
            why: now.state.why().map(str::to_owned),
            for_ms: ms(now.since.elapsed()),
            retry_in_ms: until.map(|until| ms(until.saturating_duration_since(Instant::now()))),
            era: now.live.as_ref().map(|live| live.era),
            protocol_version: now.live.as_ref().map(|live| live.version.clone()),
            program: program.map(|(name, version)| format!("{name} {version}")),
            tools: now.listing.as_ref().map_or(0, |listing| listing.tools.len()),
            left_out: now.listing.as_ref().map_or_else(Vec::new, |listing| listing.left_out.clone()),
            generation: now.generation,
            restarts: now.connections.saturating_sub(1),
            calls_in_flight: now.live.as_ref().is_some_and(|live| !live.flights.is_empty()),
        }
    }

    pub(crate) const fn is_program(&self) -> bool {
        matches!(self.settings.launch, Launch::Stdio(_))
    }
}
