//! Which streamed pieces a reader still needs: those of a step whose whole
//! reply it does not have yet, each once and in order.

use toolyard_dialects::native::InputsSoFar;
use toolyard_protocol::RunId;
use toolyard_protocol::delta::Delta;
use toolyard_protocol::event::Event;
use toolyard_store::StepSoFar;

/// Later than every step.
const ENDED: u32 = u32::MAX;
/// Runs of a space that are remembered before ended ones are forgotten.
const REMEMBERED: usize = 256;

/// What to do with a piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    /// Old news.
    Skip,
    /// The first piece of a new step: what was committed before it goes first.
    First,
    /// Something in between is missing: join again.
    Gap,
}

/// One reader's place in the steps of its runs. A list and no map: most readers
/// follow one run, and in a space the run that spoke last speaks next.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<(RunId, Place)>);

#[derive(Debug, Default)]
struct Place {
    /// The last step whose whole reply was sent or is in the log.
    replied: Option<u32>,
    /// Step, attempt and offset of the piece that comes next.
    next: Option<(u32, u32, u32)>,
    /// Step and attempt before which all is void: the step began anew.
    restarted: (u32, u32),
    inputs: InputsSoFar,
}

impl Steps {
    /// A durable event was sent.
    pub(super) fn logged(&mut self, run: &RunId, event: &Event) {
        match event {
            Event::ModelReplied(reply) => {
                let place = self.place(run);
                place.replied = Some(place.replied.map_or(reply.step, |r| r.max(reply.step)));
                place.next = None;
                place.inputs.clear();
            }
            Event::StepRestarted(anew) => {
                let place = self.place(run);
                place.restarted = (anew.step, anew.attempt);
                place.next = None;
                place.inputs.clear();
            }
            // Pieces that are still under way are void: nothing follows an end.
            Event::RunFinished(_) => {
                self.place(run).replied = Some(ENDED);
                if self.0.len() > REMEMBERED {
                    self.0.retain(|(_, place)| place.replied != Some(ENDED));
                }
            }
            _ => {}
        }
    }

    /// Is it known up to which step the log of this run goes?
    pub(super) fn knows(&self, run: &RunId) -> bool {
        self.0.iter().any(|(of, place)| of == run && place.replied.is_some())
    }

    pub(super) fn replied(&mut self, run: &RunId, step: u32) {
        self.place(run).replied = Some(step);
    }

    /// Takes a step so far; false if the log already has all of it.
    pub(super) fn join(&mut self, so_far: &StepSoFar) -> bool {
        let place = self.place(&so_far.run);
        if place.replied.is_some_and(|replied| so_far.step <= replied)
            || (so_far.step, so_far.attempt) < place.restarted
        {
            return false;
        }
        place.next = Some((so_far.step, so_far.attempt, so_far.next));
        place.inputs.clear();
        for piece in so_far.pieces() {
            place.inputs.add(&piece);
        }
        true
    }

    pub(super) fn judge(&mut self, delta: &Delta) -> Verdict {
        let place = self.place(&delta.run);
        if place.replied.is_some_and(|replied| delta.step <= replied)
            || (delta.step, delta.attempt) < place.restarted
        {
            return Verdict::Skip;
        }
        match place.next {
            Some((step, attempt, next)) if (step, attempt) == (delta.step, delta.attempt) => {
                match delta.offset.cmp(&next) {
                    std::cmp::Ordering::Less => Verdict::Skip,
                    std::cmp::Ordering::Equal => Verdict::Send,
                    std::cmp::Ordering::Greater => Verdict::Gap,
                }
            }
            Some((step, attempt, _)) if (delta.step, delta.attempt) < (step, attempt) => Verdict::Skip,
            _ if delta.offset == 0 => Verdict::First,
            _ => Verdict::Gap,
        }
    }

    /// A piece is being sent. Answers the input text of its call so far.
    pub(super) fn sent(&mut self, delta: &Delta) -> Option<&str> {
        let place = self.place(&delta.run);
        if delta.offset == 0 {
            place.inputs.clear();
        }
        place.next = Some((delta.step, delta.attempt, delta.offset + 1));
        place.inputs.add(&delta.piece)
    }

    /// The place in a run, which is the last of the list from here on.
    fn place(&mut self, run: &RunId) -> &mut Place {
        let found = self.0.iter().rposition(|(of, _)| of == run);
        let last = self.0.len().saturating_sub(1);
        match found {
            Some(at) => self.0.swap(at, last),
            None => self.0.push((run.clone(), Place::default())),
        }
        let at = self.0.len() - 1;
        &mut self.0[at].1
    }
}

#[cfg(test)]
mod tests {
    use toolyard_protocol::delta::Piece;

    use super::*;

    fn delta(run: &RunId, step: u32, attempt: u32, offset: u32) -> Delta {
        let piece = Piece::TextDelta { part: 0, text: "x".into() };
        Delta { run: run.clone(), step, attempt, offset, piece }
    }

    #[test]
    fn pieces_come_once_and_in_order() {
        let run = RunId::mint();
        let mut steps = Steps::default();
        assert_eq!(steps.judge(&delta(&run, 1, 1, 0)), Verdict::First);
        steps.sent(&delta(&run, 1, 1, 0));
        assert_eq!(steps.judge(&delta(&run, 1, 1, 0)), Verdict::Skip);
        assert_eq!(steps.judge(&delta(&run, 1, 1, 1)), Verdict::Send);
        assert_eq!(steps.judge(&delta(&run, 1, 1, 2)), Verdict::Gap);
    }

    #[test]
    fn a_step_in_the_log_needs_no_pieces() {
        let run = RunId::mint();
        let mut steps = Steps::default();
        steps.replied(&run, 2);
        assert_eq!(steps.judge(&delta(&run, 2, 1, 5)), Verdict::Skip);
        assert_eq!(steps.judge(&delta(&run, 3, 1, 0)), Verdict::First);
        assert_eq!(steps.judge(&delta(&run, 3, 1, 4)), Verdict::Gap);
    }

    #[test]
    fn nothing_follows_the_end_of_a_run() {
        let run = RunId::mint();
        let mut steps = Steps::default();
        let end = toolyard_protocol::event::RunFinished {
            status: toolyard_protocol::run::RunEnd::Completed,
            usage: Default::default(),
            cost: None,
            error: None,
            message: None,
            detail: toolyard_protocol::Guarded::Hidden,
        };
        steps.logged(&run, &Event::from(end));
        assert_eq!(steps.judge(&delta(&run, 2, 1, 0)), Verdict::Skip);
    }

    #[test]
    fn a_new_attempt_starts_over_and_the_old_one_is_void() {
        let run = RunId::mint();
        let mut steps = Steps::default();
        steps.sent(&delta(&run, 1, 2, 0));
        assert_eq!(steps.judge(&delta(&run, 1, 1, 7)), Verdict::Skip);
        assert_eq!(steps.judge(&delta(&run, 1, 3, 0)), Verdict::First);
    }
}
