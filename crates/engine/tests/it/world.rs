//! A small world around one run: a store, a worker, clients, a clock and
//! crashes. Every append is checked; the first broken rule is reported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toolyard_engine::facts::{self, Answer};
use toolyard_engine::{AskKind, Effect, EffectId, Input, Reply, RoutedCall, Run, State, Verdict};
use toolyard_protocol::event::ToolReturned;
use toolyard_protocol::limits::RunLimits;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ErrorCode, Event, RunId, ToolOutcome};

use crate::audit::Audit;
use crate::fixture::*;

pub(crate) type Checked = Result<(), String>;

/// One thing that happens. The number picks among what is possible.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    /// The worker looks at what is due.
    Work,
    /// Something in flight comes to its end.
    Land(u16),
    /// Somebody answers an open wait.
    Answer(u16),
    /// The clock ends an open wait.
    Expire(u16),
    /// An input comes that is long over.
    Stale(u16),
    Queue {
        interrupt: bool,
    },
    Supersede,
    Cancel,
    Crash,
}

/// A mistake of the world that the checks must find.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bug {
    None,
    /// The store takes a second result for a call.
    SecondResult,
    /// The worker starts what is due without claiming after a crash.
    NoClaim,
    /// The worker does not fold a fact that another node wrote.
    LostFact,
    /// The worker goes on after the end of the run.
    AfterTheEnd,
    /// The worker drops the pause from its append.
    NoPause,
}

pub(crate) struct World {
    pub(crate) story: Story,
    bug: Bug,
    audit: Audit,
    in_flight: BTreeMap<EffectId, Effect>,
    /// What the model had said when it was aborted.
    said: Option<Reply>,
    /// A node works on the run.
    owned: bool,
    /// The owner has not said yet that it claims; `true`: after a crash.
    claim: Option<bool>,
    /// Facts came since the worker looked.
    news: bool,
    started: BTreeSet<EffectId>,
    calls: u32,
    messages: u32,
}

impl World {
    pub(crate) fn new(bug: Bug) -> Self {
        let limits = RunLimits { max_steps: 4, run_steps: 12, tool_failures: 3, ..RunLimits::default() };
        Self {
            story: Story::queued(limits),
            bug,
            audit: Audit::default(),
            in_flight: BTreeMap::new(),
            said: None,
            owned: true,
            claim: Some(false),
            news: false,
            started: BTreeSet::new(),
            calls: 0,
            messages: 0,
        }
    }

    pub(crate) fn happen(&mut self, action: Action) -> Checked {
        if self.story.run.is_finished() {
            return self.after_the_end(action);
        }
        match action {
            Action::Work => self.work(),
            Action::Land(pick) => self.land(pick),
            Action::Answer(pick) => self.answer(pick),
            Action::Expire(pick) => self.expire(pick),
            Action::Stale(pick) => self.stale(pick),
            Action::Queue { interrupt } => {
                let message = self.message();
                let event = toolyard_protocol::event::MessageQueued { message, interrupt, foreign: false };
                self.fact(vec![event.into()])
            }
            Action::Supersede => self.supersede(),
            Action::Cancel => {
                let by = person().into();
                let event = toolyard_protocol::event::CancelRequested { reason: None, by };
                self.fact(vec![event.into()])
            }
            Action::Crash => self.crash(),
        }
    }

    /// Lets everything that can end come to its end; then the run must be
    /// finished or parked (Inv-F).
    pub(crate) fn drain(&mut self) -> Checked {
        for _ in 0..200 {
            if self.story.run.is_finished() || (self.story.run.is_parked() && !self.owned) {
                return Ok(());
            }
            self.work()?;
            while let Some(effect) = self.in_flight.values().next().cloned() {
                self.finish_plainly(effect)?;
                self.work()?;
            }
        }
        Err(format!("Inv-F: neither finished nor parked: {:?}", self.story.run.state()))
    }

    /// Cancels what is left and checks the log of the finished run.
    pub(crate) fn end(&mut self) -> Checked {
        self.drain()?;
        if !self.story.run.is_finished() {
            self.happen(Action::Cancel)?;
            self.drain()?;
        }
        if !self.story.run.is_finished() {
            return Err("a canceled run does not end".to_owned());
        }
        self.audit.finished(&self.story)
    }

    fn after_the_end(&mut self, action: Action) -> Checked {
        if !self.story.run.due().is_empty() {
            return Err("something is due after the end".to_owned());
        }
        let inputs = [recovered(), Input::Woken, halted()];
        for input in inputs {
            if !self.story.run.next(NOW, input).is_empty() {
                return Err("an input is answered after the end".to_owned());
            }
        }
        if self.bug == Bug::AfterTheEnd && matches!(action, Action::Work) {
            let event = toolyard_protocol::event::RunStarted {};
            return self.append(vec![event.into()]);
        }
        Ok(())
    }

    /// Appends events one by one, so that every point of the log is checked.
    fn append(&mut self, events: Vec<Event>) -> Checked {
        for event in events {
            self.story.fact(vec![event]);
            self.audit.appended(&self.story)?;
        }
        let mut again = Run::new(self.story.run.id().clone());
        self.story.log.iter().for_each(|e| again.fold(e));
        if again != self.story.run {
            return Err("the state is not the fold of the log".to_owned());
        }
        Ok(())
    }

    fn tell(&mut self, input: Input) -> Checked {
        let mut events = self.story.run.next(NOW, input);
        if self.bug == Bug::NoPause {
            events.retain(|e| e.kind() != "RunPaused");
        }
        self.append(events)?;
        self.audit.settled(&self.story)
    }

    /// A fact of another node: it may give a parked run an owner.
    fn fact(&mut self, events: Vec<Event>) -> Checked {
        if self.bug == Bug::LostFact && self.owned {
            self.story.log.extend(events);
            return Ok(());
        }
        self.append(events.clone())?;
        self.news = true;
        if !self.owned && facts::wakes(&events, self.story.ledger.len()) {
            self.owned = true;
            self.claim = Some(false);
        }
        Ok(())
    }

    fn work(&mut self) -> Checked {
        if !self.owned {
            return Ok(());
        }
        let news = std::mem::take(&mut self.news);
        match self.claim.take() {
            Some(true) if self.bug == Bug::NoClaim => {}
            Some(true) => self.tell(recovered())?,
            Some(false) => self.tell(claimed())?,
            None if news => self.tell(Input::Woken)?,
            None => {}
        }
        self.perform()?;
        if self.story.run.halting() && self.in_flight.is_empty() {
            let said = self.said.take();
            self.tell(Input::Halted { said })?;
            self.perform()?;
        }
        Ok(())
    }

    /// Due minus in flight is started; in flight minus due is aborted.
    fn perform(&mut self) -> Checked {
        let due: BTreeMap<_, _> = self.story.run.due().into_iter().map(|e| (e.id(), e)).collect();
        let dead: Vec<EffectId> =
            self.in_flight.keys().filter(|id| !due.contains_key(*id)).cloned().collect();
        for id in dead {
            if let Some(Effect::CallModel { .. }) = self.in_flight.remove(&id) {
                self.said = Some(reply("cut"));
            }
        }
        for (id, effect) in due {
            if self.in_flight.contains_key(&id) {
                continue;
            }
            let once = match &effect {
                Effect::RunTool { idempotent, .. } => !idempotent,
                Effect::CallModel { .. } => true,
                Effect::Route { .. } => false,
            };
            if !self.started.insert(id.clone()) && once {
                return Err(format!("Inv-B: {id:?} was started twice"));
            }
            if matches!(effect, Effect::CallModel { .. }) {
                self.said = None;
            }
            self.in_flight.insert(id, effect);
        }
        let run = &self.story.run;
        if run.is_parked() || run.is_finished() {
            if !self.in_flight.is_empty() {
                return Err("something is in flight of a run that lies on disk".to_owned());
            }
            self.owned = false;
        }
        Ok(())
    }

    fn land(&mut self, pick: u16) -> Checked {
        if self.claim.is_some() || self.in_flight.is_empty() {
            return Ok(());
        }
        let which = usize::from(pick) % self.in_flight.len();
        let effect = self.in_flight.values().nth(which).cloned().unwrap();
        self.in_flight.remove(&effect.id());
        let luck = pick / 16;
        match effect {
            Effect::CallModel { .. } if luck % 16 == 15 => self.tell(Input::ModelFailed {
                code: ErrorCode::ModelFailed,
                message: "The model failed".to_owned(),
                detail: String::new(),
                said: (luck % 32 == 31).then(|| reply("half")),
            })?,
            Effect::CallModel { .. } => {
                let calls = (0..luck % 4).map(|n| self.new_call(luck.rotate_left(u32::from(n) * 3)));
                let calls = calls.collect();
                self.tell(Input::ModelReplied { reply: reply("text"), calls })?;
            }
            Effect::RunTool { call, idempotent, .. } => match luck % 6 {
                0 => self.tell(Input::Routed(asked(call.as_str(), AskKind::Input)))?,
                1 if idempotent => {
                    let child = RunId::parse("run_2").unwrap();
                    self.tell(Input::ChildStarted { call, child, expires: None, stream: false })?;
                }
                2 => self.story_ended(call.as_str(), failed())?,
                _ => self.story_ended(call.as_str(), ok())?,
            },
            Effect::Route { call, .. } => {
                let routed = self.route(call.as_str(), luck);
                self.tell(Input::Routed(routed))?;
            }
        }
        self.perform()
    }

    fn story_ended(&mut self, call: &str, outcome: ToolOutcome) -> Checked {
        self.tell(Input::ToolEnded {
            call: id(call),
            outcome,
            blob: None,
            untrusted: false,
            notes: Vec::new(),
        })
    }

    fn finish_plainly(&mut self, effect: Effect) -> Checked {
        self.in_flight.remove(&effect.id());
        match effect {
            Effect::CallModel { .. } => self.tell(Input::ModelReplied { reply: reply("end"), calls: vec![] }),
            Effect::RunTool { call, .. } => self.story_ended(call.as_str(), ok()),
            Effect::Route { call, .. } => self.tell(Input::Routed(gateway(call.as_str()))),
        }
    }

    fn new_call(&mut self, luck: u16) -> RoutedCall {
        self.calls += 1;
        self.route(&format!("call_{}", self.calls), luck)
    }

    fn route(&self, call: &str, luck: u16) -> RoutedCall {
        match luck % 9 {
            0 | 1 => client(call),
            2 => asked(call, AskKind::Approval),
            3 => asked(call, AskKind::Credential),
            4 => timer(call),
            5 => refused(call, failed()),
            6 => RoutedCall { idempotent: true, ..gateway(call) },
            _ => RoutedCall { verdict: Verdict::Run, ..gateway(call) },
        }
    }

    fn answer(&mut self, pick: u16) -> Checked {
        let Some(wait) = self.pick_wait(pick) else { return Ok(()) };
        let luck = pick / 16;
        let outcome = if luck.is_multiple_of(3) { failed() } else { ok() };
        let deny = || Answer::Deny { message: None };
        let events = match wait.kind {
            WaitKind::Client => facts::submit_result(&wait, outcome, None, person()),
            WaitKind::Child => facts::end_child(&wait, outcome, None, None),
            WaitKind::Timer => return Ok(()),
            WaitKind::Approval if luck.is_multiple_of(3) => facts::answer(&wait, deny(), person()),
            WaitKind::Approval => {
                let edited = luck.is_multiple_of(2).then(|| json!({"edited": luck}));
                facts::answer(&wait, Answer::Allow { edited }, person())
            }
            WaitKind::Input | WaitKind::Credential if luck.is_multiple_of(4) => {
                facts::answer(&wait, deny(), person())
            }
            WaitKind::Input | WaitKind::Credential => {
                facts::answer(&wait, Answer::Provide(json!(luck)), person())
            }
        };
        let events = events.map_err(|e| e.to_string())?;
        self.fact(events.clone())?;
        if self.bug == Bug::SecondResult {
            self.append(events)?;
        }
        Ok(())
    }

    fn expire(&mut self, pick: u16) -> Checked {
        let Some(wait) = self.pick_wait(pick) else { return Ok(()) };
        let events = facts::expire(&wait, NOW.plus_millis(10_000));
        if events.is_empty() { Ok(()) } else { self.fact(events) }
    }

    fn pick_wait(&self, pick: u16) -> Option<toolyard_protocol::wait::Wait> {
        let waits: Vec<_> = self.story.ledger.values().collect();
        let which = usize::from(pick).checked_rem(waits.len())?;
        waits.get(which).map(|w| (*w).clone())
    }

    /// Ends, verdicts and answers of calls that are over change nothing.
    fn stale(&mut self, pick: u16) -> Checked {
        let before = self.story.run.clone();
        let over: Vec<Event> = self
            .story
            .log
            .iter()
            .filter(|e| matches!(e, Event::ToolReturned(_) | Event::Answered(_)))
            .cloned()
            .collect();
        let Some(which) = usize::from(pick).checked_rem(over.len()) else { return Ok(()) };
        let mut repeat = over[which].clone();
        if let Event::ToolReturned(e) = &mut repeat {
            // The same call with another end: a client that changed its mind.
            let (call, tool) = (e.call.clone(), e.tool.clone());
            let other = ToolOutcome::Ok(json!("another end"));
            *e = ToolReturned::new(call, tool, e.visibility, other, person());
            e.untrusted = true;
        }
        let mut after = before.clone();
        after.fold(&repeat);
        if after != before {
            return Err(format!("Inv-A: a second {} changed the state", repeat.kind()));
        }
        let Event::ToolReturned(end) = &over[which] else { return Ok(()) };
        let call = end.call.as_str();
        let late = Input::ToolEnded {
            call: id(call),
            outcome: failed(),
            blob: None,
            untrusted: true,
            notes: Vec::new(),
        };
        for input in [late, Input::Routed(gateway(call))] {
            // Settling may add what follows from facts; the call stays as it is.
            let events = before.next(NOW, input);
            let touched = |e: &Event| match e {
                Event::ToolReturned(e) => e.call == end.call,
                Event::ToolCallRequested(e) => e.call == end.call,
                _ => false,
            };
            if events.iter().any(touched) {
                return Err("Inv-A: an ended call was touched again".to_owned());
            }
        }
        Ok(())
    }

    fn supersede(&mut self) -> Checked {
        if self.owned || !self.story.run.is_parked() {
            return Ok(());
        }
        let mut messages: Vec<_> = self.story.run.queued().iter().map(|q| q.message.clone()).collect();
        messages.push(self.message());
        let waits: Vec<_> = self.story.ledger.values().cloned().collect();
        self.fact(facts::supersede(&waits, messages, person()))
    }

    fn message(&mut self) -> toolyard_protocol::MessageId {
        self.messages += 1;
        msg(&format!("m{}", self.messages))
    }

    /// The node dies: what was in flight is gone, the log stays.
    fn crash(&mut self) -> Checked {
        self.in_flight.clear();
        self.said = None;
        let mut run = Run::new(self.story.run.id().clone());
        self.story.log.iter().for_each(|e| run.fold(e));
        self.story.run = run;
        if self.owned {
            let queued = *self.story.run.state() == State::Queued;
            self.claim = Some(!queued);
            self.audit.crashes += 1;
        }
        Ok(())
    }
}
