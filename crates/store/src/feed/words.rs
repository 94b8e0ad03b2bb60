//! What nodes tell each other, as text. News never carries truth, only where to
//! look for it; pieces are what a step streams before its commit.
//!
//! A word of a newer release that is not understood is left out: readers then
//! wait for the commit.

use serde::{Deserialize, Serialize};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::{RunId, SpaceId, TenantId};

use crate::so_far::StepSoFar;
use crate::tx::{CallNews, Touched};

/// What readers follow, and so what a channel is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Run(RunId),
    Space(SpaceId),
}

impl Subject {
    pub(super) fn write(&self) -> String {
        match self {
            Self::Run(run) => format!("r:{run}"),
            Self::Space(space) => format!("s:{space}"),
        }
    }
    pub(super) fn read(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("r", id) => RunId::parse(id).ok().map(Self::Run),
            ("s", id) => SpaceId::parse(id).ok().map(Self::Space),
            _ => None,
        }
    }
}

/// One message between nodes.
#[derive(Debug)]
pub(super) enum Word {
    /// Something was committed.
    News(Touched),
    /// Who works on this says how far its steps are.
    Ask(Subject),
    /// Pieces of one attempt at a step, one behind the other.
    Pieces(Vec<Delta>),
    SoFar(StepSoFar),
    /// The worker of this run stopped in the middle of a step.
    Forgot(RunId),
}

#[derive(Serialize, Deserialize)]
struct Pieces<P> {
    run: RunId,
    step: u32,
    attempt: u32,
    /// The offset of the first piece; in a step so far, of the next one.
    at: u32,
    pieces: P,
}

/// A message with the name of its sender: a node also hears itself.
fn message(mark: char, from: &str, rest: &str) -> String {
    format!("{mark} {from} {rest}")
}

fn json(mark: char, from: &str, value: &impl Serialize) -> Option<String> {
    Some(message(mark, from, &serde_json::to_string(value).ok()?))
}

pub(super) fn news(from: &str, news: &Touched) -> String {
    message('n', from, &write_news(news))
}

pub(super) fn ask(from: &str, subject: &Subject) -> String {
    message('q', from, &subject.write())
}

pub(super) fn forgot(from: &str, run: &RunId) -> String {
    message('x', from, run.as_str())
}

pub(super) fn pieces(from: &str, deltas: &[Delta]) -> Option<String> {
    let Delta { run, step, attempt, offset, .. } = deltas.first()?;
    let pieces: Vec<&Piece> = deltas.iter().map(|delta| &delta.piece).collect();
    json('p', from, &Pieces { run: run.clone(), step: *step, attempt: *attempt, at: *offset, pieces })
}

pub(super) fn so_far(from: &str, so_far: &StepSoFar) -> Option<String> {
    let StepSoFar { run, step, attempt, next, .. } = so_far;
    let pieces: Vec<Piece> = so_far.pieces().collect();
    json('f', from, &Pieces { run: run.clone(), step: *step, attempt: *attempt, at: *next, pieces })
}

/// A message and who sent it; none if it is the own or nobody knows it.
pub(super) fn read<'t>(me: &str, text: &'t str) -> Option<(&'t str, Word)> {
    let (mark, rest) = text.split_once(' ')?;
    let (from, rest) = rest.split_once(' ')?;
    if from == me {
        return None;
    }
    let word = match mark {
        "n" => Word::News(read_news(rest)?),
        "q" => Word::Ask(Subject::read(rest)?),
        "x" => Word::Forgot(RunId::parse(rest).ok()?),
        "p" => {
            let Pieces { run, step, attempt, at, pieces } = understood::<Vec<Piece>>(rest)?;
            let delta = |(offset, piece)| Delta { run: run.clone(), step, attempt, offset, piece };
            Word::Pieces((at..).zip(pieces).map(delta).collect())
        }
        "f" => {
            let Pieces { run, step, attempt, at, pieces } = understood(rest)?;
            Word::SoFar(StepSoFar::told(run, step, attempt, at, pieces))
        }
        _ => return None,
    };
    Some((from, word))
}

fn understood<P: for<'d> Deserialize<'d>>(text: &str) -> Option<Pieces<P>> {
    serde_json::from_str(text).ok()
}

/// News as one line. PostgreSQL's notifications are the same line.
pub(crate) fn write_news(news: &Touched) -> String {
    format!(
        "{} {} {} {} {} {} {}",
        news.tenant,
        news.run.as_ref().map_or("-", RunId::as_str),
        news.seq,
        news.space.as_ref().map_or("-", SpaceId::as_str),
        news.replied.map_or(-1, i64::from),
        news.calls.digit(),
        u8::from(news.restarted),
    )
}

pub(crate) fn read_news(text: &str) -> Option<Touched> {
    let mut words = text.split(' ');
    let mut word = || words.next();
    Some(Touched {
        tenant: TenantId::parse(word()?).ok()?,
        run: RunId::parse(word()?).ok().filter(|r| r.as_str() != "-"),
        seq: word()?.parse().ok()?,
        space: SpaceId::parse(word()?).ok().filter(|s| s.as_str() != "-"),
        replied: u32::try_from(word()?.parse::<i64>().ok()?).ok(),
        // A node of an older release says nothing here: look.
        calls: CallNews::from_digit(word().and_then(|w| w.parse().ok()).unwrap_or(3)),
        restarted: word() == Some("1"),
        commit: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn touched() -> Touched {
        Touched {
            tenant: TenantId::parse("acme").unwrap(),
            run: Some(RunId::mint()),
            seq: 7,
            space: None,
            replied: Some(2),
            restarted: true,
            calls: CallNews { parked: true, ended: false },
            commit: None,
        }
    }

    #[test]
    fn news_comes_back_as_it_went() {
        let news = touched();
        assert_eq!(read_news(&write_news(&news)), Some(news));
        let older = "acme run_1 7 - 2";
        assert_eq!(read_news(older).unwrap().calls, CallNews { parked: true, ended: true });
    }

    #[test]
    fn pieces_and_the_step_so_far_come_back_as_they_went() {
        let run = RunId::mint();
        let piece = |offset, piece| Delta { run: run.clone(), step: 2, attempt: 1, offset, piece };
        let deltas = vec![
            piece(3, Piece::TextDelta { part: 0, text: "Hél\n".into() }),
            piece(4, Piece::TextEnd { part: 0 }),
        ];
        let Some((from, Word::Pieces(heard))) =
            read("me", &pieces("you", &deltas).unwrap()).map(|(f, w)| (f.to_owned(), w))
        else {
            panic!("not read");
        };
        assert_eq!((from.as_str(), heard), ("you", deltas.clone()));

        let mut whole = StepSoFar::start(&deltas[0]);
        deltas.iter().for_each(|delta| whole.add(delta));
        let text = so_far("you", &whole).unwrap();
        let Some((_, Word::SoFar(heard))) = read("me", &text) else { panic!("not read") };
        assert_eq!((heard.next, heard.pieces().collect::<Vec<_>>()), (5, whole.pieces().collect()));
    }

    #[test]
    fn the_own_voice_and_nonsense_are_no_words() {
        assert!(read("me", &news("me", &touched())).is_none());
        for text in ["", "n", "n you", "p you {}", "p you {\"run\":\"r\"}", "z you x", "q you k:1"] {
            assert!(read("me", text).is_none(), "{text}");
        }
    }
}
