//! The rules that hold for every log, checked from the outside.

use std::collections::{BTreeMap, BTreeSet};

use toolyard_protocol::event::RunFinished;
use toolyard_protocol::run::{RunEnd, Usage};
use toolyard_protocol::{CallId, Event, MessageId, WaitId};

use crate::fixture::Story;
use crate::world::Checked;

#[derive(Default)]
pub(crate) struct Audit {
    pub(crate) crashes: u32,
    restarts: u32,
    ended: BTreeSet<CallId>,
    taken: BTreeSet<MessageId>,
    /// A `RunPaused` stands for the pause that the run is in.
    paused: bool,
    finished: bool,
}

fn rule(holds: bool, name: &str) -> Checked {
    if holds { Ok(()) } else { Err(name.to_owned()) }
}

impl Audit {
    /// After each single event.
    pub(crate) fn appended(&mut self, story: &Story) -> Checked {
        let run = &story.run;
        rule(!self.finished, "an event follows RunFinished")?;
        match story.log.last() {
            Some(Event::ToolReturned(e)) => {
                rule(self.ended.insert(e.call.clone()), "Inv-A: a call ended twice")?;
            }
            Some(Event::RunPaused(e)) => {
                rule(run.is_parked(), "RunPaused, but the run is not parked")?;
                rule(!self.paused, "RunPaused twice for one pause")?;
                rule(Some(e.reason) == run.pause_reason(), "RunPaused for another reason")?;
                rule(e.waits == run.open_waits(), "RunPaused lists other waits")?;
                self.paused = true;
            }
            Some(Event::StepRestarted(_)) => {
                self.restarts += 1;
                rule(self.restarts <= self.crashes, "StepRestarted without a crash")?;
            }
            Some(Event::MessageTaken(e)) => {
                for message in &e.messages {
                    rule(self.taken.insert(message.clone()), "a message was taken twice")?;
                }
            }
            Some(Event::RunFinished(_)) => self.finished = true,
            Some(_) | None => {}
        }
        self.paused &= run.is_parked();
        let open: BTreeSet<WaitId> = run.open_waits().into_iter().map(|w| w.wait).collect();
        // A finished run has no calls any more; its ledger must be empty too.
        rule(open.iter().eq(story.ledger.keys()), "the ledger is not what the run waits for")?;
        let idle = run.is_parked() || run.is_finished() || run.halting();
        rule(!idle || run.due().is_empty(), "something is due of a run that stands still")
    }

    /// After each append of the worker.
    pub(crate) fn settled(&self, story: &Story) -> Checked {
        rule(self.paused == story.run.is_parked(), "parked without RunPaused")
    }

    /// After the end of the run.
    pub(crate) fn finished(&self, story: &Story) -> Checked {
        let mut calls: BTreeMap<&CallId, u32> = BTreeMap::new();
        let mut usage = Usage::default();
        let mut last_calls = 0;
        for event in &story.log {
            match event {
                Event::ModelReplied(e) => {
                    usage.add(&e.usage);
                    last_calls = e.calls.len();
                    e.calls.iter().for_each(|c| {
                        calls.insert(&c.call, 0);
                    });
                }
                Event::ToolReturned(e) => *calls.entry(&e.call).or_default() += 1,
                _ => {}
            }
        }
        rule(calls.values().all(|n| *n == 1), "Inv-A: a call has not exactly one end")?;
        let heard = story.heard();
        rule(heard.iter().all(|(_, o)| o.is_some()), "the model misses a result")?;
        let RunFinished { status, usage: said, .. } = story.finished();
        rule(*said == usage, "the usage is not the sum")?;
        let completed = *status == RunEnd::Completed;
        rule(!completed || last_calls == 0, "completed after a reply with calls")?;
        rule(!completed || story.run.queued().is_empty(), "completed with an unheard message")
    }
}
