//! Runs that call runs: what a commit to one means for those above and below
//! it, in the same transaction.
//!
//! What a child asks of the outside shows on every run above it. Its end is
//! the result of its parent's call. When a call ends without its child, or its
//! run is told to stop, the child is told to stop too.

use serde_json::{Value, json};
use toolyard_engine::{Run, facts};
use toolyard_protocol::event::{
    CancelRequested, ChildAnswered, ChildAsked, Decision, Event, RunFinished, Spent, ToolProgressed,
};
use toolyard_protocol::message::text_of;
use toolyard_protocol::outcome::{CANCELED_TEXT, OutcomeKind};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::run::{RunEnd, Usage};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{AgentName, CallId, Guarded, RunId, TenantId, ToolOutcome};
use toolyard_store::runs::{self, RunRow};
use toolyard_store::waits::{self, WaitRow};
use toolyard_store::{StoreError, Tx, blobs};

use crate::blob::fit;
use crate::facts::is_canceling;
use crate::starting::Desk;

/// A run that something was appended to, while the runs above it are held.
pub(crate) struct Member<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) run: &'a RunId,
    pub(crate) root: &'a RunId,
    /// The runs above, nearest first.
    pub(crate) above: Vec<RunRow>,
    /// The last event before the append.
    pub(crate) after: i64,
    pub(crate) events: &'a [Event],
}

/// How a child ended, for its parent.
#[derive(Debug, Clone)]
pub(crate) struct End {
    outcome: ToolOutcome,
    spent: Spent,
}

impl End {
    /// Of a run whose log cannot be read.
    pub(crate) fn poisoned(agent: &AgentName) -> Self {
        let outcome = ToolOutcome::Failed(format!("Agent {agent}: the run could not be recovered"));
        Self { outcome, spent: Spent { usage: Usage::default(), cost: None } }
    }
}

/// The end of a run as its caller hears it (row G12).
pub(crate) fn end_of(run: &Run, finished: &RunFinished) -> End {
    let agent = run.created().map(|c| c.agent.to_string()).unwrap_or_default();
    let outcome = match finished.status {
        RunEnd::Completed => {
            let last = run.turns().iter().flat_map(|t| &t.steps).next_back();
            let response = last.map(|step| text_of(&step.reply.parts)).unwrap_or_default();
            ToolOutcome::Ok(
                json!({ "success": true, "agent": agent, "response": response, "runId": run.id() }),
            )
        }
        RunEnd::Failed => {
            let why = finished.message.as_deref().unwrap_or("it failed");
            ToolOutcome::Failed(format!("Agent {agent}: {why}"))
        }
        RunEnd::Canceled => ToolOutcome::Canceled(CANCELED_TEXT.to_owned()),
    };
    End { outcome, spent: Spent { usage: finished.usage, cost: finished.cost } }
}

impl Member<'_> {
    /// Carries the append on. `desk` has room for the runs that wake.
    pub(crate) async fn carry(
        mut self,
        tx: &mut Tx<'_>,
        end: Option<End>,
        desk: &mut Desk,
    ) -> Result<(), StoreError> {
        let ledger = waits::of_run(tx, self.tenant, self.run).await?;
        let above = std::mem::take(&mut self.above);
        if !above.is_empty() {
            self.tell_above(tx, above, &ledger, end, desk).await?;
        }
        self.stop_below(tx, &ledger, desk).await
    }

    async fn tell_above(
        &self,
        tx: &mut Tx<'_>,
        above: Vec<RunRow>,
        ledger: &[WaitRow],
        mut end: Option<End>,
        desk: &mut Desk,
    ) -> Result<(), StoreError> {
        let mut below = self.run.clone();
        let mut owed = None;
        for row in above {
            let waits = waits::of_run(tx, self.tenant, &row.id).await?;
            // The call that the run below answers, as the ledger has it: a
            // child whose log cannot be read has a parent too.
            let Some(wait) = waits.iter().find(|w| child_of(w).as_ref() == Some(&below)) else {
                return Ok(());
            };
            let open = wait.ended_seq.is_none();
            let mut left = waits.iter().filter(|w| w.ended_seq.is_none()).count();
            let mut events = self.news(ledger, &wait.wait.call);
            if below == *self.run {
                events.extend(self.step(wait).filter(|_| open));
                match end.take() {
                    Some(end) if open => {
                        desk.began(&wait.wait.call, wait.wait.opened_at);
                        events.extend(ended(tx, self.tenant, wait, end).await?);
                        left -= 1;
                    }
                    // A call that ended before its child has its result; what
                    // the child used is still owed.
                    Some(end) => owed = Some(end.spent),
                    None => {}
                }
            }
            if !row.status.is_final()
                && let Some(spent) = owed.take()
            {
                events.push(used(wait, spent));
            }
            if !events.is_empty() && !row.status.is_final() {
                desk.wake(tx, &row, events, left).await?;
            }
            below = row.id;
        }
        Ok(())
    }

    /// What the outside is asked, and is asked no more.
    fn news(&self, ledger: &[WaitRow], call: &CallId) -> Vec<Event> {
        let outside = |w: &&WaitRow| !matches!(w.wait.kind, WaitKind::Child | WaitKind::Timer);
        let mut news = Vec::new();
        for row in ledger.iter().filter(outside) {
            let (opened, ended) = (row.opened_seq > self.after, row.ended_seq);
            if opened && ended.is_none() {
                news.push(
                    ChildAsked {
                        call: call.clone(),
                        child: self.run.clone(),
                        wait: row.wait.id.clone(),
                        kind: row.wait.kind,
                        rule: row.wait.rule.clone(),
                        payload: self.payload(row).map_or(Guarded::Hidden, Guarded::Shown),
                    }
                    .into(),
                );
            } else if !opened && ended.is_some_and(|seq| seq > self.after) {
                news.push(
                    ChildAnswered {
                        call: call.clone(),
                        child: self.run.clone(),
                        wait: row.wait.id.clone(),
                        outcome: self.decision(row),
                        visibility: row.wait.visibility,
                        value: Guarded::Hidden,
                    }
                    .into(),
                );
            }
        }
        news
    }

    /// What an answerer is shown.
    fn payload(&self, row: &WaitRow) -> Option<Value> {
        self.events.iter().find_map(|event| match event {
            Event::Asked(e) if e.wait == row.wait.id => e.payload.shown().cloned(),
            Event::ToolCallRequested(e) if e.call == row.wait.call => {
                Some(json!({ "toolName": e.tool, "args": e.args.shown(), "toolCallId": e.call }))
            }
            _ => None,
        })
    }

    fn decision(&self, row: &WaitRow) -> Decision {
        let said = self.events.iter().find_map(|event| match event {
            Event::Answered(e) if e.wait == row.wait.id => Some(e.decision),
            Event::ToolReturned(e) if e.call == row.wait.call => Some(match e.outcome {
                OutcomeKind::Expired => Decision::Expire,
                OutcomeKind::Canceled => Decision::Withdraw,
                OutcomeKind::Ok | OutcomeKind::Failed | OutcomeKind::Denied | OutcomeKind::Uncertain => {
                    Decision::Provide
                }
            }),
            _ => None,
        });
        said.unwrap_or(Decision::Withdraw)
    }

    /// What the child said in this step, if its caller wants to hear it.
    fn step(&self, wait: &WaitRow) -> Option<Event> {
        if wait.wait.payload["stream"] != json!(true) {
            return None;
        }
        let said = self.events.iter().find_map(|event| match event {
            Event::ModelReplied(e) if !e.calls.is_empty() => Some(text_of(&e.parts)),
            _ => None,
        });
        let text = said.filter(|text| !text.is_empty())?;
        Some(
            ToolProgressed {
                call: wait.wait.call.clone(),
                tool: wait.wait.tool.clone(),
                visibility: wait.wait.visibility,
                fraction: None,
                message: Guarded::Hidden,
                preliminary: Guarded::Shown(json!({ "response": text })),
                ticket: Guarded::Hidden,
                spent: Guarded::Hidden,
            }
            .into(),
        )
    }

    /// Stops the children of calls that ended without them, and all children
    /// of a run that is told to stop.
    async fn stop_below(
        &self,
        tx: &mut Tx<'_>,
        ledger: &[WaitRow],
        desk: &mut Desk,
    ) -> Result<(), StoreError> {
        let all = self.events.iter().any(|e| matches!(e, Event::CancelRequested(_)));
        let mut stopping: Vec<RunId> = ledger
            .iter()
            .filter(|w| all || w.ended_seq.is_some_and(|seq| seq > self.after))
            .filter_map(child_of)
            .collect();
        if stopping.is_empty() {
            return Ok(());
        }
        // Oldest first, so a parent comes before its children.
        for row in runs::below(tx, self.tenant, self.root).await? {
            let inherits = row.parent.as_ref().is_some_and(|parent| stopping.contains(parent));
            if inherits {
                stopping.push(row.id.clone());
            }
            if !stopping.contains(&row.id) || row.status.is_final() {
                continue;
            }
            let Some(row) = runs::lock(tx, self.tenant, &row.id).await? else { continue };
            if is_canceling(tx, &row).await? {
                continue;
            }
            let stop = CancelRequested { reason: None, by: Guarded::Shown(Actor::Gateway {}) };
            desk.wake(tx, &row, vec![stop.into()], 0).await?;
        }
        Ok(())
    }
}

/// The child that a wait is for.
fn child_of(row: &WaitRow) -> Option<RunId> {
    let child = || RunId::parse(row.wait.payload["child"].as_str()?).ok();
    (row.wait.kind == WaitKind::Child).then(child).flatten()
}

/// What a child used after its call had ended, so that a budget knows it.
fn used(wait: &WaitRow, spent: Spent) -> Event {
    ToolProgressed {
        call: wait.wait.call.clone(),
        tool: wait.wait.tool.clone(),
        visibility: wait.wait.visibility,
        fraction: None,
        message: Guarded::Hidden,
        preliminary: Guarded::Hidden,
        ticket: Guarded::Hidden,
        spent: Guarded::Shown(spent),
    }
    .into()
}

/// A child's end as the result of its call.
async fn ended(
    tx: &mut Tx<'_>,
    tenant: &TenantId,
    wait: &WaitRow,
    end: End,
) -> Result<Vec<Event>, StoreError> {
    let fitted = fit(end.outcome);
    if let Some((blob, bytes)) = &fitted.blob {
        blobs::put_of_run(tx, tenant, &wait.wait.run, &blob.blob, bytes).await?;
    }
    let blob = fitted.blob_ref();
    let events = facts::end_child(&wait.wait, fitted.outcome, blob, Some(end.spent));
    Ok(events.unwrap_or_default())
}
