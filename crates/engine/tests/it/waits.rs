//! Client calls, gates, children and timers: a run that lies on disk.

use serde_json::json;
use toolyard_engine::facts::{self, Answer};
use toolyard_engine::{AskKind, Effect, EffectId, Input, RoutedCall, State, Verdict};
use toolyard_protocol::event::{ChildAnswered, ChildAsked, Decision, OpenWait};
use toolyard_protocol::outcome::DENIED_TEXT;
use toolyard_protocol::run::{PauseReason, RunStatus};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{Event, Guarded, RunId, ToolName, ToolOutcome, WaitId};

use crate::fixture::*;

#[test]
fn a_client_call_parks_the_run_in_the_append_of_its_reply() {
    let mut story = Story::started();
    let events = story.reply(vec![client("a")]);
    assert_eq!(kinds(&events), ["ModelReplied", "ToolCallRequested", "RunPaused"]);
    assert!(story.run.is_parked());
    assert!(story.run.due().is_empty());
    assert_eq!(story.run.status(), RunStatus::WaitingTool);
    let Event::RunPaused(paused) = &events[2] else { panic!("a pause") };
    assert_eq!(paused.reason, PauseReason::Client);
    let wait = OpenWait {
        wait: WaitId::of(WaitKind::Client, &id("a"), 0),
        kind: WaitKind::Client,
        call: id("a"),
        tool: ToolName::parse("look_up").unwrap(),
    };
    assert_eq!(paused.waits, [wait]);
}

#[test]
fn the_last_result_of_a_step_makes_the_model_due_and_earlier_ones_add_nothing() {
    let mut story = Story::started();
    story.reply(vec![client("a"), client("b")]);
    story.result("b", ok());
    assert!(story.run.is_parked());
    assert!(story.tell(Input::Woken).is_empty());
    story.result("a", failed());
    assert_eq!(story.due(), ["model"]);
    assert!(story.tell(claimed()).is_empty());
    assert_eq!(story.heard(), [(id("a"), Some(failed())), (id("b"), Some(ok()))]);
}

#[test]
fn spec_10_a_mixed_step_runs_its_gateway_call_and_pauses_when_that_ends() {
    let mut story = Story::started();
    let events = story.reply(vec![gateway("a"), client("b")]);
    assert_eq!(kinds(&events), ["ModelReplied", "ToolCallRequested", "ToolCallRequested"]);
    assert!(matches!(story.run.state(), State::Acting { .. }));
    assert_eq!((story.run.status(), story.run.is_parked()), (RunStatus::Running, false));
    assert_eq!(story.due(), ["tool"]);
    let mut early = story.clone();
    assert_eq!(kinds(&story.ended("a", ok())), ["ToolReturned", "RunPaused"]);
    story.result("b", ok());
    assert_eq!(story.due(), ["model"]);
    // The client is faster: no pause at all.
    early.result("b", ok());
    assert!(early.tell(Input::Woken).is_empty());
    assert_eq!(kinds(&early.ended("a", ok())), ["ToolReturned"]);
    assert_eq!(early.due(), ["model"]);
}

#[test]
fn an_allowed_call_is_routed_again_before_it_is_requested() {
    let mut story = Story::started();
    let events = story.reply(vec![asked("a", AskKind::Approval)]);
    assert_eq!(kinds(&events), ["ModelReplied", "Asked", "RunPaused"]);
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Approval));
    story.answer("a", Answer::Allow { edited: None });
    assert!(story.tell(claimed()).is_empty());
    let due = story.run.due();
    let [Effect::Route { args, edited, approved, round, .. }] = due.as_slice() else {
        panic!("a route, not {due:?}")
    };
    assert_eq!((args.as_ref(), *edited, *approved, *round), (&json!({"q": "a"}), false, true, 1));
    assert_eq!(kinds(&story.tell(Input::Routed(gateway("a")))), ["ToolCallRequested"]);
    assert_eq!(story.due(), ["tool"]);
}

#[test]
fn edited_arguments_replace_the_models_and_may_be_refused_after_all() {
    let mut story = Story::started();
    story.reply(vec![asked("a", AskKind::Approval)]);
    let edited = json!({"q": "safer"});
    story.answer("a", Answer::Allow { edited: Some(edited.clone()) });
    let Some(Effect::Route { args, edited: true, .. }) = story.run.due().pop() else {
        panic!("an edited route")
    };
    assert_eq!(*args, edited);
    let mut refusing = story.clone();
    let bad = refused("a", failed());
    assert_eq!(kinds(&refusing.tell(Input::Routed(bad))), ["ToolReturned"]);
    assert_eq!(refusing.due(), ["model"]);
    story.tell(Input::Routed(RoutedCall { args: edited.clone(), ..gateway("a") }));
    let Some(Effect::RunTool { args, .. }) = story.run.due().pop() else { panic!("a tool") };
    assert_eq!(*args, edited);
}

#[test]
fn a_cleared_client_call_parks_the_run_again_with_a_pause_of_its_own() {
    let mut story = Story::started();
    let mut call = client("a");
    call.verdict = asked("a", AskKind::Approval).verdict;
    story.reply(vec![call]);
    story.answer("a", Answer::Allow { edited: None });
    story.tell(claimed());
    let events = story.tell(Input::Routed(client("a")));
    assert_eq!(kinds(&events), ["ToolCallRequested", "RunPaused"]);
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Client));
}

#[test]
fn a_second_question_of_one_call_has_a_wait_of_its_own() {
    let mut story = Story::started();
    story.reply(vec![asked("a", AskKind::Input)]);
    story.answer("a", Answer::Provide(json!(1)));
    story.tell(claimed());
    story.tell(Input::Routed(asked("a", AskKind::Input)));
    let wait = story.wait("a").id;
    assert_eq!(wait, WaitId::of(WaitKind::Input, &id("a"), 1));
    // The first answer comes again: it is for a wait that is gone.
    let stale = story.log.iter().find(|e| e.kind() == "Answered").unwrap().clone();
    let before = story.run.clone();
    story.run.fold(&stale);
    assert_eq!(before, story.run);
}

#[test]
fn a_running_call_may_stop_to_ask_and_goes_on_with_what_was_provided() {
    let mut story = Story::acting(false);
    let first = story.run.due()[0].id();
    let events = story.tell(Input::Routed(asked("a", AskKind::Credential)));
    assert_eq!(kinds(&events), ["Asked", "RunPaused"]);
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Credential));
    story.answer("a", Answer::Provide(json!("token")));
    // A claim after that finds nothing uncertain: the call was not running.
    assert!(story.tell(recovered()).is_empty());
    assert_eq!(story.run.due()[0].id(), EffectId::Route { call: id("a"), round: 1 });
    story.tell(Input::Routed(gateway("a")));
    let Some(effect @ Effect::RunTool { .. }) = story.run.due().pop() else { panic!("a tool") };
    assert_ne!(effect.id(), first);
    let Effect::RunTool { provided, .. } = effect else { panic!("a tool") };
    assert_eq!(provided.as_deref(), Some(&json!("token")));
}

#[test]
fn a_denied_call_ends_at_once_and_the_rest_of_the_step_waits_on_for_another_reason() {
    let mut story = Story::started();
    story.reply(vec![asked("a", AskKind::Approval), client("b")]);
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Approval));
    story.answer("a", Answer::Deny { message: None });
    assert_eq!(kinds(&story.tell(claimed())), ["RunPaused"]);
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Client));
    assert!(story.tell(claimed()).is_empty());
    story.result("b", ok());
    let denied = ToolOutcome::Denied(DENIED_TEXT.to_owned());
    assert_eq!(story.heard()[0], (id("a"), Some(denied)));
}

#[test]
fn a_timer_parks_the_run_but_it_shows_running() {
    let mut story = Story::started();
    let events = story.reply(vec![timer("a")]);
    let Some(Event::RunPaused(paused)) = events.last() else { panic!("a pause") };
    assert_eq!(paused.reason, PauseReason::Timer);
    assert_eq!((story.run.status(), story.run.is_parked()), (RunStatus::Running, true));
    assert_eq!(story.wait("a").rule, AnswerRule::Gateway {});
    let due = story.wait("a").expires_at.unwrap();
    assert!(facts::expire(&story.wait("a"), NOW).is_empty());
    let events = facts::expire(&story.wait("a"), due);
    let expected = json!({
        "success": true, "waited": 500, "reason": "tea", "timestamp": due.to_string()
    });
    assert_eq!(ends(&events), [("a".to_owned(), expected)]);
    story.fact(events);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn a_child_parks_its_call_and_what_it_asks_shows_on_the_parent() {
    let mut story = Story::acting(true);
    let child = RunId::parse("run_2").unwrap();
    let start = || Input::ChildStarted { call: id("a"), child: child.clone(), expires: None, stream: false };
    assert_eq!(kinds(&story.tell(start())), ["ChildStarted", "RunPaused"]);
    assert!(story.tell(start()).is_empty());
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Child));
    assert_eq!(story.run.status(), RunStatus::Running);
    // After a crash the child still runs: the call is not uncertain.
    assert!(story.tell(recovered()).is_empty());
    let wait = WaitId::parse("wait_approval_x").unwrap();
    story.fact(vec![
        ChildAsked {
            call: id("a"),
            child: child.clone(),
            wait: wait.clone(),
            kind: WaitKind::Approval,
            rule: AnswerRule::Members {},
            payload: Guarded::Hidden,
        }
        .into(),
    ]);
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Approval));
    assert_eq!(story.run.status(), RunStatus::WaitingTool);
    story.fact(vec![
        ChildAnswered {
            call: id("a"),
            child,
            wait,
            outcome: Decision::Allow,
            visibility: Visibility::Public,
            value: Guarded::Hidden,
        }
        .into(),
    ]);
    assert_eq!(story.run.status(), RunStatus::Running);
    let events = facts::end_child(&story.wait("a"), ok(), None, None).unwrap();
    story.fact(events);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn what_a_child_asks_is_listed_in_the_pause_and_ends_with_its_call() {
    let mut story = Story::started();
    let child = RunId::parse("run_2").unwrap();
    story.reply(vec![gateway("a"), gateway("b"), client("c")]);
    story.tell(Input::ChildStarted { call: id("a"), child: child.clone(), expires: None, stream: false });
    let wait = WaitId::parse("wait_input_x").unwrap();
    let asked = ChildAsked {
        call: id("a"),
        child,
        wait: wait.clone(),
        kind: WaitKind::Input,
        rule: AnswerRule::Members {},
        payload: Guarded::Hidden,
    };
    story.fact(vec![asked.clone().into(), asked.into()]);
    assert_eq!(story.run.child_waits().len(), 1);
    let events = story.ended("b", ok());
    let Some(Event::RunPaused(paused)) = events.last() else { panic!("a pause") };
    let listed: Vec<_> = paused.waits.iter().map(|w| w.kind).collect();
    assert_eq!(paused.reason, PauseReason::Input);
    assert_eq!(listed, [WaitKind::Child, WaitKind::Client, WaitKind::Input]);
    assert_eq!(paused.waits[2].wait, wait);
    let ended = facts::end_child(&story.wait("a"), failed(), None, None).unwrap();
    story.fact(ended);
    assert!(story.run.child_waits().is_empty());
    assert_eq!(story.run.pause_reason(), Some(PauseReason::Client));
}

#[test]
fn the_most_urgent_wait_names_the_pause() {
    let asks = [AskKind::Credential, AskKind::Input, AskKind::Approval];
    let mut calls = vec![timer("t"), client("c")];
    let mut seen = Vec::new();
    for n in 0..=asks.len() {
        let mut story = Story::started();
        story.reply(calls.clone());
        seen.push(story.run.pause_reason().unwrap());
        if let Some(kind) = asks.get(n) {
            calls.push(asked(&format!("q{n}"), *kind));
        }
    }
    use PauseReason::{Approval, Client, Credential, Input};
    assert_eq!(seen, [Client, Credential, Input, Approval]);
}

#[test]
fn a_verdict_for_a_call_that_is_not_routed_is_stale() {
    let mut story = Story::waiting_for_client();
    assert!(story.tell(Input::Routed(gateway("a"))).is_empty());
    assert!(story.tell(Input::Routed(gateway("unknown"))).is_empty());
    let mut story = Story::acting(false);
    assert!(story.tell(Input::Routed(gateway("a"))).is_empty());
    let refuse = RoutedCall { verdict: Verdict::Refuse(failed()), ..gateway("a") };
    assert!(story.tell(Input::Routed(refuse)).is_empty());
}
