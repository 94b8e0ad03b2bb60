//! What other nodes may write, and what they are refused.

use serde_json::json;
use toolyard_engine::AskKind;
use toolyard_engine::facts::{self, Answer, Refusal};
use toolyard_protocol::event::{BlobRef, CancelRequested, Decision, MessageQueued, ToolReturned};
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::wait::{Wait, WaitKind};
use toolyard_protocol::{ApiError, ErrorCode, Event, Guarded, Hash, ToolName, ToolOutcome};

use crate::fixture::*;

fn wait_of(kind: WaitKind) -> Wait {
    let mut story = Story::waiting_for_client();
    story.ledger.values_mut().for_each(|w| w.kind = kind);
    story.wait("a")
}

fn stored(outcome: ToolOutcome, blob: Option<BlobRef>) -> ToolReturned {
    let tool = ToolName::parse("look_up").unwrap();
    let mut end = ToolReturned::new(id("a"), tool, Visibility::Public, outcome, person());
    end.blob = blob.map_or(Guarded::Hidden, Guarded::Shown);
    end
}

#[test]
fn only_a_client_wait_takes_a_result_and_only_a_child_wait_a_childs_end() {
    for kind in WaitKind::ALL {
        let wait = wait_of(kind);
        let result = facts::submit_result(&wait, ok(), None, person());
        assert_eq!(result.is_ok(), kind == WaitKind::Client, "{kind:?}");
        let child = facts::end_child(&wait, ok(), None, None);
        assert_eq!(child.is_ok(), kind == WaitKind::Child, "{kind:?}");
    }
}

#[test]
fn each_kind_of_question_takes_its_own_kind_of_answer() {
    use WaitKind::{Approval, Client, Credential, Input};
    let try_answer = |kind, answer| facts::answer(&wait_of(kind), answer, person());
    let allow = || Answer::Allow { edited: None };
    let deny = || Answer::Deny { message: Some("not today".to_owned()) };
    assert_eq!(kinds(&try_answer(Approval, allow()).unwrap()), ["Answered"]);
    assert_eq!(kinds(&try_answer(Input, Answer::Provide(json!(1))).unwrap()), ["Answered"]);
    for kind in [Approval, Input, Credential] {
        let events = try_answer(kind, deny()).unwrap();
        assert_eq!(kinds(&events), ["Answered", "ToolReturned"]);
        assert_eq!(ends(&events), [("a".to_owned(), json!("not today"))]);
    }
    let refusal = try_answer(Input, allow()).unwrap_err();
    assert_eq!(refusal, Refusal::WrongAnswer { kind: Input, given: "an approval" });
    let told = ApiError::from(refusal);
    assert_eq!(told.code, ErrorCode::BadRequest);
    assert_eq!(told.message, "A wait of kind input does not take an approval");
    assert!(try_answer(Approval, Answer::Provide(json!(1))).is_err());
    assert!(try_answer(Client, deny()).is_err());
}

#[test]
fn refusals_carry_the_codes_of_their_cases() {
    let codes = [Refusal::RunEnded, Refusal::WaitEnded, Refusal::ResultConflict].map(|r| r.code());
    let expected = [ErrorCode::RunEnded, ErrorCode::WaitEnded, ErrorCode::ResultConflict];
    assert_eq!(codes, expected);
}

#[test]
fn spec_12_an_overdue_wait_expires_and_the_number_is_in_the_sentence() {
    let late = NOW.plus_millis(5000);
    let text = json!("Expired: nobody answered within 1000 ms");
    for kind in [WaitKind::Client, WaitKind::Child] {
        let events = facts::expire(&wait_of(kind), late);
        assert_eq!(ends(&events), [("a".to_owned(), text.clone())]);
    }
    for kind in [WaitKind::Approval, WaitKind::Input, WaitKind::Credential] {
        let events = facts::expire(&wait_of(kind), late);
        assert_eq!(ends(&events), [("a".to_owned(), text.clone())]);
        let Event::Answered(answered) = &events[0] else { panic!("an answer") };
        assert_eq!(answered.decision, Decision::Expire);
    }
    let mut forever = wait_of(WaitKind::Client);
    forever.expires_at = None;
    assert!(facts::expire(&forever, late).is_empty());
    assert!(facts::expire(&wait_of(WaitKind::Client), NOW).is_empty());
}

#[test]
fn an_expired_call_is_told_to_the_model_and_the_run_goes_on() {
    let mut story = Story::waiting_for_client();
    let events = facts::expire(&story.wait("a"), NOW.plus_millis(1000));
    story.fact(events);
    assert_eq!(story.due(), ["model"]);
}

#[test]
fn facts_wake_a_parked_run_only_if_there_is_something_to_do() {
    let result = |kind| facts::submit_result(&wait_of(kind), ok(), None, person()).unwrap();
    assert!(!facts::wakes(&result(WaitKind::Client), 1));
    assert!(facts::wakes(&result(WaitKind::Client), 0));
    let allow = Answer::Allow { edited: None };
    let allowed = facts::answer(&wait_of(WaitKind::Approval), allow, person()).unwrap();
    assert!(facts::wakes(&allowed, 3));
    let cancel = CancelRequested { reason: None, by: Guarded::Hidden };
    assert!(facts::wakes(&[cancel.into()], 3));
    assert!(facts::wakes(&facts::supersede(&[], vec![msg("m1")], person()), 0));
    let queued = MessageQueued { message: msg("m1"), interrupt: false, foreign: false };
    assert!(!facts::wakes(&[queued.into()], 1));
}

#[test]
fn what_wakes_agrees_with_what_the_run_then_has_to_do() {
    let mut story = Story::started();
    story.reply(vec![client("a"), asked("b", AskKind::Approval), client("c")]);
    for call in ["a", "b", "c"] {
        let wait = story.wait(call);
        let events = match wait.kind {
            WaitKind::Approval => facts::answer(&wait, Answer::Deny { message: None }, person()).unwrap(),
            _ => facts::submit_result(&wait, ok(), None, person()).unwrap(),
        };
        story.fact(events.clone());
        let woken = facts::wakes(&events, story.ledger.len());
        let told = story.tell(claimed());
        assert_eq!(woken, !told.is_empty() || !story.run.due().is_empty(), "{call}");
    }
}

#[test]
fn spec_8_a_repeat_is_the_same_value_and_a_blob_is_compared_by_its_hash() {
    let blob = |bytes: &[u8]| BlobRef { blob: Hash::of(bytes), bytes: 9 };
    let plain = stored(ok(), None);
    assert!(facts::same_result(&plain, &ok(), None));
    assert!(!facts::same_result(&plain, &failed(), None));
    assert!(!facts::same_result(&plain, &ok(), Some(&blob(b"x"))));
    let large = stored(ToolOutcome::Ok(json!("preview")), Some(blob(b"x")));
    assert!(facts::same_result(&large, &ok(), Some(&blob(b"x"))));
    assert!(!facts::same_result(&large, &ok(), Some(&blob(b"y"))));
    assert!(!facts::same_result(&large, &ToolOutcome::Ok(json!("preview")), None));
    let null = stored(ToolOutcome::Ok(json!(null)), None);
    assert!(facts::same_result(&null, &ToolOutcome::Ok(json!(null)), None));
}
