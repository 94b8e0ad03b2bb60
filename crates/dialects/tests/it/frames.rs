//! One durable event, one frame: transcripts for each viewer, and rows S5, X7
//! and G31 to G37 on the wire.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolyard_dialects::native::{Frame, event_view, frame, space_frame};
use toolyard_protocol::event::{Event, RunFinished, RunPaused};
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::run::{PauseReason, RunEnd, Usage};
use toolyard_protocol::sse::{SseEvent, SseSplitter};
use toolyard_protocol::{Guarded, Timestamp};

use crate::samples;

/// The samples as a log, and the frames that a viewer gets of it.
fn frames_for(viewer: &Viewer) -> Vec<(Event, Frame)> {
    let log = (1..).zip(samples::all());
    log.filter_map(|(seq, event)| {
        let frame = frame(&samples::run(), seq, samples::at(), &event, viewer)?;
        Some((event, frame))
    })
    .collect()
}

fn transcript(viewer: &Viewer) -> String {
    frames_for(viewer).into_iter().map(|(_, frame)| frame.encode()).collect()
}

#[test]
fn g33_transcript_of_a_secret_key() {
    insta::assert_snapshot!(transcript(&Viewer::secret()));
}

#[test]
fn transcript_of_a_member_who_may_answer() {
    let [_, (_, answerer), _] = samples::viewers();
    insta::assert_snapshot!(transcript(&answerer));
}

#[test]
fn transcript_of_a_member_who_may_not_answer() {
    let [_, _, (_, bystander)] = samples::viewers();
    insta::assert_snapshot!(transcript(&bystander));
}

fn data(frame: &Frame) -> Value {
    serde_json::from_str(frame.data()).unwrap()
}

/// Every canary word in a text.
fn canaries(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    text.match_indices("canary-").map(|(at, _)| text[at..].split(ends).next().unwrap().to_owned()).collect()
}

#[test]
fn x7_frames_hold_the_canaries_of_their_viewer_and_no_others() {
    let planted = canaries(&samples::all().iter().map(Event::encode).collect::<String>());
    for (name, viewer) in samples::viewers() {
        let text = transcript(&viewer);
        let mut expected = planted.clone();
        match name {
            // Blocks of a vendor, and what it wants back with a call of a
            // message or an answer, are for the vendor or server alone.
            "secret" => {
                for vendors in [
                    "canary-secret-opaque",
                    "canary-secret-part-call",
                    "canary-secret-far-state",
                    "canary-secret-ticket",
                ] {
                    assert!(expected.remove(vendors), "{vendors}");
                }
            }
            "answerer" => {
                expected
                    .retain(|word| word.starts_with("canary-open-") || word.starts_with("canary-answer-"));
            }
            _ => expected.retain(|word| word.starts_with("canary-open-")),
        }
        assert_eq!(canaries(&text), expected, "{name}");
        for secret in samples::secret_texts() {
            assert_eq!(text.contains(&secret), name == "secret", "{name}: {secret}");
        }
    }
}

#[test]
fn s5_lists_show_the_same_bytes_as_streams() {
    for (name, viewer) in samples::viewers() {
        for (seq, event) in (1..).zip(samples::all()) {
            let live = frame(&samples::run(), seq, samples::at(), &event, &viewer);
            let listed = event_view(&samples::run(), seq, samples::at(), &event, &viewer);
            let live = live.as_ref().map(Frame::data);
            assert_eq!(listed.as_ref().map(|listed| listed.get()), live, "{name}: {}", event.kind());
        }
    }
}

#[test]
fn s5_a_space_shows_the_same_payload_with_its_own_id() {
    let space = samples::space();
    for (name, viewer) in samples::viewers() {
        for (seq, event) in (1..).zip(samples::all()) {
            let run = frame(&samples::run(), seq, samples::at(), &event, &viewer);
            let space = space_frame(&space, seq + 100, &samples::run(), seq, samples::at(), &event, &viewer);
            let Some((run, space)) = run.clone().zip(space.clone()) else {
                assert_eq!((run, space), (None, None), "{name}: {}", event.kind());
                continue;
            };
            assert_eq!((run.id(), space.id()), (Some(seq), Some(seq + 100)));
            let mut expected = data(&run);
            expected["smartSpaceId"] = json!("spc_1");
            assert_eq!(data(&space), expected, "{name}: {}", event.kind());
            assert_eq!(run.name(), space.name());
        }
    }
}

#[test]
fn a_payload_repeats_its_name_place_and_time_and_no_key_twice() {
    for (_, viewer) in samples::viewers() {
        for (event, frame) in frames_for(&viewer) {
            let head = format!(r#"{{"type":"{}","runId":"run_1","seq":"#, frame.name());
            assert!(frame.data().starts_with(&head), "{}", frame.data());
            let payload = data(&frame);
            assert_eq!(payload["ts"], json!("2023-11-14T22:13:20.123Z"));
            assert_eq!(payload["seq"].as_i64(), frame.id());
            // Reading it drops a repeated key; writing it again would be shorter.
            assert_eq!(payload.to_string().len(), frame.data().len(), "{}", event.kind());
        }
    }
}

#[test]
fn what_is_encoded_is_one_whole_server_sent_event() {
    for (_, frame) in frames_for(&Viewer::secret()) {
        let expected = SseEvent {
            id: frame.id().map(|id| id.to_string()),
            event: Some(frame.name().to_owned()),
            data: frame.data().to_owned(),
        };
        let mut out = Vec::new();
        SseSplitter::new(1 << 20).push(frame.encode().as_bytes(), &mut out).unwrap();
        assert_eq!(out, vec![expected]);
    }
}

fn keys(frame: &Frame) -> Vec<String> {
    data(frame).as_object().unwrap().keys().cloned().collect()
}

fn is_private_tool(event: &Event) -> bool {
    let stored: Value = serde_json::from_str(&event.encode()).unwrap();
    stored["visibility"] == "private"
}

/// Row G32: of a private tool a public key gets its id and name, and not one
/// field more, whether it may answer or not.
#[test]
fn g32_a_private_tool_shows_only_its_id_and_name() {
    let strict = [
        "tool-input-available",
        "tool-output-available",
        "tool-error",
        "tool.progress",
        "tool-output-amended",
    ];
    let [_, (_, answerer), (_, bystander)] = samples::viewers();
    for viewer in [answerer, bystander] {
        let mut met = BTreeSet::new();
        for (event, frame) in frames_for(&viewer) {
            if strict.contains(&frame.name()) && is_private_tool(&event) {
                met.insert(frame.name());
                // That there is no such tool is nobody's secret.
                let mut keys = keys(&frame);
                keys.retain(|key| !(frame.name() == "tool-error" && key == "code"));
                let allowed = ["runId", "seq", "toolCallId", "toolName", "ts", "type"];
                assert_eq!(keys, allowed, "{}", frame.name());
            }
        }
        assert_eq!(met, strict.into_iter().collect());
    }
}

#[test]
fn g32_a_private_call_in_a_reply_shows_only_its_id_and_name() {
    let [_, _, (_, bystander)] = samples::viewers();
    let reply = frames_for(&bystander).into_iter().find(|(_, frame)| frame.name() == "message.assistant");
    let payload = data(&reply.unwrap().1);
    assert_eq!(payload["toolCalls"], json!([{ "toolCallId": "call_1", "toolName": "setGoals" }]));
    let tools: Vec<&Value> =
        payload["parts"].as_array().unwrap().iter().filter(|p| p.get("toolCallId").is_some()).collect();
    assert_eq!(tools.len(), 3);
    for part in tools {
        let keys: Vec<&String> = part.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["toolCallId", "toolName", "type"], "{part}");
    }
}

/// Rows G34, G36 and G37: a client's call comes whole, and says who may answer.
#[test]
fn g37_a_client_call_carries_input_target_and_wait() {
    let [_, (_, answerer), (_, bystander)] = samples::viewers();
    for (viewer, may) in [(answerer, true), (bystander, false)] {
        let found = frames_for(&viewer)
            .into_iter()
            .find(|(event, frame)| frame.name() == "tool-input-available" && !is_private_tool(event));
        let payload = data(&found.unwrap().1);
        assert_eq!(
            payload,
            json!({
                "type": "tool-input-available", "runId": "run_1", "seq": payload["seq"], "ts": "2023-11-14T22:13:20.123Z",
                "toolCallId": "call_1", "toolName": "getUserApproval", "input": { "a": "canary-open-args" },
                "executionTarget": "client", "step": 1, "risk": "medium", "visibility": "public", "idempotent": true,
                "untrusted": true, "expiresAt": "2023-11-14T22:13:20.123Z", "waitId": "wait_client_1", "kind": "client",
                "answerRule": { "rule": "trigger", "entity": "ent_user" }, "mayAnswer": may,
            })
        );
    }
}

#[test]
fn a_plugins_memory_is_no_frame_for_a_public_key() {
    let names =
        |viewer: &Viewer| -> Vec<&str> { frames_for(viewer).iter().map(|(_, frame)| frame.name()).collect() };
    let [(_, secret), (_, answerer), (_, bystander)] = samples::viewers();
    assert!(names(&secret).contains(&"plugin.state"));
    assert!(!names(&answerer).contains(&"plugin.state"));
    assert!(!names(&bystander).contains(&"plugin.state"));
}

fn named(event: Event) -> &'static str {
    frame(&samples::run(), 1, Timestamp::from_millis(0), &event, &Viewer::secret()).unwrap().name()
}

#[test]
fn a_pause_is_named_by_whether_somebody_must_act() {
    let paused = |reason| named(RunPaused { reason, waits: vec![] }.into());
    use PauseReason::{Approval, Child, Client, Credential, Input, Timer};
    assert_eq!([Approval, Input, Credential, Client].map(paused), ["run.waiting_tool"; 4]);
    assert_eq!([Child, Timer].map(paused), ["run.parked"; 2]);
}

#[test]
fn an_end_is_named_by_its_status() {
    let ended = |status| {
        named(
            RunFinished {
                status,
                usage: Usage::default(),
                cost: None,
                error: None,
                message: None,
                detail: Guarded::Hidden,
            }
            .into(),
        )
    };
    assert_eq!(
        [RunEnd::Completed, RunEnd::Failed, RunEnd::Canceled].map(ended),
        ["run.completed", "run.failed", "run.canceled"]
    );
}
