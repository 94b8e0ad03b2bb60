//! The worker of one run: fold the log, perform what is due, append what
//! follows. One task per active run; the model's stream is read in it.
//!
//! Recovery is the same path: fold, `due`, go. The worker never decides what a
//! run does next, it only carries the engine's word out.

mod append;
mod context;
mod deed;
mod draft;
mod gate;
mod history;
mod hooked;
mod plugins;
mod prompted;
mod scribe;
mod search;
mod servers;
mod speaking;
mod tools;
mod toolset;
mod turns;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolyard_engine::{Effect, EffectId, Input, Note, Run};
use toolyard_plugins::hooks::Stopped;
use toolyard_protocol::{CallId, ErrorCode, RunId, TenantId, Timestamp, limits};
use toolyard_store::log::{self, Logged};
use toolyard_store::{Commit, News, StoreError, Watch, runs};

use crate::agents::{Found, LoadedAgent, LoadedTools};
use crate::earlier::Earlier;
use crate::parked::Parked;
use crate::runtime::{Runtime, Start, Tail};
use context::{Debt, Squeezed};
use history::Past;
pub(crate) use hooked::TOGETHER;
pub(crate) use scribe::step_parts;
pub(crate) use search::SEARCH;
use speaking::{Heard, Speaking};
use tools::{FromHands, Hands};

/// Why a worker ends before its run does.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The run belongs to another owner now, or to nobody.
    Lost,
    /// It cannot go on here; another try may.
    Broken(StoreError),
}

impl From<StoreError> for Stop {
    fn from(e: StoreError) -> Self {
        Self::Broken(e)
    }
}

pub(crate) struct Worker {
    rt: Arc<Runtime>,
    tenant: TenantId,
    id: RunId,
    epoch: i64,
    /// The last event that was folded.
    seq: i64,
    run: Run,
    /// Or why it cannot run here: its calls fail and its next step ends the run.
    agent: Result<Arc<LoadedAgent>, String>,
    /// MCP servers that gave no tools to the last step.
    missing: BTreeSet<String>,
    /// Plugins that gave none.
    withdrawn: plugins::Withdrawn,
    /// The hooks of the step, once they are here.
    hooks: Option<plugins::Hooks>,
    /// The trace of a step that the model works on: the log has it with the reply.
    course: Option<serde_json::Value>,
    /// A critical plugin stopped the run where it cannot end yet.
    doomed: Option<Stopped>,
    /// The ones that the log names, once they are here.
    tools: Option<Arc<LoadedTools>>,
    recovered: bool,
    /// The end of the log of a run that has just begun, or just been woken.
    tail: Option<Commit>,
    speaking: Option<Speaking>,
    hands: Hands,
    /// When the calls of this worker began, for their count.
    began: HashMap<CallId, Instant>,
    watch: Watch,
    clock: append::DatabaseClock,
    /// Turns before this one are stored as they stay.
    first_open_turn: u32,
    /// What was said before the run, once it was read.
    before: Option<Past>,
    /// The same, fresh from the transaction that started the worker.
    earlier: Option<Earlier>,
    /// The last append also gave the run up.
    released: bool,
    /// The step whose results the plugins have seen.
    amended: Option<u32>,
    /// The space knows that its words are tainted.
    taint_told: bool,
    /// The call whose conversation the vendor found too long.
    squeezed: Option<Squeezed>,
    /// What was used and is not in the log yet.
    debt: Option<Debt>,
    /// What readers were warned of already.
    warned: Vec<Note>,
}

impl Worker {
    pub(crate) fn new(rt: Arc<Runtime>, start: Start) -> Self {
        let Start { tenant, run: id, epoch, tail, recovered } = start;
        let (tail, watch, earlier) = match tail {
            Some(Tail { commit, watch, earlier }) => (Some(commit), Some(watch), earlier),
            None => (None, None, None),
        };
        Self {
            // Listen first, then read: no fact falls between.
            watch: watch.unwrap_or_else(|| rt.store.feed().watch_run(&id)),
            tenant,
            run: Run::new(id.clone()),
            id,
            epoch,
            seq: 0,
            recovered,
            tail,
            agent: Err("The agent is not loaded".to_owned()),
            missing: BTreeSet::new(),
            withdrawn: plugins::Withdrawn::default(),
            hooks: None,
            course: None,
            doomed: None,
            tools: None,
            speaking: None,
            hands: Hands::default(),
            began: HashMap::new(),
            clock: append::DatabaseClock::default(),
            first_open_turn: 0,
            before: None,
            earlier,
            released: false,
            amended: None,
            taint_told: false,
            squeezed: None,
            debt: None,
            warned: Vec::new(),
            rt,
        }
    }

    /// Advances the run until it is parked, finished or lost.
    pub(crate) async fn drive(mut self) -> Result<(), Stop> {
        let recovered = self.recovered;
        self.fold_log().await?;
        self.load_agent().await?;
        self.first_open_turn = self.run.turn().saturating_sub(1);
        self.taint_told = self.run.created().is_some_and(|created| created.tainted);
        let why = if recovered { "the node that worked on it stopped" } else { "" };
        self.tell(Input::Claimed { recovered, why: why.to_owned() }).await?;
        let hand_back = self.rt.handing_back.clone();
        let tick = self.rt.settings.tick;
        let mut looked = std::time::Instant::now();
        let mut looks = tokio::time::interval_at(tokio::time::Instant::now() + tick, tick);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.run.is_finished() || self.run.is_parked() {
                if self.park().await? {
                    self.close_trace();
                    self.close_hooks().await;
                    self.keep_parked();
                    return Ok(());
                }
                continue;
            }
            self.released = false;
            self.align().await?;
            if self.run.is_finished() || self.run.is_parked() {
                continue;
            }
            if self.run.halting() && self.is_idle() {
                self.tell(Input::Halted { said: None }).await?;
                continue;
            }
            tokio::select! {
                biased;
                () = hand_back.cancelled() => return Box::pin(self.hand_back()).await,
                _ = self.watch.committed.changed() => self.hear_news().await?,
                heard = next_word(&mut self.speaking) => self.heard(heard).await?,
                Some(news) = self.hands.next() => match news {
                    FromHands::Word(call, word) => self.hear_word(call, word).await?,
                    FromHands::Done(done) => {
                        toolyard_store::failpoint!("tool.before_outcome_commit");
                        self.ended(done).await?;
                    }
                },
                // Other nodes' facts also come without notifications, a little later.
                _ = looks.tick(), if !self.rt.store.is_sqlite() => {
                    if !self.rt.store.feed().may_rest(looked) {
                        looked = std::time::Instant::now();
                        self.hear_facts().await?;
                    }
                }
            }
        }
    }

    /// Whoever answers soon need not fold the log again.
    fn keep_parked(&self) {
        if !self.run.is_finished() {
            let (tenant, id, seq, run) = (self.tenant.clone(), self.id.clone(), self.seq, self.run.clone());
            self.rt.parking.put(Parked { tenant, id, seq, run });
        }
    }

    fn is_idle(&self) -> bool {
        self.speaking.is_none() && self.hands.is_empty()
    }

    /// Reads the log, or takes it from whoever has just written it: all of it,
    /// or what follows the place where the run was parked here.
    async fn fold_log(&mut self) -> Result<(), Stop> {
        if let Some(Parked { seq, run, .. }) = self.rt.parking.take(&self.tenant, &self.id) {
            (self.seq, self.run) = (seq, run);
        }
        if let Some(commit) = self.tail.take().filter(|commit| commit.after == self.seq) {
            self.fold_commit(&commit);
            return Ok(());
        }
        while self.catch_up().await? == usize::try_from(limits::LOG_PAGE).unwrap_or(usize::MAX) {}
        Ok(())
    }

    fn fold_commit(&mut self, commit: &Commit) {
        commit.events.iter().for_each(|event| self.run.fold(event));
        self.seq = commit.after + i64::try_from(commit.events.len()).unwrap_or(0);
        self.clock.saw(commit.at);
    }

    fn fold(&mut self, log: &[Logged]) {
        for logged in log {
            self.run.fold(&logged.event);
            self.seq = logged.seq;
            self.clock.saw(logged.at);
        }
    }

    /// Folds what is new in the log; answers how many events. In the same
    /// snapshot it looks whether the run is still this worker's: what the next
    /// owner wrote must not be carried out here a second time.
    async fn catch_up(&mut self) -> Result<usize, Stop> {
        let (tenant, id, seq) = (self.tenant.clone(), self.id.clone(), self.seq);
        let (epoch, owner) = (self.epoch, self.rt.owner.clone());
        let log: Option<Vec<Logged>> = self
            .patiently(move |tx| {
                let (tenant, id, owner) = (tenant.clone(), id.clone(), owner.clone());
                Box::pin(async move {
                    if !runs::holds(tx, &tenant, &id, epoch, &owner).await? {
                        return Ok(None);
                    }
                    log::read(tx, &tenant, &id, seq, limits::LOG_PAGE).await.map(Some)
                })
            })
            .await?;
        let log = log.ok_or(Stop::Lost)?;
        self.fold(&log);
        Ok(log.len())
    }

    /// A commit was announced; most are this worker's own.
    async fn hear_news(&mut self) -> Result<(), Stop> {
        let News { seq, commit } = self.watch.committed.borrow_and_update().clone();
        if seq <= self.seq {
            return Ok(());
        }
        // A fact that woke the run gave it to another worker.
        if commit.as_ref().is_some_and(|commit| commit.epoch != self.epoch) {
            return Err(Stop::Lost);
        }
        match commit.filter(|commit| commit.after == self.seq) {
            Some(commit) => {
                self.fold_commit(&commit);
                self.tell(Input::Woken).await
            }
            None => self.hear_facts().await,
        }
    }

    async fn hear_facts(&mut self) -> Result<(), Stop> {
        if self.catch_up().await? > 0 {
            self.tell(Input::Woken).await?;
        }
        Ok(())
    }

    /// Loads the version that the run is pinned to.
    async fn load_agent(&mut self) -> Result<(), Stop> {
        let hash = self.run.created().and_then(|c| c.agent_version.shown().cloned());
        let hash = hash.ok_or_else(|| StoreError::broken("a run without an agent version"))?;
        if let Some(agent) = self.rt.agents.cached(&self.tenant, &hash) {
            self.agent = Ok(agent);
            return Ok(());
        }
        let (rt, tenant) = (self.rt.clone(), self.tenant.clone());
        let found = self
            .patiently(move |tx| {
                let (rt, tenant, hash) = (rt.clone(), tenant.clone(), hash.clone());
                Box::pin(async move { rt.agents.load(tx, &tenant, &hash).await })
            })
            .await?;
        self.agent = match found {
            Found::Agent(agent) => Ok(agent),
            Found::Nothing => Err("The agent's version is gone".to_owned()),
            Found::Unusable(why) => Err(format!("The agent cannot run on this release. {why}")),
        };
        Ok(())
    }

    /// Starts what is due and not in flight; aborts what is in flight and no
    /// longer due.
    async fn align(&mut self) -> Result<(), Stop> {
        self.bring_tools().await?;
        self.bring_hooks().await?;
        self.pass_answers_on();
        let due = self.run.due();
        let ids: Vec<EffectId> = due.iter().map(Effect::id).collect();
        self.hands.keep(&ids);
        if let Some(speaking) = self.speaking.take_if(|s| !ids.contains(&s.id)) {
            let said = speaking.silence();
            let said = self.with_debt(said);
            if self.run.halting() {
                self.hands.keep(&[]);
                self.tell(Input::Halted { said }).await?;
                return Ok(());
            }
        }
        if self.perform_deed(&due).await? {
            return Ok(());
        }
        for effect in due {
            match effect {
                Effect::CallModel { .. } if self.speaking.is_none() => self.speak(effect).await?,
                Effect::CallModel { .. } => {}
                Effect::RunTool { .. } => self.start_tool(effect),
                Effect::Route { .. } => {
                    let routed = self.route_again(effect).await?;
                    // Its append changes what is due: look again.
                    self.tell(Input::Routed(routed)).await?;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The time to finish is over. What cannot be repeated is said to be
    /// uncertain now, since nobody will know better later.
    async fn hand_back(mut self) -> Result<(), Stop> {
        self.speaking = None;
        self.hands.keep(&[]);
        let why = "the gateway stopped".to_owned();
        self.tell(Input::Claimed { recovered: true, why }).await?;
        while self.run.is_finished() || self.run.is_parked() {
            if self.park().await? {
                return Ok(());
            }
        }
        self.release().await
    }

    /// The space whose readers hear this run.
    fn heard_in(&self) -> Option<toolyard_protocol::SpaceId> {
        self.run.created().filter(|c| c.parent.is_none()).and_then(|c| c.space.clone())
    }

    /// The space that the run belongs to.
    fn space(&self) -> Option<toolyard_protocol::SpaceId> {
        self.run.created().and_then(|c| c.space.clone())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Ends the run because something that it needs is gone.
    async fn fail(&mut self, code: ErrorCode, message: &str, detail: String) -> Result<(), Stop> {
        let input = Input::ModelFailed { code, message: message.to_owned(), detail, said: None };
        self.tell(input).await
    }
}

impl Drop for Worker {
    /// Half a step is void without its worker: nobody must see it any more.
    fn drop(&mut self) {
        self.rt.store.feed().forget(&self.id, self.heard_in().as_ref());
    }
}

/// The next word of the model, or never.
async fn next_word(speaking: &mut Option<Speaking>) -> Heard {
    match speaking {
        Some(speaking) => speaking.hear().await,
        None => std::future::pending().await,
    }
}

/// Between tries of a database that does not answer; the last one repeats.
const PATIENCE: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

impl Worker {
    /// Rests after the n-th failure. Nobody else takes the run while this node
    /// lives, so the worker stays until the database is back.
    async fn rest(&mut self, failures: usize) -> Result<(), Stop> {
        let pause = PATIENCE[failures.min(PATIENCE.len() - 1)];
        let over = self.rt.handing_back.clone();
        let woken = over.run_until_cancelled(tokio::time::sleep(pause)).await;
        woken.ok_or(Stop::Lost)
    }

    /// Writes what does no harm twice, and tries again while the database is away.
    async fn insistently<F>(&mut self, write: F) -> Result<(), Stop>
    where
        F: for<'t, 'c> Fn(
                &'t mut toolyard_store::Tx<'c>,
            ) -> futures::future::BoxFuture<'t, Result<(), StoreError>>
            + Clone
            + Send
            + 'static,
    {
        let mut failures = 0;
        loop {
            let again = write.clone();
            match self.rt.store.write(move |tx| again(tx)).await {
                Err(StoreError::Unavailable(_) | StoreError::Full(_)) => {
                    self.rest(failures).await?;
                    failures += 1;
                }
                other => return Ok(other?),
            }
        }
    }

    /// Reads, and tries again while the database is away.
    async fn patiently<T, F>(&mut self, read: F) -> Result<T, Stop>
    where
        F: for<'t, 'c> Fn(
                &'t mut toolyard_store::Tx<'c>,
            ) -> futures::future::BoxFuture<'t, Result<T, StoreError>>
            + Clone
            + Send
            + 'static,
        T: Send + 'static,
    {
        let mut failures = 0;
        loop {
            let again = read.clone();
            match self.rt.store.read(move |tx| again(tx)).await {
                Err(StoreError::Unavailable(_)) => {
                    self.rest(failures).await?;
                    failures += 1;
                }
                other => return Ok(other?),
            }
        }
    }
}
