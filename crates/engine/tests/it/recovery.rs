//! After a crash: fold, claim, go on. Uncertain is said, not guessed.

use toolyard_engine::facts::Answer;
use toolyard_engine::{AskKind, Effect, Input, RoutedCall, Run, Tools, Verdict};
use toolyard_protocol::outcome::{CANCELED_TEXT, UNCERTAIN_TEXT};
use toolyard_protocol::{Event, ToolOutcome};

use crate::fixture::*;

fn refold(story: &Story) -> Run {
    let mut run = Run::new(story.run.id().clone());
    story.log.iter().for_each(|e| run.fold(e));
    run
}

#[test]
fn the_state_is_the_fold_of_the_log() {
    let mut story = Story::started();
    story.reply(vec![client("a"), asked("b", AskKind::Input)]);
    assert_eq!(refold(&story), story.run);
    let text: Vec<String> = story.log.iter().map(Event::encode).collect();
    let mut stored = Run::new(story.run.id().clone());
    for line in &text {
        stored.fold(&Event::decode(line).unwrap());
    }
    assert_eq!(stored, story.run);
}

#[test]
fn a_step_that_was_cut_is_tried_again_with_the_next_attempt() {
    let mut story = Story::started();
    assert_eq!(kinds(&story.tell(recovered())), ["StepRestarted"]);
    assert_eq!(kinds(&story.tell(recovered())), ["StepRestarted"]);
    let model = Effect::CallModel { step: 1, attempt: 3, tools: Tools::On };
    assert_eq!((story.run.due(), story.run.attempt()), (vec![model], 3));
}

#[test]
fn inv_b_a_call_that_may_have_run_ends_uncertain_and_is_never_started_twice() {
    let mut story = Story::acting(false);
    let events = story.tell(recovered());
    assert_eq!(ends(&events), [("a".to_owned(), serde_json::json!(UNCERTAIN_TEXT))]);
    assert_eq!(story.due(), ["model"]);
    assert!(story.ended("a", ok()).is_empty());
}

#[test]
fn a_claim_never_repeats_an_outside_effect_even_if_nobody_says_recovered() {
    let mut story = Story::acting(false);
    story.tell(claimed());
    assert_eq!(story.heard(), [(id("a"), Some(ToolOutcome::Uncertain(UNCERTAIN_TEXT.to_owned())))]);
}

#[test]
fn a_far_side_that_works_on_is_asked_for_the_end_and_not_called_again() {
    let mut story = Story::acting(false);
    let ticket = serde_json::json!({"taskId": "t"});
    let kept = Input::Progressed {
        call: id("a"),
        fraction: None,
        message: None,
        preliminary: None,
        ticket: Some(ticket.clone()),
    };
    assert_eq!(kinds(&story.tell(kept)), ["ToolProgressed"]);
    assert!(story.tell(recovered()).is_empty());
    let Some(Effect::RunTool { ticket: due, .. }) = story.run.due().pop() else { panic!("a tool") };
    assert_eq!(due.as_deref(), Some(&ticket));
    assert_eq!(refold(&story), story.run);
}

/// The call stays in flight while somebody is asked; if its node dies, nobody
/// waits for the answer any more.
#[test]
fn a_question_in_flight_keeps_its_call_and_dies_with_its_node() {
    for idempotent in [false, true] {
        let mut story = Story::acting(idempotent);
        let before = story.run.due();
        let question = || {
            let verdict = Verdict::Question { expires: None, payload: serde_json::json!({"q": 1}) };
            Input::Routed(RoutedCall { verdict, ..gateway("a") })
        };
        assert_eq!(kinds(&story.tell(question())), ["Asked"]);
        assert!(story.tell(question()).is_empty(), "one at a time");
        assert_eq!(
            (story.run.due(), story.run.open_waits().len(), story.ledger.len()),
            (before.clone(), 1, 1)
        );
        // An answer reaches the call; the next question has another name.
        let mut heard = story.clone();
        let first = heard.wait("a").id;
        heard.answer("a", Answer::Provide(serde_json::json!("blue")));
        let call = heard.run.call(&id("a")).unwrap();
        assert_eq!(
            (call.asking.is_none(), call.provided.as_deref()),
            (true, Some(&serde_json::json!("blue")))
        );
        assert!(heard.ledger.is_empty());
        heard.tell(question());
        assert_ne!(heard.wait("a").id, first);
        // A no ends the call, a cancel too.
        let mut denied = story.clone();
        denied.answer("a", Answer::Deny { message: None });
        assert_eq!((denied.due(), denied.ledger.len()), (vec!["model"], 0));
        let mut canceled = story.clone();
        canceled.cancel();
        canceled.tell(halted());
        assert!(canceled.run.is_finished() && canceled.ledger.is_empty());
        // The node dies.
        let events = kinds(&story.tell(recovered()));
        assert_eq!(events, if idempotent { vec!["Answered"] } else { vec!["Answered", "ToolReturned"] });
        assert!(story.ledger.is_empty());
        assert_eq!(story.due(), [if idempotent { "tool" } else { "model" }]);
    }
}

#[test]
fn an_idempotent_call_is_simply_due_again() {
    let mut story = Story::acting(true);
    let before = story.run.due();
    assert!(story.tell(recovered()).is_empty());
    assert_eq!(story.run.due(), before);
}

#[test]
fn a_mixed_step_pauses_in_the_append_that_recovers_it() {
    let mut story = Story::started();
    let twice = RoutedCall { idempotent: true, ..gateway("b") };
    story.reply(vec![gateway("a"), twice, client("c")]);
    assert_eq!(kinds(&story.tell(recovered())), ["ToolReturned"]);
    assert_eq!(story.due(), ["tool"]);
    let mut story = Story::started();
    story.reply(vec![gateway("a"), client("c")]);
    assert_eq!(kinds(&story.tell(recovered())), ["ToolReturned", "RunPaused"]);
}

#[test]
fn uncertain_calls_count_as_failures() {
    let mut story = Story::started();
    story.reply(vec![gateway("a"), gateway("b"), gateway("c")]);
    let events = story.tell(recovered());
    assert_eq!(kinds(&events), ["ToolReturned", "ToolReturned", "ToolReturned", "RunFinished"]);
}

#[test]
fn a_waiting_run_that_is_recovered_has_nothing_to_say() {
    let mut story = Story::waiting_for_client();
    assert!(story.tell(recovered()).is_empty());
    assert!(story.run.is_parked());
}

#[test]
fn a_cancel_that_meets_a_crash_still_says_what_is_uncertain() {
    let mut story = Story::started();
    let twice = RoutedCall { idempotent: true, ..gateway("b") };
    story.reply(vec![gateway("a"), twice]);
    story.cancel();
    let events = story.tell(recovered());
    assert_eq!(kinds(&events), ["ToolReturned", "ToolReturned", "RunFinished"]);
    let texts: Vec<_> = ends(&events).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [UNCERTAIN_TEXT, CANCELED_TEXT]);
}

#[test]
fn a_cancel_while_the_model_spoke_and_the_node_died_ends_without_a_restart() {
    let mut story = Story::started();
    story.cancel();
    assert_eq!(kinds(&story.tell(recovered())), ["RunFinished"]);
}

#[test]
fn a_log_that_stops_between_a_reply_and_its_calls_still_goes_on() {
    // One append holds both, so only a damaged log looks like this.
    let mut whole = Story::started();
    whole.reply(vec![gateway("a")]);
    let mut run = Run::new(whole.run.id().clone());
    whole.log[..whole.log.len() - 1].iter().for_each(|e| run.fold(e));
    let due = run.due();
    assert!(matches!(due.as_slice(), [Effect::Route { .. }]));
    assert_eq!(kinds(&run.next(NOW, Input::Routed(gateway("a")))), ["ToolCallRequested"]);
}

#[test]
fn a_closed_gate_without_its_end_is_ended_by_the_next_owner() {
    use toolyard_engine::facts::{self, Answer};
    let mut story = Story::started();
    story.reply(vec![asked("a", AskKind::Approval)]);
    let mut events = facts::answer(&story.wait("a"), Answer::Deny { message: None }, person()).unwrap();
    events.truncate(1);
    story.fact(events);
    assert!(!story.run.is_parked());
    assert_eq!(kinds(&story.tell(claimed())), ["ToolReturned"]);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn a_reply_of_another_step_is_not_taken_for_this_one() {
    let mut story = Story::acting(true);
    story.ended("a", ok());
    let old = story.log.iter().find(|e| e.kind() == "ModelReplied").unwrap().clone();
    let before = story.run.clone();
    story.run.fold(&old);
    assert_eq!(story.run, before);
}
