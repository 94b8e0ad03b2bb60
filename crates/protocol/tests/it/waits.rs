//! The ledger's two tables: who may answer, and which event opens or ends what.

use serde_json::Value;
use toolyard_protocol::event::{RunPaused, ToolCallRequested};
use toolyard_protocol::principal::{Role, Viewer};
use toolyard_protocol::run::PauseReason;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{AnswerRule, LedgerChange, WaitKind, may_answer};
use toolyard_protocol::{CallId, Event, WaitId};

use crate::samples;

#[test]
fn may_answer_by_rule_and_key() {
    let secret = Viewer::secret();
    let trigger = Viewer::public(samples::user(), Role::Member);
    let member = Viewer::public(samples::other(), Role::Member);
    let admin = Viewer::public(samples::other(), Role::Admin);
    let stranger = Viewer { role: None, ..member.clone() };
    let nobody = Viewer { entity: None, ..stranger.clone() };
    let viewers = [&secret, &trigger, &member, &admin, &stranger, &nobody];
    let (yes, no) = (true, false);
    let table = [
        // secret, trigger, member, admin, no member, no entity
        (AnswerRule::Trigger { entity: samples::user() }, [yes, yes, no, no, no, no]),
        (AnswerRule::Members {}, [yes, yes, yes, yes, no, no]),
        (AnswerRule::Admin {}, [yes, no, no, yes, no, no]),
        (AnswerRule::Backend {}, [yes, no, no, no, no, no]),
        (AnswerRule::Gateway {}, [no, no, no, no, no, no]),
    ];
    for (rule, expected) in table {
        assert_eq!(viewers.map(|viewer| may_answer(viewer, &rule)), expected, "{rule:?}");
    }
}

#[test]
fn an_answer_rule_is_stored_by_name() {
    let stored = |rule: AnswerRule| serde_json::to_string(&rule).unwrap();
    assert_eq!(
        stored(AnswerRule::Trigger { entity: samples::user() }),
        r#"{"rule":"trigger","entity":"ent_user"}"#
    );
    assert_eq!(stored(AnswerRule::Gateway {}), r#"{"rule":"gateway"}"#);
}

/// What each kind of event does, in one word.
fn change(event: &Event) -> &'static str {
    match LedgerChange::of(event) {
        Some(LedgerChange::Open(_)) => "opens",
        Some(LedgerChange::End(_)) => "ends a wait",
        Some(LedgerChange::EndCall(_)) => "ends a call",
        None => "",
    }
}

#[test]
fn the_ledger_changes_with_these_events_only() {
    for event in samples::all() {
        let expected = match event.kind() {
            "Asked" | "ToolCallRequested" | "ChildStarted" => "opens",
            "Answered" => "ends a wait",
            "ToolReturned" => "ends a call",
            _ => "",
        };
        assert_eq!(change(&event), expected, "{}", event.kind());
    }
}

fn requested() -> ToolCallRequested {
    let found = samples::all().into_iter().find_map(|event| match event {
        Event::ToolCallRequested(e) if e.visibility == Visibility::Public => Some(e),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_call_that_runs_here_opens_no_wait() {
    let event = Event::from(ToolCallRequested { wait: None, ..requested() });
    assert_eq!(LedgerChange::of(&event), None);
}

#[test]
fn a_client_call_opens_the_wait_that_it_names() {
    let event = requested();
    let Some(LedgerChange::Open(opened)) = LedgerChange::of(&event.clone().into()) else { panic!() };
    let parked = event.wait.unwrap();
    assert_eq!(opened.id, parked.wait);
    assert_eq!((opened.kind, opened.call, opened.rule), (WaitKind::Client, event.call, parked.rule));
    assert_eq!((opened.expires_at, opened.visibility), (event.expires, Visibility::Public));
    assert_eq!(Some(&opened.payload), parked.payload.shown());
}

#[test]
fn a_prompt_is_not_copied_into_the_ledger() {
    for event in samples::all().iter().filter(|event| event.kind() == "Asked") {
        let Some(LedgerChange::Open(opened)) = LedgerChange::of(event) else { panic!() };
        assert_eq!(opened.payload, Value::Null);
    }
}

#[test]
fn a_child_is_answered_by_the_gateway_alone() {
    for event in samples::all().iter().filter(|event| event.kind() == "ChildStarted") {
        let Some(LedgerChange::Open(opened)) = LedgerChange::of(event) else { panic!() };
        assert_eq!((opened.kind, opened.rule), (WaitKind::Child, AnswerRule::Gateway {}));
    }
}

#[test]
fn a_waits_id_follows_from_its_call() {
    let call = CallId::parse("call_abc").unwrap();
    let ids: Vec<String> = WaitKind::ALL.map(|kind| WaitId::of(kind, &call, 0).to_string()).to_vec();
    assert_eq!(
        ids,
        [
            "wait_client_abc",
            "wait_approval_abc",
            "wait_input_abc",
            "wait_credential_abc",
            "wait_child_abc",
            "wait_timer_abc"
        ]
    );
    assert_eq!(WaitId::of(WaitKind::Input, &call, 2).as_str(), "wait_input2_abc");
}

#[test]
fn only_what_needs_somebody_shows_waiting_tool() {
    let shown = WaitKind::ALL.map(|kind| (kind.as_str(), PauseReason::of(kind).status().as_str()));
    assert_eq!(
        shown,
        [
            ("client", "waiting_tool"),
            ("approval", "waiting_tool"),
            ("input", "waiting_tool"),
            ("credential", "waiting_tool"),
            ("child", "running"),
            ("timer", "running"),
        ]
    );
    assert_eq!(WaitKind::ALL.map(|kind| WaitKind::parse(kind.as_str())), WaitKind::ALL.map(Some));
    assert_eq!(WaitKind::parse("moon"), None);
}

#[test]
fn a_pause_lists_its_waits_without_arguments() {
    let paused = samples::all().into_iter().find_map(|event| match event {
        Event::RunPaused(RunPaused { waits, .. }) => Some(waits),
        _ => None,
    });
    let listed = serde_json::to_value(&paused.unwrap()[0]).unwrap();
    let keys: Vec<&String> = listed.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["call", "kind", "tool", "wait"]);
}
