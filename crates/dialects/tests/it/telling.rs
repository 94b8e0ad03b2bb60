//! What all tellings share: a run's course, and every word once.

use proptest::prelude::*;
use toolyard_dialects::telling::{Course, Hearing, Said, SoFar, Speech, Stand, Start};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::{Event, MessageTaken, ModelReplied, OpenWait, RunPaused, ToolReturned};
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::{Actor, Role, Viewer};
use toolyard_protocol::run::{FinishReason, PauseReason, Usage};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, EntityId, Guarded, MessageId, RunId, ToolName, ToolOutcome, WaitId};

use crate::samples;

/// A thought, a text, a call and a text.
fn pieces() -> Vec<Piece> {
    let (call, tool) = (samples::call(1), ToolName::parse("ask").unwrap());
    let visibility = Visibility::Public;
    vec![
        Piece::ReasoningStart { part: 0, public: false },
        Piece::ReasoningDelta { part: 0, public: false, text: "secret ".into() },
        Piece::ReasoningDelta { part: 0, public: false, text: "thought".into() },
        Piece::ReasoningEnd { part: 0, public: false },
        Piece::TextStart { part: 1 },
        Piece::TextDelta { part: 1, text: "Grüß ".into() },
        Piece::TextDelta { part: 1, text: "Gott".into() },
        Piece::TextEnd { part: 1 },
        Piece::ToolInputStart { call: call.clone(), tool: tool.clone(), visibility },
        Piece::ToolInputDelta { call: call.clone(), tool: tool.clone(), visibility, text: "{\"n\"".into() },
        Piece::ToolInputDelta { call, tool, visibility, text: ":1}".into() },
        Piece::TextStart { part: 2 },
        Piece::TextDelta { part: 2, text: "end".into() },
        Piece::TextEnd { part: 2 },
    ]
}

fn reply() -> ModelReplied {
    ModelReplied {
        step: 2,
        message: MessageId::mint(),
        parts: vec![
            Part::Reasoning { text: "secret thought".to_owned(), metadata: Guarded::Hidden },
            Part::Reasoning { text: String::new(), metadata: Guarded::Hidden },
            Part::text("Grüß Gott"),
            Part::text("end"),
        ],
        show_reasoning: false,
        calls: Vec::new(),
        usage: Usage::default(),
        cost: None,
        model: Guarded::Hidden,
        finish: FinishReason::Stop,
        partial: false,
        metadata: Guarded::Hidden,
    }
}

/// Neighbouring texts joined, as a client sees them in the end.
#[derive(Debug, Default, PartialEq, Clone)]
struct Heard(Vec<(String, String)>);

impl Heard {
    fn hear(&mut self, said: Said<'_>) {
        let (what, text) = match said {
            Said::TextStart { part } => (format!("text {part}"), ""),
            Said::Text { part, text } => (format!("text {part}"), text),
            Said::TextEnd { part } => (format!("text {part} ends"), ""),
            Said::ReasoningStart { part } => (format!("thought {part}"), ""),
            Said::Reasoning { part, text } => (format!("thought {part}"), text),
            Said::ReasoningEnd { part } => (format!("thought {part} ends"), ""),
            Said::InputStart { call, .. } => (format!("input {call}"), ""),
            Said::Input { call, text } => (format!("input {call}"), text),
            Said::Whole(part) => (format!("{part:?}"), ""),
        };
        match self.0.iter_mut().find(|(known, _)| *known == what) {
            Some((_, whole)) => whole.push_str(text),
            None => self.0.push((what, text.to_owned())),
        }
    }

    fn sorted(mut self) -> Self {
        self.0.sort();
        self
    }
}

fn delta(offset: usize, piece: &Piece) -> Delta {
    let offset = u32::try_from(offset).unwrap();
    Delta { run: samples::run(), step: 2, attempt: 1, offset, piece: piece.clone() }
}

/// The texts of the first pieces joined, as the feed keeps them.
fn joined(pieces: &[Piece]) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(Piece::TextDelta { part: a, text }), Piece::TextDelta { part: b, text: more })
                if a == b =>
            {
                *text = format!("{text}{more}").into();
            }
            (
                Some(Piece::ReasoningDelta { part: a, text, .. }),
                Piece::ReasoningDelta { part: b, text: more, .. },
            ) if a == b => *text = format!("{text}{more}").into(),
            (
                Some(Piece::ToolInputDelta { call: a, text, .. }),
                Piece::ToolInputDelta { call: b, text: more, .. },
            ) if a == b => *text = format!("{text}{more}").into(),
            _ => all.push(piece.clone()),
        }
    }
    all
}

fn listen(viewer: &Viewer, heard: usize, again: usize, then: usize) -> Heard {
    let (mut speech, mut said, pieces) = (Speech::default(), Heard::default(), pieces());
    for (offset, piece) in pieces.iter().enumerate().take(heard) {
        speech.delta(viewer, &delta(offset, piece), &mut |s| said.hear(s));
    }
    // A gap: the reader joins again and gets the step so far.
    let again = again.max(heard);
    let mut so_far = joined(&pieces[..again]).into_iter();
    let so_far = SoFar { step: 2, attempt: 1, pieces: &mut so_far };
    speech.so_far(viewer, &samples::run(), so_far, &mut |s| said.hear(s));
    for (offset, piece) in pieces.iter().enumerate().take(then.max(again)).skip(again) {
        speech.delta(viewer, &delta(offset, piece), &mut |s| said.hear(s));
    }
    speech.reply(viewer, &samples::run(), &reply(), &mut |s| said.hear(s));
    assert_eq!(speech.step(), None);
    said
}

proptest! {
    #[test]
    fn every_word_is_said_once_however_it_comes(heard in 0..15_usize, again in 0..15_usize, then in 0..15_usize) {
        let [heard, again, then] = [heard, again, then].map(|n| n.min(pieces().len()));
        let whole = |said: Heard| {
            // Calls are told by their own events when no piece of them came.
            Heard(said.sorted().0.into_iter().filter(|(what, _)| !what.starts_with("input")).collect())
        };
        let straight = whole(listen(&Viewer::secret(), pieces().len(), 0, 0));
        prop_assert_eq!(whole(listen(&Viewer::secret(), heard, again, then)), straight);
        let public = Viewer::public(EntityId::mint(), Role::Member);
        let told = listen(&public, heard, again, then);
        let leaks = told.0.iter().any(|(what, text)| what.contains("thought") || text.contains("thought"));
        prop_assert!(!leaks);
        let texts: String = told.0.iter().filter(|(what, _)| what.starts_with("text")).map(|(_, t)| t.as_str()).collect();
        prop_assert_eq!(texts, "Grüß Gottend");
    }
}

fn taken(message: &MessageId) -> Event {
    MessageTaken { messages: vec![message.clone()] }.into()
}

fn paused(calls: &[CallId]) -> Event {
    let wait = |call: &CallId| OpenWait {
        wait: WaitId::of(WaitKind::Client, call, 0),
        kind: WaitKind::Client,
        call: call.clone(),
        tool: ToolName::parse("ask").unwrap(),
    };
    RunPaused { reason: PauseReason::Client, waits: calls.iter().map(wait).collect() }.into()
}

fn returned(call: &CallId) -> Event {
    let (tool, by) = (ToolName::parse("ask").unwrap(), Actor::Gateway {});
    ToolReturned::new(call.clone(), tool, Visibility::Public, ToolOutcome::Ok(1.into()), by).into()
}

#[test]
fn a_reader_hears_its_turn_alone() {
    let run = RunId::mint();
    let (mine, other) = (MessageId::mint(), MessageId::mint());
    let mut course = Course::new(run.clone(), Start::Taking(mine.clone()));
    assert_eq!(course.hear(1, &Event::from(reply())), Hearing::Before);
    assert_eq!(course.hear(2, &taken(&other)), Hearing::Before);
    assert_eq!(course.hear(3, &taken(&mine)), Hearing::Told);
    assert_eq!(course.message(), MessageId::of_turn(&run, 3));
    assert_eq!(course.hear(4, &Event::from(reply())), Hearing::Told);
    assert_eq!(course.hear(5, &taken(&other)), Hearing::Next);
    assert_eq!(course.message(), MessageId::of_turn(&run, 3));
}

#[test]
fn a_run_waits_until_the_last_of_its_calls_ends() {
    let (a, b) = (samples::call(1), samples::call(2));
    let mut course = Course::new(RunId::mint(), Start::After(0));
    let _ = course.hear(1, &paused(&[a.clone(), b.clone()]));
    assert_eq!(course.stand(), Stand::Waits(PauseReason::Client));
    let _ = course.hear(2, &returned(&a));
    assert_eq!(course.stand(), Stand::Waits(PauseReason::Client));
    let _ = course.hear(3, &returned(&b));
    assert_eq!(course.stand(), Stand::Works);
}
