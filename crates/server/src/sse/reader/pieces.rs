//! What a reader does with the pieces of a step that is not in the log yet.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_dialects::telling::SoFar;
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::Event;
use toolyard_protocol::{RunId, limits};
use toolyard_store::{Joined, News, StoreError, log, runs};

use super::{End, Reader};
use crate::sse::steps::Verdict;

/// How long pieces that nobody reads by themselves wait for what follows them.
const HOLD: Duration = Duration::from_millis(20);
/// How soon one write follows another. A screen shows no words sooner, and each
/// write costs more than all that was done for the words in it. What begins a
/// part does not wait, unless its end is there too: it is the first that its
/// reader sees.
const PACE: Duration = Duration::from_millis(16);

impl Reader {
    /// A reader that joins in the middle of a step gets what it missed of it.
    pub(super) async fn send_so_far(&mut self, joined: &mut Joined) -> Result<(), End> {
        for so_far in std::mem::take(&mut joined.so_far) {
            if !self.from_start && !self.steps.knows(&so_far.run) {
                // What is written does not wait for the database.
                self.send().await?;
                if let Some(step) = self.last_reply(&so_far.run).await? {
                    self.steps.replied(&so_far.run, step);
                }
            }
            if self.steps.join(&so_far) {
                if let Some(telling) = &mut self.telling {
                    let (step, attempt) = (so_far.step, so_far.attempt);
                    let so_far = SoFar { step, attempt, pieces: &mut so_far.pieces() };
                    let flow = telling.so_far(so_far, &mut self.frames);
                    self.said(flow)?;
                } else {
                    let frame = self.source.so_far_frame(&so_far, &self.viewer);
                    self.write(frame);
                }
                self.send().await?;
            }
        }
        Ok(())
    }

    /// The last step of a run whose whole reply is in the log. The feed forgets
    /// a step a moment after its commit, so it cannot be asked.
    async fn last_reply(&self, run: &RunId) -> Result<Option<u32>, End> {
        let (store, tenant) = (self.app.store.clone(), self.principal.tenant.clone());
        let found = self.patiently(|| {
            let (tenant, run) = (tenant.clone(), run.clone());
            store.read::<_, StoreError, _>(move |tx| {
                Box::pin(async move {
                    let Some(row) = runs::get(tx, &tenant, &run).await? else { return Ok(None) };
                    let mut end = row.last_seq;
                    while end > 0 {
                        let after = (end - i64::from(limits::LOG_PAGE)).max(0);
                        let page = log::read(tx, &tenant, &run, after, limits::LOG_PAGE).await?;
                        let reply = page.iter().rev().find_map(|logged| match &logged.event {
                            Event::ModelReplied(reply) => Some(reply.step),
                            _ => None,
                        });
                        if reply.is_some() {
                            return Ok(reply);
                        }
                        end = after;
                    }
                    Ok(None)
                })
            })
        });
        found.await
    }

    /// Sends the pieces that are next, in one write. False if something before
    /// them is missing.
    pub(super) async fn pieces(
        &mut self,
        deltas: &[Delta],
        news: &mut watch::Receiver<News>,
    ) -> Result<bool, End> {
        for delta in deltas {
            match self.steps.judge(delta) {
                Verdict::Skip => continue,
                Verdict::Gap => {
                    self.send().await?;
                    return Ok(false);
                }
                // The reply before it is committed. This node's own commits are told
                // before the next step speaks; those of others may be late.
                Verdict::First => {
                    let told = Box::pin(self.commit(news)).await?;
                    if !told || !self.app.store.is_sqlite() {
                        Box::pin(self.page()).await?;
                    }
                    if self.steps.judge(delta) == Verdict::Skip {
                        continue;
                    }
                }
                Verdict::Send => {}
            }
            let written = self.steps.sent(delta);
            if let Some(telling) = &mut self.telling {
                let flow = telling.delta(delta, &mut self.frames);
                self.said(flow)?;
                continue;
            }
            if let Some(frame) = self.source.delta_frame(delta, &self.viewer, written) {
                self.write(frame);
            }
        }
        if deltas.last().is_some_and(|last| waits(&last.piece)) {
            self.hold_until(Instant::now() + HOLD).await?;
        } else if deltas.iter().any(|delta| begins(&delta.piece)) {
            self.send().await?;
        } else {
            self.hold_until(self.spoken + PACE).await?;
        }
        Ok(true)
    }

    /// Sends what a commit told. A result goes out with the words that the model
    /// makes of it, if they come soon: the run goes on.
    pub(super) async fn send_commit(&mut self, events: &[Event]) -> Result<(), End> {
        let goes_on = events.iter().all(|event| matches!(event, Event::ToolReturned(_)));
        if goes_on && !self.finished {
            self.hold_until(Instant::now() + PACE).await
        } else {
            self.send().await
        }
    }

    /// Lets what is written wait for more, but not longer than what waits already.
    async fn hold_until(&mut self, until: Instant) -> Result<(), End> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let until = self.held.map_or(until, |held| held.min(until));
        if until <= Instant::now() {
            return self.send().await;
        }
        self.held = Some(until);
        Ok(())
    }
}

/// The first that a reader sees of a part.
fn begins(piece: &Piece) -> bool {
    matches!(piece, Piece::TextStart { .. } | Piece::ReasoningStart { .. })
}

/// The end of a part, and the arguments of a call: the commit of the step or
/// more of the same follows, and both go out in one write.
fn waits(piece: &Piece) -> bool {
    match piece {
        Piece::TextEnd { .. }
        | Piece::ReasoningEnd { .. }
        | Piece::ToolInputStart { .. }
        | Piece::ToolInputDelta { .. } => true,
        Piece::TextStart { .. }
        | Piece::TextDelta { .. }
        | Piece::ReasoningStart { .. }
        | Piece::ReasoningDelta { .. } => false,
    }
}
