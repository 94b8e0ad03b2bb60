//! A run as a task: transcripts, and rows X7, L18, L20 and L22.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolyard_dialects::a2a::{
    Begin, Binding, Form, State, TaskSoFar, TaskStream, Taste, Until, Version, write,
};
use toolyard_dialects::telling::{Flow, Telling};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::*;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::Actor;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, PauseReason, RunEnd, Usage};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::*;

use crate::samples;

fn tool() -> ToolName {
    ToolName::parse("search_users").unwrap()
}

fn created() -> Event {
    let first = samples::all().into_iter().find(|e| matches!(e, Event::RunCreated(_)));
    first.unwrap()
}

fn replied(step: u32, text: &str, calls: &[u32]) -> Event {
    let calls = calls.iter().map(|n| ReplyCall {
        call: samples::call(*n),
        tool: tool(),
        visibility: Visibility::Public,
        args: json!({ "query": n }).into(),
        metadata: Guarded::Hidden,
    });
    ModelReplied {
        step,
        message: MessageId::parse("msg_9").unwrap(),
        parts: vec![Part::text(text)],
        show_reasoning: false,
        calls: calls.collect(),
        usage: Usage::default(),
        cost: None,
        model: Guarded::Hidden,
        finish: FinishReason::Stop,
        partial: false,
        metadata: Guarded::Hidden,
    }
    .into()
}

fn requested(n: u32) -> Event {
    ToolCallRequested {
        step: 1,
        call: samples::call(n),
        tool: tool(),
        place: Place::Client,
        risk: Risk::Low,
        visibility: Visibility::Public,
        idempotent: false,
        wait: Some(Parked {
            wait: WaitId::of(WaitKind::Client, &samples::call(n), 0),
            kind: WaitKind::Client,
            rule: AnswerRule::Trigger { entity: samples::user() },
            payload: Guarded::Hidden,
        }),
        expires: None,
        untrusted: false,
        args: json!({ "query": n }).into(),
        fingerprint: Guarded::Hidden,
    }
    .into()
}

fn returned(n: u32) -> Event {
    let outcome = ToolOutcome::Ok(json!({ "found": n }));
    ToolReturned::new(samples::call(n), tool(), Visibility::Public, outcome, Actor::Gateway {}).into()
}

fn paused() -> Event {
    RunPaused { reason: PauseReason::Client, waits: vec![] }.into()
}

fn finished(status: RunEnd, message: Option<&str>) -> Event {
    let error = message.map(|_| ErrorCode::ModelFailed);
    let message = message.map(str::to_owned);
    RunFinished { status, usage: Usage::default(), cost: None, error, message, detail: Guarded::Hidden }
        .into()
}

fn text(step: u32, offset: u32, text: &str) -> Delta {
    let piece = Piece::TextDelta { part: 0, text: text.into() };
    Delta { run: samples::run(), step, attempt: 1, offset, piece }
}

#[expect(clippy::large_enum_variant, reason = "a handful of events in a test")]
enum Told {
    Log(Event),
    Piece(Delta),
}

/// A run with two calls of a client's tool, told piece by piece.
fn story() -> Vec<Told> {
    use Told::{Log, Piece};
    vec![
        Log(RunStarted {}.into()),
        Piece(text(1, 0, "Let me ")),
        Piece(text(1, 1, "look.")),
        Log(replied(1, "Let me look.", &[1, 2])),
        Log(requested(1)),
        Log(requested(2)),
        Log(paused()),
        Log(returned(1)),
        Log(returned(2)),
        Piece(text(2, 0, "Found ")),
        Log(replied(2, "Found three.", &[])),
        Log(finished(RunEnd::Completed, None)),
    ]
}

fn stream(version: Version, taste: Taste, until: Until, viewer: &Viewer) -> TaskStream {
    let context = "ctx-1".to_owned();
    let files = "https://gw/api/files/".to_owned();
    let task = TaskSoFar::new(samples::run(), context, files, viewer.clone(), taste);
    let binding = if version == Version::V10 { Binding::Rest } else { Binding::JsonRpc(json!(1)) };
    TaskStream::new(task, version, binding, Form::Stream(until), Begin::Fresh)
}

fn tell(mut stream: TaskStream, told: Vec<Told>) -> String {
    let mut out = String::new();
    let mut seq = 1;
    let mut flow = stream.event(seq, samples::at(), &created(), &mut out);
    for told in told {
        if flow == Flow::Over {
            break;
        }
        flow = match told {
            Told::Log(event) => {
                seq += 1;
                stream.event(seq, samples::at(), &event, &mut out)
            }
            Told::Piece(delta) => stream.delta(&delta, &mut out),
        };
    }
    out
}

const AWARE: Taste = Taste { client_tools: true, literal: false };
const LITERAL: Taste = Taste { client_tools: true, literal: true };

#[test]
fn a_held_stream_of_1_0() {
    insta::assert_snapshot!(tell(stream(Version::V10, AWARE, Until::End, &Viewer::secret()), story()));
}

#[test]
fn a_stream_of_0_3_ends_at_the_pause() {
    insta::assert_snapshot!(tell(stream(Version::V03, AWARE, Until::Pause, &Viewer::secret()), story()));
}

#[test]
fn l20_the_literal_pause_of_the_document() {
    let out = tell(stream(Version::V03, LITERAL, Until::End, &Viewer::secret()), story());
    let pause =
        frames(&out).into_iter().find(|f| f["result"]["status"]["state"] == "input-required").unwrap();
    let result = &pause["result"];
    assert_eq!(result["kind"], "status-update");
    assert_eq!((&result["taskId"], &result["contextId"]), (&json!("run_1"), &json!("ctx-1")));
    assert_eq!(result["final"], false);
    let message = &result["status"]["message"];
    assert_eq!((&message["role"], &message["content"]), (&json!("assistant"), &json!("")));
    assert_eq!(
        message["toolCalls"][0],
        json!({ "id": "call_1", "type": "function",
            "function": { "name": "search_users", "arguments": "{\"query\":1}" } })
    );
    // L22: the same stream goes on to the end.
    let last = frames(&out).pop().unwrap();
    assert_eq!(
        (&last["result"]["status"]["state"], &last["result"]["final"]),
        (&json!("completed"), &json!(true))
    );
}

fn frames(out: &str) -> Vec<Value> {
    out.lines().filter_map(|l| l.strip_prefix("data: ")).map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn one_result_of_two_leaves_the_task_paused_with_the_other_call() {
    let out = tell(stream(Version::V10, AWARE, Until::End, &Viewer::secret()), story());
    let paused: Vec<usize> = frames(&out)
        .iter()
        .filter(|f| f["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED")
        .map(|f| f["statusUpdate"]["status"]["message"]["parts"].as_array().unwrap().len() - 1)
        .collect();
    assert_eq!(paused, [2, 1]);
}

#[test]
fn a_reader_that_does_not_know_the_extension_sees_a_sentence() {
    let taste = Taste::default();
    let out = tell(stream(Version::V10, taste, Until::Pause, &Viewer::secret()), story());
    let last = frames(&out).pop().unwrap();
    let message = &last["statusUpdate"]["status"]["message"];
    assert_eq!(message["parts"].as_array().unwrap().len(), 1);
    assert_eq!(message["extensions"], Value::Null);
    assert!(!out.contains("\"data\":{"), "{out}");
}

#[test]
fn text_comes_once_whatever_was_missed() {
    // All pieces, some of them, none, and a restart: the joined text is the same.
    let whole = || Told::Log(replied(1, "one two", &[]));
    let end = || Told::Log(finished(RunEnd::Completed, None));
    let piece = |offset, t: &str| Told::Piece(text(1, offset, t));
    let restarted = || Told::Log(StepRestarted { step: 1, attempt: 2, why: Guarded::Hidden }.into());
    for told in [
        vec![piece(0, "one "), piece(1, "two"), whole(), end()],
        vec![piece(0, "one "), whole(), end()],
        vec![whole(), end()],
        vec![piece(0, "other"), restarted(), piece(0, "one "), whole(), end()],
        vec![piece(0, "other"), whole(), end()],
    ] {
        let out = tell(stream(Version::V10, AWARE, Until::End, &Viewer::secret()), told);
        let mut text = String::new();
        let mut ended = false;
        for update in frames(&out).iter().map(|f| &f["artifactUpdate"]).filter(|u| !u.is_null()) {
            if update["append"] == false {
                text.clear();
            }
            let parts = update["artifact"]["parts"].as_array().unwrap();
            assert!(!parts.is_empty());
            text.extend(parts.iter().map(|p| p["text"].as_str().unwrap()));
            ended |= update["lastChunk"] == true;
        }
        assert_eq!((text.as_str(), ended), ("one two", true), "{out}");
    }
}

#[test]
fn a_snapshot_says_what_the_stream_said() {
    let mut task = TaskSoFar::new(samples::run(), "ctx-1".into(), String::new(), Viewer::secret(), AWARE);
    let mut seq = 0;
    let log = std::iter::once(created()).chain(story().into_iter().filter_map(|told| match told {
        Told::Log(event) => Some(event),
        Told::Piece(_) => None,
    }));
    for event in log {
        seq += 1;
        task.take(seq, samples::at(), &event);
    }
    assert_eq!(task.state(), State::Completed);
    for version in [Version::V10, Version::V03] {
        let shown = write::task(&task.task(vec![], Some(0), true), version);
        insta::assert_snapshot!(
            format!("task_{}", version.as_str()),
            serde_json::to_string_pretty(&shown).unwrap()
        );
    }
}

/// The log of the story, as a reader gets it who comes later.
fn replay(mut stream: TaskStream) -> (String, Flow) {
    let mut out = String::new();
    let mut flow = stream.event(1, samples::at(), &created(), &mut out);
    let log = story().into_iter().filter_map(|told| match told {
        Told::Log(event) => Some(event),
        Told::Piece(_) => None,
    });
    // Up to the first pause: the run waits.
    for (seq, event) in (2..).zip(log.take(5)) {
        flow = stream.event(seq, samples::at(), &event, &mut out);
    }
    if flow == Flow::On {
        flow = stream.rest(&mut out);
    }
    (out, flow)
}

fn late(form: Form, begin: Begin) -> (String, Flow) {
    let task = TaskSoFar::new(samples::run(), "ctx-1".into(), String::new(), Viewer::secret(), AWARE);
    replay(TaskStream::new(task, Version::V10, Binding::Rest, form, begin))
}

#[test]
fn who_subscribes_to_a_paused_task_gets_it_and_waits() {
    let (out, flow) = late(Form::Stream(Until::End), Begin::Now);
    let all = frames(&out);
    assert_eq!((all.len(), flow), (1, Flow::On), "{out}");
    assert_eq!(all[0]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert!(out.starts_with("id: 6\n"), "{out}");
}

#[test]
fn who_comes_back_with_an_id_gets_only_what_follows() {
    let (out, flow) = late(Form::Stream(Until::End), Begin::Resume(3));
    assert_eq!(flow, Flow::On);
    let states: Vec<_> = frames(&out).iter().map(|f| f["statusUpdate"]["status"]["state"].clone()).collect();
    assert_eq!(states, ["TASK_STATE_INPUT_REQUIRED"], "{out}");
    let (out, _) = late(Form::Stream(Until::End), Begin::Resume(6));
    assert_eq!(out, "");
}

#[test]
fn a_whole_answer_comes_once_at_the_pause() {
    let (out, flow) = late(Form::Whole, Begin::Fresh);
    let task: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(task["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(flow, Flow::Over);
    // A cancel is answered at the end only.
    let (out, flow) = late(Form::Ended, Begin::Now);
    assert_eq!((out.as_str(), flow), ("", Flow::On));
}

#[test]
fn a_failure_says_why_in_a_sentence() {
    let told = vec![Told::Log(finished(RunEnd::Failed, Some("The model failed")))];
    let out = tell(stream(Version::V10, AWARE, Until::Pause, &Viewer::secret()), told);
    let last = frames(&out).pop().unwrap();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(last["statusUpdate"]["status"]["message"]["parts"], json!([{ "text": "The model failed" }]));
}

/// Every canary word in a text.
fn canaries(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    text.match_indices("canary-").map(|(at, _)| text[at..].split(ends).next().unwrap().to_owned()).collect()
}

#[test]
fn x7_a_task_holds_no_canary_that_its_reader_may_not_see() {
    let mut seen = BTreeSet::new();
    for (name, viewer) in samples::viewers() {
        for version in [Version::V10, Version::V03] {
            for taste in [Taste::default(), AWARE, LITERAL] {
                let told =
                    samples::all().into_iter().flat_map(|e| [Told::Log(e), Told::Log(paused())]).collect();
                let out = tell(stream(version, taste, Until::End, &viewer), told);
                for word in canaries(&out) {
                    let fine = match name {
                        "secret" => true,
                        "answerer" => word.starts_with("canary-open-") || word.starts_with("canary-answer-"),
                        _ => word.starts_with("canary-open-"),
                    };
                    assert!(fine, "{name}: {word}");
                    seen.insert((name, word));
                }
                if name != "secret" {
                    for secret in samples::secret_texts() {
                        assert!(!out.contains(&secret), "{name}: {secret}");
                    }
                }
            }
        }
    }
    // The test sees something to hide.
    assert!(seen.iter().any(|(name, word)| *name == "answerer" && word.starts_with("canary-answer-")));
}
