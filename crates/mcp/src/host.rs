//! The host: all servers of a gateway, each started once and shared as its
//! settings say.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_egress::Door;
use toolyard_protocol::{Hash, limits};
use toolyard_schema::Schemas;

use crate::answer::Paused;
use crate::call::{self, Call, Outcome, Times};
use crate::keeper;
use crate::link::{Key, Link, Order};
use crate::listing::Difference;
use crate::login::{Account, Login, Logins};
use crate::name;
use crate::settings::{Era, Launch, Origin, Owner, ServerName, ServerSettings, Share, Sharing};
use crate::status::{ServerStatus, State};
use crate::task::{self, Ticket};
use crate::tool::McpTool;
use crate::wire::http::Bearer;

/// Changes that a slow listener may miss; it then reads the catalogue anew.
const CHANGES: usize = 256;
const NO_LOGINS: &str =
    "this server has no logins: they need a url without an authorization header and sharing = \"user\"";
/// A connection that waits for a login looks for one at most so often.
const RETRY: Duration = Duration::from_secs(1);
/// How long [`Host::stop`] waits for programs to end.
const STOP: Duration = Duration::from_secs(5);

/// Which doors the host uses.
#[derive(Debug, Clone)]
pub struct Doors {
    /// To addresses that the operator wrote.
    pub operator: Door,
    /// To addresses of everybody else: agents, and what servers point to.
    pub guarded: Door,
}

/// The tools of a run, and what is missing.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// Sorted by server, then by the server's name of the tool.
    pub tools: Vec<McpTool>,
    pub missing: Vec<Missing>,
}

/// A server that gives no tools now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub server: ServerName,
    pub why: String,
    /// The run must not start without it.
    pub required: bool,
    /// A user must log in; see [`Host::login`].
    pub needs_login: bool,
}

/// The tools of a server changed. Runs take it up at their next step.
#[derive(Debug, Clone)]
pub struct Change {
    pub server: ServerName,
    pub owner: Share,
    pub difference: Difference,
}

/// All that connections share.
pub(crate) struct Shared {
    doors: Doors,
    logins: Option<Logins>,
    links: Mutex<HashMap<Key, Arc<Link>>>,
    eras: Mutex<HashMap<Hash, Era>>,
    pub(crate) schemas: Schemas,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) changes: broadcast::Sender<Change>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) const fn door(&self, origin: Origin) -> &Door {
        match origin {
            Origin::Operator => &self.doors.operator,
            Origin::Agent => &self.doors.guarded,
        }
    }
    pub(crate) fn era(&self, server: &Hash) -> Option<Era> {
        lock(&self.eras).get(server).copied()
    }
    pub(crate) fn remember_era(&self, server: &Hash, era: Era) {
        lock(&self.eras).insert(server.clone(), era);
    }
    pub(crate) fn forget_era(&self, server: &Hash) {
        lock(&self.eras).remove(server);
    }
    /// The user's account at a remote server. A header that the settings write
    /// is not mixed with it.
    fn account(&self, share: &Share, settings: &ServerSettings) -> Option<Account> {
        let Launch::Http(remote) = &settings.launch else { return None };
        // One user's login must not serve another.
        if settings.sharing != Sharing::User {
            return None;
        }
        let logins = self.logins.as_ref().filter(|_| !remote.headers.contains_key("authorization"))?;
        Some(Account::new(logins, share.clone(), remote, self.doors.guarded.clone()))
    }
    pub(crate) fn bearer(&self, link: &Link) -> Option<Arc<dyn Bearer>> {
        let account = self.account(&link.key.1, &link.settings)?;
        Some(Arc::new(account))
    }
    /// A user may have logged in by another process meanwhile: then the
    /// connection that waits for it is tried again.
    async fn hope(&self, link: &Link) {
        let now = link.snapshot();
        if !matches!(now.state, State::NeedsAuth { .. }) || now.since.elapsed() < RETRY {
            return;
        }
        let account = self.account(&link.key.1, &link.settings);
        if let Some(account) = account
            && account.is_known().await.unwrap_or(false)
        {
            link.wake(true);
        }
    }
    pub(crate) fn forget(&self, link: &Arc<Link>) {
        let mut links = lock(&self.links);
        if links.get(&link.key).is_some_and(|known| Arc::ptr_eq(known, link)) && !self.stop.is_cancelled() {
            links.remove(&link.key);
        }
    }
}

/// Holds every connection of the gateway. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("links", &lock(&self.shared.links).len()).finish_non_exhaustive()
    }
}

impl Host {
    /// Without `logins` a server that asks for one stays out of reach.
    pub fn new(doors: Doors, schemas: Schemas, logins: Option<Logins>) -> Self {
        let shared = Shared {
            doors,
            logins,
            links: Mutex::default(),
            eras: Mutex::default(),
            schemas,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            changes: broadcast::Sender::new(CHANGES),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The connection for a call, made if there is none.
    fn link(&self, owner: &Owner, settings: &ServerSettings) -> Result<Arc<Link>, String> {
        let key = (settings.fingerprint(), settings.share(owner));
        let mut links = lock(&self.shared.links);
        if let Some(link) = links.get(&key) {
            link.touch();
            return Ok(Arc::clone(link));
        }
        if self.shared.stop.is_cancelled() {
            return Err("the gateway is stopping".to_owned());
        }
        if links.len() >= limits::MCP_LINKS {
            return Err(format!("the gateway holds {} MCP connections already", limits::MCP_LINKS));
        }
        let (link, orders) = Link::new(key.clone(), settings.clone(), self.shared.stop.child_token());
        links.insert(key, Arc::clone(&link));
        if settings.enabled {
            self.shared.tasks.spawn(keeper::keep(Arc::clone(&self.shared), Arc::clone(&link), orders));
        }
        Ok(link)
    }

    /// Starts servers without waiting for them.
    pub fn start(&self, owner: &Owner, servers: &[ServerSettings]) {
        for settings in servers {
            let _ = self.link(owner, settings);
        }
    }

    /// The tools that `owner` has on `servers`. All servers start at once.
    /// One that is not ready within `patience` is missing, unless it is
    /// required: then its whole time to start is waited for.
    pub async fn catalogue(
        &self,
        owner: &Owner,
        servers: &[ServerSettings],
        patience: Duration,
    ) -> Catalogue {
        let now = Instant::now();
        let waits = servers.iter().map(|settings| async move {
            let link = self.link(owner, settings)?;
            self.shared.hope(&link).await;
            link.wake(false);
            let until = now + if settings.required { settings.start.max(patience) } else { patience };
            let seen = link.wait(until, |now| now.listing.is_some() || now.state.is_hopeless()).await;
            if seen
                .listing
                .as_ref()
                .is_some_and(|listing| listing.stale.is_some_and(|at| at < Instant::now()))
            {
                link.order(Order::Relist);
            }
            Ok::<_, String>(seen)
        });
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (settings, seen) in servers.iter().zip(join_all(waits).await) {
            let lacks = |why: String, needs_login| Missing {
                server: settings.name.clone(),
                why,
                required: settings.required,
                needs_login,
            };
            match seen {
                Err(why) => missing.push(lacks(why, false)),
                Ok(seen) => match (&seen.state, &seen.listing) {
                    (State::Failed { .. } | State::Disabled | State::Stopped, _) | (_, None) => {
                        let why =
                            seen.state.why().map_or_else(|| seen.state.word().to_owned(), str::to_owned);
                        missing.push(lacks(why, matches!(seen.state, State::NeedsAuth { .. })));
                    }
                    (_, Some(listing)) => {
                        found.extend(
                            listing
                                .tools
                                .values()
                                .filter(|tool| settings.offers(&tool.raw))
                                .map(|tool| (settings, Arc::clone(tool))),
                        );
                    }
                },
            }
        }
        found.sort_by(|a, b| (&a.0.name, &a.1.raw).cmp(&(&b.0.name, &b.1.raw)));
        let keys: Vec<_> = found.iter().map(|(settings, tool)| (&settings.name, tool.raw.as_str())).collect();
        let names = name::assign(&keys);
        let tools = names
            .into_iter()
            .zip(&found)
            .map(|(name, (settings, tool))| McpTool {
                name,
                server: settings.name.clone(),
                risk: tool.hints.risk(&tool.raw, settings.trusted),
                trusted: settings.trusted,
                tool: Arc::clone(tool),
            })
            .collect();
        Catalogue { tools, missing }
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub async fn call(&self, owner: &Owner, settings: &ServerSettings, call: Call) -> Outcome {
        if !settings.offers(&call.tool) {
            let why = format!("tool {:?} of MCP server {} is not allowed", call.tool, settings.name);
            return Outcome::NotSent { why, needs_login: false };
        }
        self.run(owner, settings, call, |link, owner, mut call| async move {
            let task = call.resume.as_ref().and_then(|(paused, _)| task::ticket_of(paused));
            match task {
                None => call::make(&link, &owner, call).await,
                Some(ticket) => {
                    let answers = call.resume.take().map(|(_, answers)| answers).unwrap_or_default();
                    task::answer(&link, &owner, ticket, &answers, &call).await
                }
            }
        })
        .await
    }

    /// Goes on with a paused call: the same call, with the replies by key.
    pub async fn resume(
        &self,
        owner: &Owner,
        settings: &ServerSettings,
        mut call: Call,
        paused: Paused,
        replies: Map<String, Value>,
    ) -> Outcome {
        call.resume = Some((paused, replies));
        self.call(owner, settings, call).await
    }

    /// Follows a task to its end or its next question. `call` brings the
    /// callbacks and the cancellation; its tool is not called again.
    pub async fn follow(
        &self,
        owner: &Owner,
        settings: &ServerSettings,
        ticket: Ticket,
        call: Call,
    ) -> Outcome {
        self.run(owner, settings, call, |link, owner, call| async move {
            task::follow(&link, &owner, ticket, &call).await
        })
        .await
    }

    /// Runs work on a task of its own, so that a caller who goes away leaves a
    /// cancellation behind and not a server at work.
    async fn run<F, W>(&self, owner: &Owner, settings: &ServerSettings, mut call: Call, work: W) -> Outcome
    where
        W: FnOnce(Arc<Link>, Owner, Call) -> F,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let link = match self.link(owner, settings) {
            Ok(link) => link,
            Err(why) => return Outcome::NotSent { why, needs_login: false },
        };
        self.shared.hope(&link).await;
        call.times = Times::of(settings);
        call.cancel = call.cancel.child_token();
        let _cancel_on_drop = call.cancel.clone().drop_guard();
        let work = work(link, owner.clone(), call);
        match self.shared.tasks.spawn(work).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::Unknown("the call broke off inside the gateway".to_owned()),
        }
    }

    /// Begins a login of `owner` at a server that asks for one.
    pub async fn login(&self, owner: &Owner, settings: &ServerSettings) -> Result<Login, String> {
        let share = settings.share(owner);
        let account = self.shared.account(&share, settings).ok_or(NO_LOGINS)?;
        let key = (settings.fingerprint(), share);
        let link = lock(&self.shared.links).get(&key).cloned();
        let challenge = link.and_then(|link| match link.snapshot().state {
            State::NeedsAuth { challenge, .. } => challenge,
            _ => None,
        });
        Box::pin(account.begin(challenge)).await
    }

    /// Finishes a login with the address that the user came back to, then
    /// connects. Any process may do it.
    pub async fn finish_login(
        &self,
        owner: &Owner,
        settings: &ServerSettings,
        callback: &str,
    ) -> Result<(), String> {
        let share = settings.share(owner);
        let account = self.shared.account(&share, settings).ok_or(NO_LOGINS)?;
        Box::pin(account.finish(callback)).await?;
        self.link(owner, settings)?.wake(true);
        Ok(())
    }

    /// Forgets the tokens of `owner` at a server.
    pub async fn log_out(&self, owner: &Owner, settings: &ServerSettings) -> Result<(), String> {
        let share = settings.share(owner);
        let account = self.shared.account(&share, settings).ok_or(NO_LOGINS)?;
        account.forget().await?;
        self.link(owner, settings)?.wake(true);
        Ok(())
    }

    /// Has `owner` logged in at a server?
    pub async fn is_logged_in(&self, owner: &Owner, settings: &ServerSettings) -> Result<bool, String> {
        let account = self.shared.account(&settings.share(owner), settings).ok_or(NO_LOGINS)?;
        account.is_known().await
    }

    /// Reads the tools of a server again, or tries a failed one at once.
    pub fn refresh(&self, owner: &Owner, settings: &ServerSettings) {
        if let Ok(link) = self.link(owner, settings) {
            let works = matches!(link.snapshot().state, State::Ready);
            if works {
                link.order(Order::Relist);
            } else {
                link.wake(true);
            }
        }
    }

    /// How every connection is, sorted by server.
    pub fn status(&self) -> Vec<ServerStatus> {
        let links: Vec<Arc<Link>> = lock(&self.shared.links).values().cloned().collect();
        let mut all: Vec<ServerStatus> = links.iter().map(|link| link.status()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Hears of changed tools from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// Ends every connection and every program.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        let _ = tokio::time::timeout(STOP, self.shared.tasks.wait()).await;
    }
}
