//! Everything around the nodes: the dice choose who acts, the far side counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use toolyard_dialects::native::event_view;
use toolyard_engine::{Effect, EffectId, Input, Verdict};
use toolyard_protocol::event::Event;
use toolyard_protocol::{CallId, RunId, Timestamp, ToolOutcome, Viewer};
use toolyard_store::{Clock, ManualClock, Settings, Store, StoreError, log, runs, waits};

use super::Bug;
use super::cast;
use super::clients::Pending;
use super::node::{Flight, Lost, Node, Tools, Worker};
use crate::dice::Dice;
use crate::history::{History, Record};

const START_MS: i64 = 1_800_000_000_000;
pub(super) const LEASE_MS: u64 = 4_000;
const MOST_RUNS: usize = 6;

pub(super) struct World {
    pub(super) store: Store,
    pub(super) clock: Arc<ManualClock>,
    pub(super) dice: Dice,
    pub(super) bug: Bug,
    pub(super) nodes: Vec<Node>,
    pub(super) runs: Vec<RunId>,
    pub(super) history: History,
    /// Results and answers whose acknowledgement got lost: sent again.
    pub(super) pending: Vec<Pending>,
    /// Keys that the far side has seen.
    done: BTreeSet<CallId>,
    calls: u32,
    /// Where each run's reader stands.
    cursors: BTreeMap<RunId, i64>,
    /// Faults go on.
    pub(super) stormy: bool,
    _folder: tempfile::TempDir,
}

impl World {
    pub(super) async fn new(seed: u64, bug: Bug) -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("a folder");
        let clock = Arc::new(ManualClock::at(START_MS));
        let settings = Settings::Sqlite { folder: folder.path().join("data") };
        let store = Store::open_with_clock(&settings, clock.clone()).await.expect("a store");
        let mut history = History::default();
        history.push(Record::Began { scenario: "simulation".into(), seed, database: "sqlite".into() });
        cast::tools().for_each(|record| history.push(record));
        let world = Self {
            store,
            clock,
            dice: Dice::new(seed),
            bug,
            nodes: vec![Node::new("a"), Node::new("b")],
            runs: Vec::new(),
            history,
            pending: Vec::new(),
            done: BTreeSet::new(),
            calls: 0,
            cursors: BTreeMap::new(),
            stormy: true,
            _folder: folder,
        };
        for node in 0..2 {
            world.beat(node).await;
        }
        world
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// One thing happens.
    pub(super) async fn step(&mut self) {
        let node = self.dice.below(self.nodes.len());
        let awake = !self.nodes[node].frozen;
        match self.dice.below(100) {
            0..5 => self.new_run().await,
            5..9 => {
                let ms = self.dice.between(50, 1_500);
                self.clock.advance(i64::try_from(ms).unwrap_or(0));
            }
            9..17 if awake => self.beat(node).await,
            17..21 if awake => self.claim(node).await,
            21..24 if awake => self.adopt(node).await,
            24..50 if awake => self.work(node).await,
            50..74 if awake => self.land(node).await,
            74..86 => self.client().await,
            86..88 => self.cancel().await,
            88..92 => self.expire().await,
            92..95 => self.read().await,
            95..97 => self.crash(node).await,
            97 => self.freeze(node),
            98..100 => self.thaw(node),
            _ => {}
        }
    }

    /// Everything is mended; all runs must end. Answers how many rounds it took.
    pub(super) async fn drain(&mut self) -> usize {
        self.stormy = false;
        for node in &mut self.nodes {
            node.frozen = false;
        }
        for round in 0..400 {
            if self.all_ended().await {
                return round;
            }
            self.clock.advance(500);
            for node in 0..self.nodes.len() {
                self.beat(node).await;
                self.claim(node).await;
                self.adopt(node).await;
                self.work(node).await;
                self.land(node).await;
            }
            self.client().await;
            self.expire().await;
        }
        400
    }

    async fn all_ended(&self) -> bool {
        for run in self.runs.clone() {
            let row = self.row(&run).await;
            if !row.status.is_final() {
                return false;
            }
        }
        self.pending.is_empty()
    }

    async fn row(&self, run: &RunId) -> runs::RunRow {
        let (tenant, run) = (cast::tenant(), run.clone());
        let row = self.store.read(move |tx| Box::pin(async move { runs::get(tx, &tenant, &run).await }));
        row.await.map_err(|e: StoreError| e).expect("the store reads").expect("a run")
    }

    async fn new_run(&mut self) {
        if self.runs.len() == MOST_RUNS {
            return;
        }
        if self.bug == Bug::LostRun && self.dice.chance(20) {
            let (key, run) = ("key of nothing".to_owned(), "run_that_was_told".to_owned());
            self.history.push(Record::Made { key, run });
            return;
        }
        let id = RunId::parse(&format!("run_{}", self.runs.len() + 1)).unwrap();
        let new = cast::new_run(&id);
        let node = self.awake_node();
        let owner = node.map(|node| self.nodes[node].owner());
        let events: Arc<[Event]> = vec![cast::created(&new).into()].into();
        let begun = self.store.write(move |tx| {
            Box::pin(async move { log::begin(tx, &new, owner.as_ref(), &events, None).await })
        });
        let row = begun.await.map_err(|e: StoreError| e).expect("the store begins");
        if let Some(node) = node {
            self.start(node, &id, row.epoch, false);
        }
        self.history.push(Record::Made { key: format!("key of {id}"), run: id.to_string() });
        self.runs.push(id);
    }

    /// A node that could take a request now, if the dice want one to.
    pub(super) fn awake_node(&mut self) -> Option<usize> {
        let wanted = self.dice.below(self.nodes.len() + 1);
        self.nodes.get(wanted).filter(|node| !node.frozen).map(|_| wanted)
    }

    pub(super) fn start(&mut self, node: usize, run: &RunId, epoch: i64, recovered: bool) {
        let claim = (!recovered || self.bug != Bug::BlindRepeat).then_some(recovered);
        let owner = self.nodes[node].owner();
        self.nodes[node].workers.insert(run.clone(), Worker::new(run, epoch, owner, claim));
    }

    /// Lets one worker of a node look at its run.
    async fn work(&mut self, node: usize) {
        let Some(run) = self.pick_worker(node) else { return };
        let Some(mut worker) = self.nodes[node].workers.remove(&run) else { return };
        let kept = self.worked(&mut worker).await;
        if let Ok(true) = kept {
            self.nodes[node].workers.insert(run, worker);
        }
    }

    /// False: the run lies on disk now.
    async fn worked(&mut self, worker: &mut Worker) -> Result<bool, Lost> {
        let mut tools = self.tools();
        let news = worker.catch_up(&mut tools).await?;
        match worker.claim.take() {
            Some(recovered) => {
                worker.tell(Input::Claimed { recovered, why: String::new() }, &mut tools).await?
            }
            None if news => worker.tell(Input::Woken, &mut tools).await?,
            None => {}
        }
        let (forgotten, mut lies) = worker.align(&mut tools).await?;
        if worker.run.halting() && worker.in_flight.is_empty() {
            worker.tell(Input::Halted { said: None }, &mut tools).await?;
            lies = worker.align(&mut tools).await?.1;
        }
        let trouble = tools.trouble;
        self.troubled(trouble);
        self.let_go(forgotten);
        Ok(!lies)
    }

    fn tools(&mut self) -> Tools<'_> {
        let now = self.clock.now();
        Tools {
            store: &self.store,
            dice: &mut self.dice,
            now,
            unfenced: self.bug == Bug::NoFencing,
            trouble: 0,
        }
    }

    pub(super) fn troubled(&mut self, times: usize) {
        let now = self.now().millis();
        for _ in 0..times {
            self.history.push(Record::Fault { what: "database".into(), from: now, to: now });
        }
    }

    /// What is broken off may have happened or not.
    fn let_go(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if self.dice.chance(50) {
                self.happen(&effect, true);
            }
        }
    }

    fn pick_worker(&mut self, node: usize) -> Option<RunId> {
        let pick = self.dice.below(self.nodes[node].workers.len());
        self.nodes[node].workers.keys().nth(pick).cloned()
    }

    /// Something in flight comes one step further.
    async fn land(&mut self, node: usize) {
        let Some(run) = self.pick_worker(node) else { return };
        let Some(mut worker) = self.nodes[node].workers.remove(&run) else { return };
        if worker.claim.is_some() || worker.in_flight.is_empty() {
            self.nodes[node].workers.insert(run, worker);
            return;
        }
        let which = self.dice.below(worker.in_flight.len());
        let (id, (effect, flight)) =
            worker.in_flight.iter().nth(which).map(|(id, f)| (id.clone(), f.clone())).expect("it flies");
        if let (Effect::RunTool { .. }, Flight::Begun) = (&effect, &flight) {
            let outcome = self.happen(&effect, false);
            worker.in_flight.insert(id, (effect, Flight::Done(outcome)));
            self.nodes[node].workers.insert(run, worker);
            return;
        }
        if let Ok(true) = self.landed(&mut worker, &id, effect, flight).await {
            self.nodes[node].workers.insert(run, worker);
        }
    }

    async fn landed(
        &mut self,
        worker: &mut Worker,
        id: &EffectId,
        effect: Effect,
        flight: Flight,
    ) -> Result<bool, Lost> {
        worker.in_flight.remove(id);
        let input = match (effect, flight) {
            (Effect::CallModel { step, .. }, _) => {
                let calls = if step > 3 { 0 } else { self.dice.below(4) };
                let calls: Vec<_> = (0..calls).map(|_| self.new_call()).collect();
                if self.bug == Bug::ActFirst {
                    for call in calls.iter().filter(|call| call.verdict == Verdict::Run) {
                        self.effect(&call.call, false);
                    }
                    // And then it dies, now and then.
                    if self.stormy && self.dice.chance(20) {
                        return Err(Lost);
                    }
                }
                Input::ModelReplied { reply: cast::reply("well"), calls }
            }
            (Effect::RunTool { call, .. }, Flight::Done(outcome)) => cast::ended(&call, outcome),
            (Effect::RunTool { .. }, Flight::Begun) => return Ok(true),
            (Effect::Route { call, tool, .. }, _) => {
                Input::Routed(cast::routed(&call, tool.as_str(), self.now(), true))
            }
        };
        let mut tools = self.tools();
        worker.tell(input, &mut tools).await?;
        let (forgotten, lies) = worker.align(&mut tools).await?;
        let trouble = tools.trouble;
        self.troubled(trouble);
        self.let_go(forgotten);
        Ok(!lies)
    }

    fn new_call(&mut self) -> toolyard_engine::RoutedCall {
        self.calls += 1;
        let call = CallId::parse(&format!("call_{}", self.calls)).unwrap();
        let (tool, _) = cast::TOOLS[self.dice.below(cast::TOOLS.len())];
        cast::routed(&call, tool, self.now(), false)
    }

    /// The far side does what a call asks for, and answers or hangs up.
    fn happen(&mut self, effect: &Effect, unheard: bool) -> ToolOutcome {
        let Effect::RunTool { call, idempotent, .. } = effect else { return ToolOutcome::Ok(json!(null)) };
        let cut = unheard || (self.stormy && !idempotent && self.dice.chance(4));
        let skips = self.bug == Bug::SkippedEffect && !cut && self.dice.chance(30);
        if self.bug != Bug::ActFirst && !skips {
            self.effect(call, cut);
        }
        let doubts = self.bug == Bug::EarlyDoubt && self.dice.chance(30);
        match cut || doubts {
            true => ToolOutcome::Uncertain("nobody knows".to_owned()),
            false => ToolOutcome::Ok(json!({ "sent": call })),
        }
    }

    pub(super) fn effect(&mut self, call: &CallId, cut: bool) {
        let repeat = !self.done.insert(call.clone());
        let at = self.now().millis();
        self.history.push(Record::Effect { call: call.to_string(), at, repeat, cut });
    }

    /// A node dies and another life of it begins. What it had in flight may
    /// have happened or not.
    async fn crash(&mut self, node: usize) {
        let now = self.now().millis();
        self.history.push(Record::Fault {
            what: format!("kill {}", self.nodes[node].name),
            from: now,
            to: now,
        });
        let before = self.nodes[node].owner();
        let workers = std::mem::take(&mut self.nodes[node].workers);
        for worker in workers.into_values() {
            let begun = worker.in_flight.into_values().filter(|(_, flight)| *flight == Flight::Begun);
            self.let_go(begun.map(|(effect, _)| effect).collect());
        }
        self.nodes[node].life += 1;
        self.nodes[node].frozen = false;
        self.leave(before).await;
        self.beat(node).await;
    }

    /// A node stands still for longer than its lease.
    fn freeze(&mut self, node: usize) {
        if self.nodes.iter().any(|node| node.frozen) {
            return;
        }
        self.nodes[node].frozen = true;
        let now = self.now().millis();
        let what = format!("stop {}", self.nodes[node].name);
        self.history.push(Record::Fault { what, from: now, to: now + 60_000 });
        self.clock.advance(i64::try_from(LEASE_MS).unwrap_or(0) + 1_000);
    }

    fn thaw(&mut self, node: usize) {
        self.nodes[node].frozen = false;
    }

    /// The reader of a run reads on from where it stands.
    async fn read(&mut self) {
        let pick = self.dice.below(self.runs.len());
        let Some(run) = self.runs.get(pick).cloned() else { return };
        let limit = u32::try_from(self.dice.between(1, 4)).unwrap_or(1);
        self.read_on(&run, limit).await;
    }

    async fn read_on(&mut self, run: &RunId, limit: u32) {
        let from = self.cursors.get(run).copied().unwrap_or(0);
        for (seq, data) in self.log(run, from, limit).await {
            let name = data["type"].as_str().unwrap_or_default().to_owned();
            self.cursors.insert(run.clone(), seq);
            if self.bug == Bug::MissedEvent && self.dice.chance(5) {
                continue;
            }
            let reader = format!("reader of {run}");
            self.history.push(Record::Read { reader, run: run.to_string(), seq, name });
        }
    }

    async fn log(&self, run: &RunId, from: i64, limit: u32) -> Vec<(i64, serde_json::Value)> {
        let (tenant, id) = (cast::tenant(), run.clone());
        let read = self
            .store
            .read(move |tx| Box::pin(async move { log::read(tx, &tenant, &id, from, limit).await }));
        let events = read.await.map_err(|e: StoreError| e).expect("the store reads");
        let viewer = Viewer::secret();
        let told = events.iter().filter_map(|logged| {
            let raw = event_view(run, logged.seq, logged.at, &logged.event, &viewer)?;
            Some((logged.seq, serde_json::from_str(raw.get()).ok()?))
        });
        told.collect()
    }

    /// The whole history: what happened, then every log and row.
    pub(super) async fn told(mut self) -> History {
        for run in self.runs.clone() {
            self.read_on(&run, 10_000).await;
            for (_, data) in self.log(&run, 0, 10_000).await {
                self.history.push(Record::Event { run: run.to_string(), data });
            }
            let row = self.row(&run).await;
            let (tenant, id) = (cast::tenant(), run.clone());
            let open = self
                .store
                .read(move |tx| Box::pin(async move { waits::open_of_run(tx, &tenant, &id).await }));
            let open_waits = open.await.map_err(|e: StoreError| e).expect("the store reads").len();
            let (status, last_seq) = (row.status.as_str().to_owned(), row.last_seq);
            self.history.push(Record::Row { run: run.to_string(), status, last_seq, open_waits });
        }
        self.history
    }
}
