//! The runs behind calls: found for their owner, followed, answered, stopped.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolyard_dialects::mcp::{self, Able, Following, Given, Line, Opening, Standing, Until};
use toolyard_mcp::server::{Fault, Visit};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{ErrorCode, MessageId, RunId, Viewer, WaitId, limits};
use toolyard_runtime::{Answer, AnswerIn, Caller, ResultIn};
use toolyard_store::runs::RunRow;
use toolyard_store::{StoreError, runs, waits};

use super::desk::{AgentDesk, fault};
use crate::routes::dispatch::run_viewer;
use crate::sse;

/// A run that a caller may follow.
pub(super) struct Reached {
    pub(super) row: RunRow,
    pub(super) viewer: Viewer,
    /// The caller's message, if the run has not heard it yet.
    pub(super) taking: Option<MessageId>,
    /// The call stands for the run: who takes it back stops the run.
    pub(super) own: bool,
}

impl Reached {
    /// The name by which the conversation goes on.
    pub(super) fn session(&self) -> Option<&str> {
        self.row.space.as_ref().map(|space| space.as_str())
    }
}

/// How a following ended.
pub(super) enum Watched {
    Stands(Box<Standing>),
    /// It takes longer than a call should.
    Long,
}

/// The caller's run of this agent. Everything else is not there.
pub(super) async fn find(desk: &AgentDesk, run: &RunId) -> Result<Reached, Fault> {
    let missing = || Fault::params(format!("There is no run {run}"));
    let (tenant, id) = (desk.principal.tenant.clone(), run.clone());
    let row = desk
        .app
        .store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &id).await }))
        .await
        .map_err(fault)?
        .filter(|row| row.agent == desk.agent && row.parent.is_none())
        .ok_or_else(missing)?;
    let viewer = run_viewer(&desk.app, &desk.principal, &row).await.map_err(fault)?.ok_or_else(missing)?;
    Ok(Reached { row, viewer, taking: None, own: false })
}

/// Follows a run until it rests. What happens on the way is progress.
pub(super) async fn watch(
    desk: &AgentDesk,
    reached: &Reached,
    until: Until,
    visit: &Visit,
    longest: Option<Duration>,
) -> Result<Watched, Fault> {
    let run = reached.row.id.clone();
    let opening =
        Opening { run: run.clone(), viewer: reached.viewer.clone(), taking: reached.taking.clone(), until };
    let telling = Box::new(Following::new(opening));
    let response =
        sse::tell(desk.call(visit), reached.viewer.clone(), run, reached.row.space.clone(), telling);
    let mut pieces = response.into_body().into_data_stream();
    let (mut lines, mut heard) = (Lines::default(), 0.0);
    // A call that may take any time sleeps beyond all calls.
    let deadline = Instant::now() + longest.unwrap_or(FOR_EVER);
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            () = visit.cancelled() => return Err(taken_back(desk, reached).await),
            () = tokio::time::sleep_until(deadline) => return Ok(Watched::Long),
        };
        let Some(Ok(piece)) = piece else {
            let text = format!("The gateway stopped. The run {} goes on: come back to it", reached.row.id);
            return Err(Fault::new(Fault::INTERNAL, text));
        };
        lines.push(&piece);
        // It counts as unread until it is let go.
        drop(piece);
        while let Some(line) = lines.next() {
            match serde_json::from_slice::<Line>(&line) {
                Ok(Line::Progress { message }) => {
                    heard += 1.0;
                    visit.progress(heard, None, Some(message)).await;
                }
                Ok(Line::Stands(stands)) => return Ok(Watched::Stands(stands)),
                // An empty line keeps the stream alive.
                Err(_) => {}
            }
        }
    }
}

/// The lines of a body, as its pieces come.
#[derive(Default)]
struct Lines {
    held: Vec<u8>,
    /// So much of it holds no end of a line: a long one comes in many pieces.
    searched: usize,
}

impl Lines {
    fn push(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let found = self.held[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = found.map(|end| self.searched + end) else {
            self.searched = self.held.len();
            return None;
        };
        self.searched = 0;
        Some(self.held.drain(..=end).collect())
    }
}

/// The caller has left.
pub(super) async fn taken_back(desk: &AgentDesk, reached: &Reached) -> Fault {
    // A gateway that stops hangs up too, and its runs go on.
    if reached.own && !desk.app.shutdown.is_cancelled() {
        let _ = cancel(desk, reached).await;
    }
    Fault::new(Fault::INTERNAL, "The call was taken back")
}

const FOR_EVER: Duration = Duration::from_secs(366 * 24 * 3600);

/// Where a run stands now.
pub(super) async fn stand(desk: &AgentDesk, reached: &Reached, visit: &Visit) -> Result<Standing, Fault> {
    // To look at a run is not to own it.
    let seen = Reached { own: false, taking: None, row: reached.row.clone(), viewer: reached.viewer.clone() };
    match watch(desk, &seen, Until::Now, visit, None).await? {
        Watched::Stands(stands) => Ok(*stands),
        Watched::Long => Err(Fault::new(Fault::INTERNAL, "The log could not be read")),
    }
}

/// `tasks/get`
pub(super) async fn task(desk: &AgentDesk, run: &RunId, visit: &Visit, able: Able) -> Result<Value, Fault> {
    let reached = find(desk, run).await?;
    let stands = stand(desk, &reached, visit).await?;
    let times = (reached.row.created_at, reached.row.updated_at);
    Ok(mcp::task(&stands, reached.session(), able, times))
}

/// Hands in what a client's user said. What was answered elsewhere stands.
/// Answers whether something was given.
pub(super) async fn give(
    desk: &AgentDesk,
    reached: &Reached,
    replies: &Map<String, Value>,
    visit: &Visit,
) -> Result<bool, Fault> {
    if replies.len() > limits::RESULT_BATCH {
        let most = limits::RESULT_BATCH;
        return Err(Fault::params(format!("inputResponses: at most {most} answers")));
    }
    let stands = stand(desk, reached, visit).await?;
    let mut given = Vec::new();
    for open in stands.open.iter().filter(|open| open.may_answer) {
        if let Some(said) = open.given(replies).map_err(Fault::params)? {
            given.push((open.wait.clone(), said));
        }
    }
    let actor = Actor::caller(&desk.principal, None);
    let caller = Caller { tenant: desk.principal.tenant.clone(), viewer: reached.viewer.clone(), actor };
    let mut moved = false;
    for (wait, said) in given {
        let answer = match said {
            Given::Allow => Answer::Allow { edited: None },
            Given::Deny(message) => Answer::Deny { message },
            Given::Provide(value) => Answer::Provide(value),
            Given::Outcome(outcome) => {
                let call = call_of(desk, &wait).await?;
                let results = vec![ResultIn { call, outcome }];
                let taken = desk.app.runtime.submit(caller.clone(), reached.row.id.clone(), results).await;
                moved |= settled(taken.map(drop))?;
                continue;
            }
            Given::Nothing => continue,
        };
        let answer = AnswerIn { answer, remember: None, args_hash: None };
        moved |= settled(desk.app.runtime.answer(caller.clone(), wait, answer).await)?;
    }
    Ok(moved)
}

/// Somebody else was first: their word stands.
fn settled(taken: Result<(), toolyard_protocol::ApiError>) -> Result<bool, Fault> {
    match taken {
        Ok(()) => Ok(true),
        Err(e) if e.code == ErrorCode::RunEnded || e.code.status() == 409 => Ok(true),
        Err(e) => Err(fault(e)),
    }
}

/// The call of a wait, of this run or of one below it.
async fn call_of(desk: &AgentDesk, wait: &WaitId) -> Result<toolyard_protocol::CallId, Fault> {
    let (tenant, id) = (desk.principal.tenant.clone(), wait.clone());
    let found = desk
        .app
        .store
        .read::<_, StoreError, _>(move |tx| Box::pin(async move { waits::find(tx, &tenant, &id).await }));
    let row = found.await.map_err(fault)?;
    row.map(|row| row.wait.call).ok_or_else(|| Fault::params("There is no such question"))
}

/// Stops a run. One that has ended is stopped already.
pub(super) async fn cancel(desk: &AgentDesk, reached: &Reached) -> Result<(), Fault> {
    let Reached { row, viewer, .. } = reached;
    // Whoever may answer a run's questions by default may stop it.
    if !viewer.sees_all() && (viewer.entity.is_none() || viewer.entity != row.triggered_by) {
        return Err(Fault::params("Only the one this run works for may stop it"));
    }
    let actor = Actor::caller(&desk.principal, None);
    let caller = Caller { tenant: desk.principal.tenant.clone(), viewer: viewer.clone(), actor };
    match desk.app.runtime.cancel(caller, row.id.clone(), None).await {
        Err(e) if e.code != ErrorCode::RunEnded => Err(fault(e)),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_wherever_their_pieces_are_cut() {
        let text = b"one\n\ntwo and more\nthree\n";
        for size in 1..=text.len() {
            let (mut lines, mut whole) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.push(piece);
                whole.extend(std::iter::from_fn(|| lines.next()));
            }
            assert_eq!(whole, [&b"one\n"[..], b"\n", b"two and more\n", b"three\n"], "{size}");
        }
    }

    #[test]
    fn a_long_line_in_many_pieces_is_searched_once() {
        let mut lines = Lines::default();
        for n in 1..=1000 {
            lines.push(&[b'x'; 100]);
            assert_eq!(lines.next(), None);
            assert_eq!(lines.searched, n * 100);
        }
        lines.push(b"\n");
        assert_eq!(lines.next().map(|line| line.len()), Some(100_001));
    }
}
