//! The task of one connection: start, serve, mend, give up, stop.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::SubscriptionFilter;
use rmcp::service::Subscription;
use tokio::sync::mpsc;

use crate::connect::{Connected, Live, Way, connect};
use crate::environment;
use crate::fault::{Fault, FaultKind};
use crate::health::{Health, Verdict, chance};
use crate::host::{Change, Shared};
use crate::link::{Link, Order};
use crate::listing::{Listing, list};
use crate::settings::{Era, Launch, Sharing};
use crate::status::State;
use crate::wire::last_words::LastWords;

/// Changes come in bursts; one list answers them all.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// A connection of one user that nobody used for so long is closed.
const UNUSED: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_secs(30);
/// How long a program may take to end before we stop waiting for it.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long calls on a connection that is replaced may still finish.
const DRAIN: Duration = Duration::from_secs(60);

/// How serving ended.
enum End {
    Stopped,
    Fault(Fault),
    /// Make a new connection at once; nobody is to blame.
    Again,
}

pub(crate) async fn keep(shared: Arc<Shared>, link: Arc<Link>, mut orders: mpsc::Receiver<Order>) {
    let mut health = Health::default();
    let words = last_words(&link);
    loop {
        let before = link.snapshot();
        if before.listing.is_none() {
            link.set(State::Starting);
        } else if !matches!(before.state, State::Degraded { .. }) {
            let why = before.state.why().unwrap_or("the connection is made anew").to_owned();
            link.set(State::Degraded { why });
        }
        let started = tokio::select! {
            () = link.stop.cancelled() => break,
            started = start(&shared, &link, &words) => started,
        };
        let fault = match started {
            Err(fault) => fault,
            Ok((connected, listing)) => {
                health.up(Instant::now());
                announce(&shared, &link, &listing);
                link.ready(connected.live.clone(), listing);
                match Box::pin(serve(&shared, &link, connected, &mut orders)).await {
                    End::Stopped => break,
                    End::Again => continue,
                    End::Fault(fault) => fault.with_last_words(&words.text()),
                }
            }
        };
        if !rest(&link, &mut orders, &mut health, fault).await {
            break;
        }
    }
    link.set(State::Stopped);
    shared.forget(&link);
}

fn last_words(link: &Link) -> LastWords {
    match &link.settings.launch {
        Launch::Stdio(program) => LastWords::new(environment::given(program)),
        Launch::Http(_) => LastWords::default(),
    }
}

async fn start(shared: &Shared, link: &Link, words: &LastWords) -> Result<(Connected, Listing), Fault> {
    let settings = &link.settings;
    let known = settings.era.or_else(|| shared.era(&link.key.0));
    let way = Way {
        door: shared.door(settings.origin),
        bearer: shared.bearer(link),
        tasks: &shared.tasks,
        words: words.clone(),
        era: known,
    };
    let connected = match connect(settings, &way).await {
        Ok(connected) => connected,
        Err(fault) => {
            // The server may have been replaced by one of the other era.
            shared.forget_era(&link.key.0);
            return Err(fault);
        }
    };
    shared.remember_era(&link.key.0, connected.live.era);
    let listing = list(&settings.name, &connected.live, &shared.schemas, settings.start).await?;
    Ok((connected, listing))
}

fn announce(shared: &Shared, link: &Link, newer: &Listing) {
    let Some(older) = link.snapshot().listing else { return };
    let difference = older.difference(newer);
    if !difference.is_empty() {
        let change = Change { server: link.settings.name.clone(), owner: link.key.1.clone(), difference };
        let _ = shared.changes.send(change);
    }
}

/// Watches a connection that works.
async fn serve(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    connected: Connected,
    orders: &mut mpsc::Receiver<Order>,
) -> End {
    let Connected { service, live } = connected;
    let hang_up = service.cancellation_token();
    let mut ended = Box::pin(service.waiting());
    let mut news = listen(&live).await;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = link.stop.cancelled() => {
                hang_up.cancel();
                let _ = tokio::time::timeout(FAREWELL, ended).await;
                return End::Stopped;
            }
            _ = &mut ended => return End::Fault(Fault::passing("the server ended the connection")),
            () = live.changed.notified() => relist(shared, link, &live).await,
            told = heard(&mut news) => {
                if !told {
                    // The stream ended; a new one starts from the list as it is now.
                    tokio::time::sleep(DEBOUNCE).await;
                    news = listen(&live).await;
                }
                relist(shared, link, &live).await;
            }
            order = orders.recv() => match order {
                None => {
                    hang_up.cancel();
                    let _ = tokio::time::timeout(FAREWELL, ended).await;
                    return End::Stopped;
                }
                Some(Order::Wake { at_once: false }) => {}
                Some(Order::Relist) => relist(shared, link, &live).await,
                Some(Order::Wake { at_once: true }) => {
                    drain(shared, &live, hang_up, ended);
                    return End::Again;
                }
                Some(Order::Renew) => {
                    if !link.is_program() && live.era == Era::Legacy {
                        drain(shared, &live, hang_up, ended);
                        return End::Again;
                    }
                }
                Some(Order::Suspect(fault)) => {
                    // A program is alive as long as its pipes are; one slow
                    // call of it is not its end.
                    if !link.is_program() {
                        drain(shared, &live, hang_up, ended);
                        return End::Fault(fault);
                    }
                }
            },
            _ = look.tick() => {
                let idle = link.settings.sharing != Sharing::Shared
                    && live.flights.is_empty()
                    && link.unused_for() > UNUSED;
                if idle {
                    hang_up.cancel();
                    let _ = tokio::time::timeout(FAREWELL, ended).await;
                    return End::Stopped;
                }
            }
        }
    }
}

type Ended = Pin<Box<dyn Future<Output = Result<rmcp::service::QuitReason, tokio::task::JoinError>> + Send>>;

/// Lets the calls of a connection finish while a new one takes its place.
fn drain(
    shared: &Shared,
    live: &Live,
    hang_up: rmcp::service::RunningServiceCancellationToken,
    ended: Ended,
) {
    let flights = Arc::clone(&live.flights);
    let stop = shared.stop.clone();
    shared.tasks.spawn(async move {
        tokio::select! {
            _ = tokio::time::timeout(DRAIN, flights.all_landed()) => {}
            () = stop.cancelled() => {}
        }
        hang_up.cancel();
        let _ = tokio::time::timeout(FAREWELL, ended).await;
    });
}

/// Servers of the newer era tell of changes on a stream that we must open.
async fn listen(live: &Live) -> Option<Subscription> {
    if live.era == Era::Legacy || !live.announces_changes {
        return None;
    }
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    let opened = tokio::time::timeout(Duration::from_secs(10), live.peer.listen(filter)).await;
    opened.ok()?.ok()
}

/// True for news, false when the stream ended.
async fn heard(news: &mut Option<Subscription>) -> bool {
    match news {
        None => std::future::pending().await,
        Some(subscription) => matches!(subscription.next().await, Ok(Some(_))),
    }
}

async fn relist(shared: &Shared, link: &Link, live: &Live) {
    tokio::time::sleep(DEBOUNCE).await;
    match list(&link.settings.name, live, &shared.schemas, link.settings.start).await {
        Ok(listing) => {
            announce(shared, link, &listing);
            link.relisted(listing);
        }
        Err(fault) => {
            tracing::warn!(server = %link.settings.name, why = fault.text, "the tools of an MCP server cannot be listed again");
        }
    }
}

/// Waits after a failure until it is time to try again. False to stop.
async fn rest(
    link: &Arc<Link>,
    orders: &mut mpsc::Receiver<Order>,
    health: &mut Health,
    fault: Fault,
) -> bool {
    let now = Instant::now();
    let verdict = health.failed(now, &fault, chance());
    let why = fault.text.clone();
    let needs_login = verdict == Verdict::Login;
    let (by_itself, from) = match verdict {
        Verdict::RetryIn(pause) => {
            let why =
                if health.failures() > 1 { format!("{why} ({} failures)", health.failures()) } else { why };
            link.set(State::BackingOff { why, until: now + pause });
            (true, now + pause)
        }
        Verdict::GiveUp(pause) => {
            link.set(State::Failed { why, until: now + pause });
            (false, now + pause)
        }
        Verdict::Login => {
            let challenge = match fault.kind {
                FaultKind::Login { challenge } => challenge,
                FaultKind::Passing { .. } | FaultKind::Lasting => None,
            };
            link.set(State::NeedsAuth { why, challenge });
            (false, now)
        }
    };
    loop {
        tokio::select! {
            () = link.stop.cancelled() => return false,
            () = tokio::time::sleep_until(from.into()), if by_itself => return true,
            order = orders.recv() => match order {
                None => return false,
                Some(Order::Wake { at_once: true }) => return true,
                Some(Order::Wake { at_once: false }) if !needs_login && Instant::now() >= from => return true,
                Some(Order::Wake { .. } | Order::Relist | Order::Renew | Order::Suspect(_)) => {}
            },
            () = tokio::time::sleep(LOOK) => {
                if link.settings.sharing != Sharing::Shared && link.unused_for() > UNUSED {
                    return false;
                }
            }
        }
    }
}
