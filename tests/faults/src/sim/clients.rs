//! The outside: results, answers, cancels and expiries, from any node, each
//! under the run's lock. An answer may get lost; then it is asked again.

use std::sync::Arc;

use toolyard_engine::facts::{self, Answer};
use toolyard_protocol::event::{CancelRequested, Event};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, Guarded, RunId, ToolOutcome};
use toolyard_store::log::{self, Wake};
use toolyard_store::{StoreError, runs, waits};

use super::Bug;
use super::cast;
use super::leases::Luck;
use super::world::World;
use crate::history::Record;

/// What a client will ask again.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Result { run: RunId, call: CallId, value: serde_json::Value },
    Yes { run: RunId, call: CallId },
}

/// What a fact makes of an open or ended row of the ledger.
enum Fact {
    Result(serde_json::Value),
    Yes,
    No,
    Expiry,
}

impl World {
    /// A client answers something that is open, or repeats itself.
    pub(super) async fn client(&mut self) {
        if !self.pending.is_empty() {
            let pick = self.dice.below(self.pending.len());
            match self.pending.remove(pick) {
                Pending::Result { run, call, value } => self.hand_in(&run, &call, value).await,
                Pending::Yes { run, call } => self.decide(&run, &call, true).await,
            }
            return;
        }
        let pick = self.dice.below(self.runs.len());
        let Some(run) = self.runs.get(pick).cloned() else { return };
        let (tenant, id) = (cast::tenant(), run.clone());
        let open =
            self.store.read(move |tx| Box::pin(async move { waits::open_of_run(tx, &tenant, &id).await }));
        let open = open.await.map_err(|e: StoreError| e).expect("the store reads");
        let pick = self.dice.below(open.len());
        let Some(row) = open.get(pick) else { return };
        let call = row.wait.call.clone();
        match row.wait.kind {
            WaitKind::Client => {
                let mut seen = call.clone();
                if self.bug == Bug::SwappedResult {
                    let others = open.iter().filter(|w| w.wait.kind == WaitKind::Client);
                    seen = others.map(|w| w.wait.call.clone()).next_back().unwrap_or(seen);
                }
                self.hand_in(&run, &call, cast::seen(&seen)).await;
            }
            WaitKind::Approval => {
                let allow = !self.dice.chance(25);
                self.decide(&run, &call, allow).await;
            }
            WaitKind::Input | WaitKind::Credential | WaitKind::Child | WaitKind::Timer => {}
        }
    }

    async fn hand_in(&mut self, run: &RunId, call: &CallId, value: serde_json::Value) {
        let early = self.bug == Bug::AnswerFirst && self.dice.chance(30);
        let status = match early {
            true => 200,
            false => self.fact(run, call, Fact::Result(value.clone())).await,
        };
        if self.bug == Bug::SecondResult {
            self.fact(run, call, Fact::Result(value.clone())).await;
        }
        let lost = status == 503 || (status == 200 && !early && self.dice.chance(15));
        if lost {
            self.pending.push(Pending::Result { run: run.clone(), call: call.clone(), value });
            return;
        }
        self.history.push(Record::Handed { run: run.to_string(), call: call.to_string(), value, status });
    }

    async fn decide(&mut self, run: &RunId, call: &CallId, allow: bool) {
        let status = self.fact(run, call, if allow { Fact::Yes } else { Fact::No }).await;
        if self.bug == Bug::IgnoredNo && !allow {
            self.effect(call, false);
        }
        let lost = status == 503 || (status == 200 && self.dice.chance(15));
        if lost && allow {
            self.pending.push(Pending::Yes { run: run.clone(), call: call.clone() });
            return;
        }
        self.history.push(Record::Decided { run: run.to_string(), call: call.to_string(), allow, status });
    }

    /// One fact append; a run that it wakes starts on a node that is awake, or
    /// is queued.
    async fn fact(&mut self, run: &RunId, call: &CallId, fact: Fact) -> u16 {
        let node = self.awake_node();
        let owner = node.map(|node| self.nodes[node].owner());
        let (tenant, id, call, now) = (cast::tenant(), run.clone(), call.clone(), self.now());
        let (again, sleeps) = (self.bug == Bug::SecondResult, self.bug == Bug::NoWake);
        let luck = self.luck();
        let done = self.store.write(move |tx| {
            Box::pin(async move {
                let row = runs::lock(tx, &tenant, &id).await?.expect("a run");
                let all = waits::of_run(tx, &tenant, &id).await?;
                let wanted = |w: &&waits::WaitRow| match fact {
                    Fact::Result(_) => w.wait.kind == WaitKind::Client,
                    Fact::Yes | Fact::No => w.wait.kind == WaitKind::Approval,
                    Fact::Expiry => w.ended_seq.is_none(),
                };
                let Some(wait) = all.iter().filter(|w| w.wait.call == call).find(wanted) else {
                    return Ok((404, None));
                };
                let ended = wait.ended_seq.filter(|_| !(again && matches!(fact, Fact::Result(_))));
                if let Some(seq) = ended {
                    let stored = log::event(tx, &tenant, &id, seq).await?;
                    let same = match (&fact, &stored) {
                        (Fact::Result(value), Some(Event::ToolReturned(end))) => {
                            facts::same_result(end, &ToolOutcome::Ok(value.clone()), None)
                        }
                        (Fact::Yes, Some(stored)) => {
                            facts::same_answer(stored, &Answer::Allow { edited: None })
                        }
                        _ => false,
                    };
                    return Ok((if same { 200 } else { 409 }, None));
                }
                let (wait, by) = (&wait.wait, cast::person());
                let events = match &fact {
                    Fact::Result(value) => {
                        facts::submit_result(wait, ToolOutcome::Ok(value.clone()), None, by)
                    }
                    Fact::Yes => facts::answer(wait, Answer::Allow { edited: None }, by),
                    Fact::No => facts::answer(wait, Answer::Deny { message: None }, by),
                    Fact::Expiry => Ok(facts::expire(wait, now)),
                };
                let events: Arc<[Event]> = events.expect("it fits the wait").into();
                if events.is_empty() || (row.status.is_final() && !again) {
                    return Ok((409, None));
                }
                let left = all.iter().filter(|w| w.ended_seq.is_none()).count().saturating_sub(1);
                let wakes = facts::wakes(&events, left) && !sleeps;
                let wake = if wakes { Wake::Yes(owner.as_ref()) } else { Wake::No };
                let done = log::append_fact(tx, &row, &events, wake).await?;
                luck.judge((200, done.assigned))
            })
        });
        self.answered(run, node, done.await, luck)
    }

    /// What the caller of a fact hears, and the worker that starts with it.
    fn answered(
        &mut self,
        run: &RunId,
        node: Option<usize>,
        done: Result<(u16, Option<i64>), StoreError>,
        luck: Luck,
    ) -> u16 {
        if luck == Luck::ReplyLost {
            return 503;
        }
        let Ok((status, assigned)) = done else { return 503 };
        if let (Some(node), Some(epoch)) = (node, assigned) {
            self.start(node, run, epoch, false);
        }
        status
    }

    /// What is due by the database's time ends.
    pub(super) async fn expire(&mut self) {
        let due = self.store.read(|tx| Box::pin(async move { waits::due(tx, 10).await }));
        for row in due.await.map_err(|e: StoreError| e).expect("the store reads") {
            self.fact(&row.wait.run, &row.wait.call, Fact::Expiry).await;
        }
    }

    /// Somebody wants a run to stop, now and then twice.
    pub(super) async fn cancel(&mut self) {
        let pick = self.dice.below(self.runs.len());
        let Some(run) = self.runs.get(pick).cloned() else { return };
        if !self.dice.chance(30) {
            return;
        }
        for _ in 0..=self.dice.below(2) {
            let status = self.cancel_once(&run).await;
            self.history.push(Record::Canceled { run: run.to_string(), status });
        }
    }

    async fn cancel_once(&mut self, run: &RunId) -> u16 {
        let node = self.awake_node();
        let owner = node.map(|node| self.nodes[node].owner());
        let (tenant, id, again) = (cast::tenant(), run.clone(), self.bug == Bug::SecondCancel);
        let luck = self.luck();
        let done = self.store.write(move |tx| {
            Box::pin(async move {
                let row = runs::lock(tx, &tenant, &id).await?.expect("a run");
                if row.status.is_final() {
                    return Ok((409, None));
                }
                let log = log::read(tx, &tenant, &id, 0, 10_000).await?;
                if !again && log.iter().any(|e| matches!(e.event, Event::CancelRequested(_))) {
                    return Ok((200, None));
                }
                let by = Guarded::Shown(cast::person());
                let events: Arc<[Event]> = vec![CancelRequested { reason: None, by }.into()].into();
                let done = log::append_fact(tx, &row, &events, Wake::Yes(owner.as_ref())).await?;
                luck.judge((200, done.assigned))
            })
        });
        self.answered(run, node, done.await, luck)
    }
}
