//! AG-UI: transcripts of whole runs for both generations of clients, and what
//! a client must never be told.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolyard_dialects::ag_ui::{AgUi, Opening, Version};
use toolyard_dialects::telling::{Flow, SoFar, Start, Telling};
use toolyard_protocol::delta::Piece;
use toolyard_protocol::event::*;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::run::{PauseReason, RunEnd};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{Guarded, ToolOutcome};

use crate::ag_ui_client::{events, follow};
use crate::samples;
use crate::story::*;

const PUBLIC: Visibility = Visibility::Public;
const PRIVATE: Visibility = Visibility::Private;

pub(crate) fn user() -> Viewer {
    let [_, (_, answerer), _] = samples::viewers();
    answerer
}

fn said() -> Vec<Value> {
    vec![json!({ "id": "u1", "role": "user", "content": "hi" })]
}

pub(crate) fn opening(version: Version, viewer: Viewer) -> Opening {
    Opening {
        thread: "t1".into(),
        client_run: "r1".into(),
        version,
        viewer,
        run: samples::run(),
        history: said(),
        held_back: HashSet::new(),
        brought: HashSet::new(),
        state: Some(json!({ "theme": "dark" })),
        start: Start::Turn(1),
        restores: false,
        later: Vec::new(),
    }
}

/// Tells a story and checks it as a client would.
fn story(opening: Opening, beats: &[Beat]) -> String {
    let history = opening.history.clone();
    let mut telling = AgUi::new(opening);
    let (body, flow) = tell(&mut telling, beats);
    assert_eq!(flow, Flow::Over, "{body}");
    follow(&body, history);
    body
}

fn both(beats: &[Beat]) -> String {
    let one = story(opening(Version::One, user()), beats);
    let zero = story(opening(Version::Zero, user()), beats);
    format!("# 1.0\n{one}# 0.x\n{zero}")
}

fn text_run() -> Vec<Beat> {
    let mut beats = begin();
    let mut step = thought(0, true, &["Let me ", "think…"]);
    step.extend(text(1, &["Grüße \u{1F600}", ", 世", "界"]));
    beats.extend(pieces(1, step));
    let parts = vec![reasoning("Let me think…"), Part::text("Grüße \u{1F600}, 世界")];
    beats.extend([log(replied(1, parts, &[])), log(finished(RunEnd::Completed))]);
    beats
}

#[test]
fn a_run_of_words_and_thoughts() {
    insta::assert_snapshot!(both(&text_run()));
}

#[test]
fn a_client_tool_ends_the_body_and_the_next_request_goes_on() {
    let call = called(1, "get_location", PUBLIC, json!({ "precision": "city" }));
    let mut beats = begin();
    let mut step = text(0, &["One moment."]);
    step.extend(input(1, "get_location", PUBLIC, &["{\"precision\"", ": \"city\"}"]));
    beats.extend(pieces(1, step));
    beats.push(log(replied(1, vec![Part::text("One moment.")], std::slice::from_ref(&call))));
    beats.push(log(requested(1, &call, Place::Client)));
    beats.push(log(paused(PauseReason::Client, &[(WaitKind::Client, 1, "get_location")])));
    let mut whole = both(&beats);

    // The client comes back with the result: it has the rest already.
    let first = story(opening(Version::One, user()), &beats);
    let mut history = follow(&first, said());
    history.push(
        json!({ "id": "t9", "role": "tool", "toolCallId": "call_1", "content": "{\"city\":\"Bern\"}" }),
    );
    let known = beats.len() - 4;
    let after = i64::try_from(beats.iter().filter(|b| matches!(b, Beat::Log(_))).count()).unwrap();
    beats.retain(|beat| matches!(beat, Beat::Log(_)));
    assert!(known > 0);
    beats.push(log(returned(&call, ToolOutcome::Ok(json!({ "city": "Bern" })))));
    beats.extend(pieces(2, text(0, &["You are in Bern."])));
    beats.push(log(replied(2, vec![Part::text("You are in Bern.")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    let next = Opening {
        history: history.clone(),
        brought: ["call_1".to_owned()].into(),
        start: Start::After(after),
        state: None,
        ..opening(Version::One, user())
    };
    let body = story(next, &beats);
    let has = follow(&body, history);
    assert_eq!(has.len(), 4, "{has:#?}");
    whole.push_str("# the next request\n");
    whole.push_str(&body);
    insta::assert_snapshot!(whole);
}

#[test]
fn parallel_calls_of_the_gateway_and_the_client_share_one_message() {
    let ours = called(1, "lookup", PUBLIC, json!({ "q": "a" }));
    let theirs = called(2, "show_map", PUBLIC, json!({ "zoom": 3 }));
    let mut beats = begin();
    beats.push(log(replied(1, vec![], &[ours, theirs])));
    let ours = called(1, "lookup", PUBLIC, json!({ "q": "a" }));
    let theirs = called(2, "show_map", PUBLIC, json!({ "zoom": 3 }));
    beats.push(log(requested(1, &ours, Place::Gateway)));
    beats.push(log(requested(1, &theirs, Place::Client)));
    beats.push(log(returned(&ours, ToolOutcome::Failed("no such thing".into()))));
    beats.push(log(paused(PauseReason::Client, &[(WaitKind::Client, 2, "show_map")])));
    let body = story(opening(Version::One, user()), &beats);
    let has = follow(&body, said());
    let calls = has[1]["toolCalls"].as_array().unwrap();
    assert_eq!((calls.len(), has.len()), (2, 3), "{has:#?}");
    let end = events(&body).pop().unwrap();
    assert_eq!(end["outcome"], json!({ "type": "success", "pendingToolCallIds": ["call_2"] }));
    assert_eq!(has[2]["content"], "{\"error\":\"no such thing\"}");
}

/// SPEC part 2, rows 19 and 21: the name of a private tool is seen, its input
/// and output are not, live or replayed or in a snapshot.
#[test]
fn x7_a_private_tool_shows_neutral_values_to_a_public_key() {
    let call = called(1, "setGoals", PRIVATE, json!({ "secret": "canary-in" }));
    let mut beats = begin();
    beats.extend(pieces(1, input(1, "setGoals", PRIVATE, &["{\"secret\":", "\"canary-in\"}"])));
    beats.push(log(replied(1, vec![], std::slice::from_ref(&call))));
    beats.push(log(requested(1, &call, Place::Gateway)));
    beats.push(log(returned(&call, ToolOutcome::Ok(json!({ "r": "canary-out" })))));
    beats.push(log(replied(2, vec![Part::text("Done.")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    let body = story(opening(Version::One, user()), &beats);
    assert!(!body.contains("canary"), "{body}");
    let has = follow(&body, said());
    assert_eq!(has[1]["toolCalls"][0]["function"], json!({ "name": "setGoals", "arguments": "{}" }));
    assert_eq!(has[2]["content"], "");
    let backend = story(opening(Version::One, Viewer::secret()), &beats);
    assert!(backend.contains("canary-in") && backend.contains("canary-out"), "{backend}");
}

fn approval_run(place: Place) -> (Called, Vec<Beat>) {
    let call = called(1, "delete_file", PUBLIC, json!({ "path": "/tmp/ä" }));
    let mut beats = begin();
    beats.extend(pieces(1, text(0, &["I will."])));
    beats.push(log(replied(1, vec![Part::text("I will.")], std::slice::from_ref(&call))));
    beats.push(log(asked(1, &call, place)));
    beats.push(log(paused(PauseReason::Approval, &[(WaitKind::Approval, 1, "delete_file")])));
    (call, beats)
}

#[test]
fn an_approval_is_an_interrupt_with_edits() {
    let (call, mut beats) = approval_run(Place::Gateway);
    let mut whole = both(&beats);
    let first = story(opening(Version::One, user()), &beats);
    let history = follow(&first, said());
    let after = i64::try_from(beats.iter().filter(|b| matches!(b, Beat::Log(_))).count()).unwrap();
    beats.push(log(answered(1, Decision::Allow)));
    beats.push(log(requested(1, &call, Place::Gateway)));
    beats.push(log(returned(&call, ToolOutcome::Ok(json!(true)))));
    beats.push(log(replied(2, vec![Part::text("Gone.")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    beats.retain(|beat| matches!(beat, Beat::Log(_)));
    let next = Opening { history, start: Start::After(after), ..opening(Version::One, user()) };
    let body = story(next, &beats);
    let kinds: Vec<String> = events(&body).iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    // The call was told of before: only its result comes.
    assert!(!kinds.contains(&"TOOL_CALL_START".to_owned()), "{kinds:?}");
    whole.push_str("# the next request\n");
    whole.push_str(&body);
    insta::assert_snapshot!(whole);
}

/// Clients run every call that they hear of: one that waits for a permission
/// is told of when it may run, in a message that is new to them.
#[test]
fn a_client_tool_that_needs_a_permission_is_held_back_until_it_has_it() {
    let (call, mut beats) = approval_run(Place::Client);
    let held_back: HashSet<_> = [tool("delete_file")].into();
    let mut first = opening(Version::One, user());
    first.held_back = held_back.clone();
    let body = story(first, &beats);
    assert!(!body.contains("TOOL_CALL_START"), "{body}");
    let end = events(&body).pop().unwrap();
    let interrupt = &end["outcome"]["interrupts"][0];
    assert_eq!(interrupt["id"], "wait_approval_1");
    assert_eq!(interrupt.get("toolCallId"), None);
    assert_eq!(interrupt["metadata"]["args"], json!({ "path": "/tmp/ä" }));

    let history = follow(&body, said());
    let after = i64::try_from(beats.iter().filter(|b| matches!(b, Beat::Log(_))).count()).unwrap();
    beats.push(log(answered(1, Decision::Allow)));
    beats.push(log(requested(1, &call, Place::Client)));
    beats.push(log(paused(PauseReason::Client, &[(WaitKind::Client, 1, "delete_file")])));
    beats.retain(|beat| matches!(beat, Beat::Log(_)));
    let next = Opening {
        history: history.clone(),
        start: Start::After(after),
        held_back,
        ..opening(Version::One, user())
    };
    let body = story(next, &beats);
    let has = follow(&body, history.clone());
    let new: Vec<&Value> = has.iter().filter(|m| !history.contains(m)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(new[0]["toolCalls"][0]["id"], "call_1");
    let end = events(&body).pop().unwrap();
    assert_eq!(end["outcome"]["pendingToolCallIds"], json!(["call_1"]));
}

#[test]
fn x7_who_may_not_answer_sees_no_arguments() {
    let [_, _, (_, bystander)] = samples::viewers();
    let call = called(1, "delete_file", PRIVATE, json!({ "path": "canary" }));
    let mut beats = begin();
    beats.push(log(replied(1, vec![], std::slice::from_ref(&call))));
    beats.push(log(asked(1, &call, Place::Gateway)));
    beats.push(log(paused(PauseReason::Approval, &[(WaitKind::Approval, 1, "delete_file")])));
    let body = story(opening(Version::One, bystander), &beats);
    assert!(!body.contains("canary"), "{body}");
    let interrupt = &events(&body).pop().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(interrupt.get("metadata"), None);
    assert_eq!(interrupt["responseSchema"]["properties"].get("editedArgs"), None);
}

#[test]
fn failures_and_cancels_are_said_in_the_clients_own_words() {
    let mut failed = begin();
    failed.extend(pieces(1, vec![Piece::TextDelta { part: 0, text: "half an ans".into() }]));
    let mut canceled = failed.clone();
    failed.push(log(finished(RunEnd::Failed)));
    let reply = ModelReplied { partial: true, ..replied(1, vec![Part::text("half an ans")], &[]) };
    canceled.extend([log(reply), log(finished(RunEnd::Canceled))]);
    insta::assert_snapshot!(format!("{}{}", both(&failed), both(&canceled)));
}

/// X20: a step that starts over takes its words back.
#[test]
fn a_restarted_step_is_taken_back_by_a_snapshot() {
    let mut beats = begin();
    let mut step = text(0, &["wrong wo"]);
    step.pop();
    step.extend(input(1, "lookup", PUBLIC, &["{\"q\":"]));
    beats.extend(pieces(1, step));
    beats.push(log(StepRestarted { step: 1, attempt: 2, why: Guarded::Hidden }));
    beats.extend(text(0, &["right"]).into_iter().map(|piece| Beat::Piece(1, 2, piece)));
    beats.push(log(replied(1, vec![Part::text("right")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    let body = story(opening(Version::One, user()), &beats);
    let has = follow(&body, said());
    assert_eq!(has[1]["content"], "right");
    assert_eq!((has.len(), has[1].get("toolCalls")), (2, None));
    assert!(body.contains("MESSAGES_SNAPSHOT"));
}

/// A call that was cut is no call: a client would run it with half its arguments.
#[test]
fn half_a_call_is_taken_back() {
    let mut beats = begin();
    let mut step = text(0, &["So"]);
    step.extend(input(1, "pay", PUBLIC, &["{\"amount\": 1"]));
    beats.extend(pieces(1, step));
    let reply = ModelReplied { partial: true, ..replied(1, vec![Part::text("So")], &[]) };
    beats.extend([log(reply), log(finished(RunEnd::Canceled))]);
    for version in [Version::One, Version::Zero] {
        let body = story(opening(version, user()), &beats);
        let has = follow(&body, said());
        assert_eq!((has.len(), has[1].get("toolCalls")), (2, None), "{has:?}");
    }
}

#[test]
fn a_hook_that_changes_the_answer_changes_what_the_client_has() {
    let mut beats = text_run();
    beats.pop();
    let amended = ReplyAmended {
        step: 1,
        message: samples_message(),
        parts: vec![Part::text("Grüße [1]")],
        show_reasoning: true,
        by: Guarded::Hidden,
    };
    beats.extend([log(amended), log(finished(RunEnd::Completed))]);
    let body = story(opening(Version::One, user()), &beats);
    let has = follow(&body, said());
    assert_eq!(has.iter().find(|m| m["role"] == "assistant").unwrap()["content"], "Grüße [1]");
}

fn samples_message() -> toolyard_protocol::MessageId {
    toolyard_protocol::MessageId::of_turn(&samples::run(), 1)
}

/// U20: a plugin's event is a CUSTOM one, with the message as the client knows it.
#[test]
fn u20_a_plugins_event_names_the_streamed_message() {
    let mut beats = text_run();
    beats.pop();
    let value = json!({ "messageId": samples_message(), "citations": [{ "id": "c1", "number": 1 }] });
    let emitted = PluginEmitted { plugin: "citations".into(), name: "citation".into(), value };
    beats.extend([log(emitted), log(finished(RunEnd::Completed))]);
    let body = story(opening(Version::Zero, user()), &beats);
    let custom = events(&body).into_iter().find(|e| e["type"] == "CUSTOM").unwrap();
    let text = events(&body).into_iter().find(|e| e["type"] == "TEXT_MESSAGE_START").unwrap();
    assert_eq!(custom["name"], "citation");
    assert_eq!(custom["value"]["messageId"], text["messageId"]);
    assert_eq!(custom["timestamp"], 1_700_000_000_123_i64);
}

/// A client that joins anywhere in a step ends with the same messages.
#[test]
fn wherever_a_client_joins_it_has_the_same_in_the_end() {
    let mut step = thought(0, true, &["a", "b"]);
    step.extend(text(1, &["x\u{1F600}", "y", "z"]));
    step.extend(input(1, "lookup", PUBLIC, &["{\"q\"", ":1}"]));
    let call = called(1, "lookup", PUBLIC, json!({ "q": 1 }));
    let parts = vec![reasoning("ab"), Part::text("x\u{1F600}yz")];
    let end = [log(replied(1, parts, std::slice::from_ref(&call))), log(finished(RunEnd::Completed))];
    let mut expected: Option<Vec<Value>> = None;
    for live in 0..=step.len() {
        for seen in live..=step.len() {
            let mut telling = AgUi::new(opening(Version::One, user()));
            let mut beats = begin();
            beats.extend(pieces(1, step[..live].to_vec()));
            let mut out = String::new();
            telling.begin(&mut out);
            feed(&mut telling, &beats, &mut out, 0);
            let mut so_far = step[..seen].iter().cloned();
            assert_eq!(
                telling.so_far(SoFar { step: 1, attempt: 1, pieces: &mut so_far }, &mut out),
                Flow::On
            );
            let rest: Vec<Beat> = pieces(1, step[seen..].to_vec());
            feed_from(&mut telling, &rest, &mut out, seen);
            feed(&mut telling, &end, &mut out, 2);
            assert_eq!(telling.rest(&mut out), Flow::Over);
            let has = follow(&out, said());
            assert_eq!(&has, expected.get_or_insert_with(|| has.clone()), "{live} {seen}");
        }
    }
}

fn feed(telling: &mut AgUi, beats: &[Beat], out: &mut String, seq: i64) {
    let mut seq = seq;
    let mut offset = 0;
    for beat in beats {
        match beat {
            Beat::Log(event) => {
                seq += 1;
                assert_eq!(telling.event(seq, samples::at(), event, out), Flow::On);
            }
            Beat::Piece(..) => {
                feed_from(telling, std::slice::from_ref(beat), out, offset);
                offset += 1;
            }
        }
    }
}

fn feed_from(telling: &mut AgUi, beats: &[Beat], out: &mut String, from: usize) {
    for (offset, beat) in (from..).zip(beats) {
        if let Beat::Piece(step, attempt, piece) = beat {
            let delta = toolyard_protocol::delta::Delta {
                run: samples::run(),
                step: *step,
                attempt: *attempt,
                offset: u32::try_from(offset).unwrap(),
                piece: piece.clone(),
            };
            assert_eq!(telling.delta(&delta, out), Flow::On);
        }
    }
}

/// A client that has nothing gets the run as messages, its open calls again,
/// and then what happens.
#[test]
fn a_restored_thread_hands_its_open_calls_out_again() {
    let call = called(1, "get_location", PUBLIC, json!({ "precision": "city" }));
    let mut beats = begin();
    beats.push(log(replied(1, vec![Part::text("One moment.")], std::slice::from_ref(&call))));
    beats.push(log(requested(1, &call, Place::Client)));
    beats.push(log(paused(PauseReason::Client, &[(WaitKind::Client, 1, "get_location")])));
    let restored = Opening { restores: true, ..opening(Version::One, user()) };
    let body = story(restored, &beats);
    let has = follow(&body, vec![]);
    assert_eq!(has.len(), 2);
    assert_eq!(has[1]["toolCalls"][0]["function"]["arguments"], "{\"precision\":\"city\"}");
    insta::assert_snapshot!(body);
}

/// Every event with a canary in each guarded field, for three viewers.
#[test]
fn x7_no_canary_of_another_class_is_told() {
    for (name, viewer) in samples::viewers() {
        let mut telling = AgUi::new(opening(Version::One, viewer));
        let mut out = String::new();
        telling.begin(&mut out);
        for (seq, event) in (1..).zip(samples::all()) {
            if matches!(event, Event::MessageTaken(_)) {
                continue;
            }
            let _ = telling.event(seq, samples::at(), &event, &mut out);
        }
        let _ = telling.rest(&mut out);
        let bad = match name {
            "secret" => vec!["canary-secret-opaque"],
            "answerer" => vec!["canary-secret", "canary-tool", "canary-thought"],
            _ => vec!["canary-secret", "canary-tool", "canary-thought", "canary-answer"],
        };
        for word in bad {
            assert!(!out.contains(word), "{name}: {word}\n{out}");
        }
        assert!(out.contains("canary-open"), "{name}");
    }
}
