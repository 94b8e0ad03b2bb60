//! The part of a log that a replay begins with. Pure: events in, events out.
//!
//! What was said, asked for and answered is copied. Questions, waits, children
//! and progress are not: nothing of the old run opens a row of the ledger again,
//! and nothing is executed twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolyard_engine::{Run, State, Turn};
use toolyard_protocol::event::{
    Event, ModelReplied, RunCreated, RunStarted, ToolCallRequested, ToolReturned,
};
use toolyard_protocol::run::Usage;
use toolyard_protocol::tool::Place;
use toolyard_protocol::{CallId, Guarded, MessageId, RunId};

/// What a replay begins with.
pub(super) struct Copied {
    /// Behind `RunStarted`.
    pub(super) events: Vec<Event>,
    /// The new run, folded: it is about to do the wanted step.
    pub(super) run: Run,
    /// Messages that the old run took on its way: their ids, old and new.
    pub(super) taken: Vec<(MessageId, MessageId)>,
}

/// The log up to a step. `Err` has the number of the last step there is.
pub(super) fn copy(
    old: &RunId,
    log: &[Event],
    step: u32,
    new: &RunId,
    created: &RunCreated,
) -> Result<Copied, u32> {
    let mut copier = Copier::new(old, new, created);
    for event in log {
        if !copier.is_there(step) {
            copier.take(event);
        } else if ends_it(event) {
            break;
        } else if is_aftermath(event) {
            copier.take(event);
        }
    }
    let there = copier.is_there(step) && copier.stands_at(step);
    let Copier { before, run, events, taken, .. } = copier;
    if !there {
        return Err(last_step(&before, log));
    }
    Ok(Copied { events, run, taken })
}

/// The wanted step itself, or what came instead of it.
fn ends_it(event: &Event) -> bool {
    matches!(event, Event::ModelReplied(_) | Event::MessageTaken(_) | Event::RunFinished(_))
}

/// What belongs to the steps before, although the next one has begun.
fn is_aftermath(event: &Event) -> bool {
    matches!(
        event,
        Event::ReplyAmended(_)
            | Event::ResultAmended(_)
            | Event::ToolsetReplaced(_)
            | Event::PluginStateSaved(_)
    )
}

/// The last step that was begun.
fn last_step(before: &Run, log: &[Event]) -> u32 {
    let replied = log.iter().filter_map(|event| match event {
        Event::ModelReplied(reply) => Some(reply.step),
        _ => None,
    });
    replied.max().unwrap_or(0).max(before.step())
}

struct Copier<'a> {
    new: &'a RunId,
    /// The old run, as far as it was read.
    before: Run,
    run: Run,
    events: Vec<Event>,
    calls: HashMap<CallId, CallId>,
    /// Calls whose answer was a turn of its own.
    recounted: HashSet<CallId>,
    taken: Vec<(MessageId, MessageId)>,
}

impl<'a> Copier<'a> {
    fn new(old: &RunId, new: &'a RunId, created: &RunCreated) -> Self {
        let mut run = Run::new(new.clone());
        run.fold(&Event::from(created.clone()));
        run.fold(&Event::from(RunStarted {}));
        Self {
            new,
            before: Run::new(old.clone()),
            run,
            events: Vec::new(),
            calls: HashMap::new(),
            recounted: HashSet::new(),
            taken: Vec::new(),
        }
    }

    fn is_there(&self, step: u32) -> bool {
        matches!(self.before.state(), State::Thinking { step: at, .. } if *at == step)
    }

    fn stands_at(&self, step: u32) -> bool {
        matches!(self.run.state(), State::Thinking { step: at, .. } if *at == step) && !self.run.halting()
    }

    fn take(&mut self, event: &Event) {
        let copied = self.copied(event);
        self.before.fold(event);
        if let Some(event) = copied {
            self.run.fold(&event);
            self.events.push(event);
        }
    }

    fn copied(&mut self, event: &Event) -> Option<Event> {
        match event {
            Event::ModelReplied(e) => Some(self.replied(e)),
            Event::ToolCallRequested(e) => Some(
                ToolCallRequested {
                    call: self.call(&e.call),
                    // Nobody runs it: its end follows. A client that sees it must not try.
                    place: Place::Gateway,
                    wait: None,
                    expires: None,
                    ..e.clone()
                }
                .into(),
            ),
            Event::ToolReturned(e) => {
                let recount = e.recount || self.recounted.contains(&e.call);
                let call = self.call(&e.call);
                // What a child used was paid by the run that sent it.
                Some(ToolReturned { call, recount, spent: Guarded::Hidden, ..e.clone() }.into())
            }
            Event::ResultAmended(e) => {
                let mut amended = e.clone();
                amended.call = self.call(&e.call);
                Some(amended.into())
            }
            Event::ReplyAmended(e) => {
                let mut amended = e.clone();
                let has = |turn: &&Arc<Turn>| turn.steps.iter().any(|step| step.reply.step == e.step);
                let turn = self.before.turns().iter().rev().find(has);
                amended.message =
                    MessageId::of_turn(self.new, turn.map_or(self.before.turn(), |turn| turn.number));
                Some(amended.into())
            }
            Event::MessageTaken(e) => {
                let mut heard = e.clone();
                heard.messages = e.messages.iter().map(|message| self.message(message)).collect();
                Some(heard.into())
            }
            Event::ToolsetReplaced(_) | Event::PluginStateSaved(_) => Some(event.clone()),
            Event::Answered(e) => {
                if e.recount {
                    self.recounted.insert(e.call.clone());
                }
                None
            }
            Event::RunCreated(_)
            | Event::RunStarted(_)
            | Event::StepRestarted(_)
            | Event::Asked(_)
            | Event::ToolProgressed(_)
            | Event::ChildStarted(_)
            | Event::ChildAsked(_)
            | Event::ChildAnswered(_)
            | Event::MessageQueued(_)
            | Event::CancelRequested(_)
            | Event::HistoryCompacted(_)
            | Event::PluginEmitted(_)
            | Event::RunPaused(_)
            | Event::RunFinished(_) => None,
        }
    }

    fn replied(&mut self, e: &ModelReplied) -> Event {
        let mut reply = e.clone();
        reply.message = MessageId::of_turn(self.new, self.before.turn());
        reply.calls.iter_mut().for_each(|call| call.call = self.call(&call.call));
        // The tokens were the old run's.
        reply.usage = Usage::default();
        reply.cost = None;
        reply.into()
    }

    /// A call is named once in the world: the copy has a name of its own.
    fn call(&mut self, old: &CallId) -> CallId {
        self.calls.entry(old.clone()).or_insert_with(CallId::mint).clone()
    }

    fn message(&mut self, old: &MessageId) -> MessageId {
        if let Some((_, new)) = self.taken.iter().find(|(known, _)| known == old) {
            return new.clone();
        }
        let new = MessageId::mint();
        self.taken.push((old.clone(), new.clone()));
        new
    }
}
