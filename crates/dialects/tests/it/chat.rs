//! A run as chat clients hear it, in both forms.

use serde_json::{Value, json};
use toolyard_dialects::ai_sdk::{Asked, ChatTelling, Options, Replied, UiStream, Voice};
use toolyard_dialects::data_stream_v1::DataStream;
use toolyard_dialects::history::Cut;
use toolyard_dialects::telling::{Flow, Start, Telling};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::event::{
    Answered, Asked as Question, Decision, Event, ModelReplied, OpenWait, Parked, ReplyCall, RunFinished,
    RunPaused, StepRestarted, ToolCallRequested, ToolProgressed, ToolReturned,
};
use toolyard_protocol::message::{Part, Speaker};
use toolyard_protocol::principal::{Actor, Role, Viewer};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::run::{FinishReason, PauseReason, RunEnd, Usage};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::{AnswerRule, WaitKind};
use toolyard_protocol::{CallId, Guarded, MessageId, ToolName, ToolOutcome, WaitId};

use crate::samples;

fn name() -> ToolName {
    ToolName::parse("ask").unwrap()
}

fn call(n: u32) -> CallId {
    samples::call(n)
}

fn replied(step: u32, text: &str, calls: &[(u32, Value)], visibility: Visibility) -> Event {
    let calls: Vec<ReplyCall> = calls
        .iter()
        .map(|(n, args)| ReplyCall {
            call: call(*n),
            tool: name(),
            visibility,
            args: Guarded::Shown(args.clone()),
            metadata: Guarded::Hidden,
        })
        .collect();
    ModelReplied {
        step,
        message: MessageId::of_turn(&samples::run(), 1),
        parts: if text.is_empty() { Vec::new() } else { vec![Part::text(text)] },
        show_reasoning: false,
        finish: if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls },
        calls,
        usage: Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() },
        cost: None,
        model: Guarded::Hidden,
        partial: false,
        metadata: Guarded::Hidden,
    }
    .into()
}

fn requested(n: u32, place: Place, args: Value) -> Event {
    let parked = Parked {
        wait: WaitId::of(WaitKind::Client, &call(n), 0),
        kind: WaitKind::Client,
        rule: AnswerRule::Trigger { entity: samples::user() },
        payload: Guarded::Hidden,
    };
    ToolCallRequested {
        step: 1,
        call: call(n),
        tool: name(),
        place,
        risk: Risk::Low,
        visibility: Visibility::Public,
        idempotent: true,
        wait: place.is_client().then_some(parked),
        expires: None,
        untrusted: false,
        args: Guarded::Shown(args),
        fingerprint: Guarded::Hidden,
    }
    .into()
}

fn asked(n: u32, place: Place) -> Event {
    Question {
        wait: WaitId::of(WaitKind::Approval, &call(n), 0),
        kind: WaitKind::Approval,
        step: 1,
        call: call(n),
        tool: name(),
        place,
        risk: Risk::High,
        visibility: Visibility::Public,
        rule: AnswerRule::Trigger { entity: samples::user() },
        expires: None,
        payload: Guarded::Shown(json!({ "args": { "n": 1 } })),
        fingerprint: Guarded::Hidden,
        state: Guarded::Hidden,
        held: false,
    }
    .into()
}

fn allowed(n: u32) -> Event {
    Answered {
        wait: WaitId::of(WaitKind::Approval, &call(n), 0),
        kind: WaitKind::Approval,
        call: call(n),
        visibility: Visibility::Public,
        decision: Decision::Allow,
        edited: Guarded::Hidden,
        recount: true,
        by: Guarded::Hidden,
    }
    .into()
}

fn returned(n: u32, visibility: Visibility, outcome: ToolOutcome) -> Event {
    ToolReturned::new(call(n), name(), visibility, outcome, Actor::Gateway {}).into()
}

fn paused(kind: WaitKind, n: u32) -> Event {
    let wait = OpenWait { wait: WaitId::of(kind, &call(n), 0), kind, call: call(n), tool: name() };
    RunPaused { reason: PauseReason::of(kind), waits: vec![wait] }.into()
}

fn finished(status: RunEnd) -> Event {
    let usage = Usage { input_tokens: 14, output_tokens: 6, ..Usage::default() };
    let message = (status == RunEnd::Failed).then(|| "The model failed".to_owned());
    RunFinished { status, usage, cost: None, error: None, message, detail: Guarded::Hidden }.into()
}

fn public() -> Viewer {
    Viewer::public(samples::user(), Role::Member)
}

fn told_by<V: Voice>(
    voice: V,
    viewer: Viewer,
    start: Start,
    options: Options,
    events: &[Event],
) -> (String, Flow) {
    let mut telling = ChatTelling::new(voice, viewer, samples::run(), start, options);
    let mut out = String::new();
    for (seq, event) in (1..).zip(events) {
        let flow = telling.event(seq, samples::at(), event, &mut out);
        if flow != Flow::On {
            return (out, flow);
        }
    }
    let flow = telling.rest(&mut out);
    (out, flow)
}

fn told(start: Start, options: Options, events: &[Event]) -> (Vec<Value>, Flow) {
    let (out, flow) = told_by(UiStream::default(), public(), start, options, events);
    (chunks(&out), flow)
}

/// The chunks of a stream; the end mark is left out.
fn chunks(out: &str) -> Vec<Value> {
    let lines = out.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

#[test]
fn g32_x7_hidden_values_are_neutral_and_nothing_secret_is_said() {
    for (who, viewer) in samples::viewers().into_iter().filter(|(_, viewer)| !viewer.sees_all()) {
        let events = samples::all();
        let (ui, _) =
            told_by(UiStream::default(), viewer.clone(), Start::Turn(1), Options::default(), &events);
        let (lines, _) = told_by(DataStream, viewer.clone(), Start::Turn(1), Options::default(), &events);
        for (form, out) in [("ui", ui), ("lines", lines)] {
            for class in ["canary-secret", "canary-tool", "canary-thought"] {
                assert!(!out.contains(class), "{who} hears {class} in {form}");
            }
        }
    }
    let private = Visibility::Private;
    let events = [
        replied(1, "", &[(1, json!({ "goal": "hidden" }))], private),
        returned(1, private, ToolOutcome::Failed("hidden".to_owned())),
        replied(2, "", &[(2, json!({ "goal": "hidden" }))], private),
        requested(2, Place::Gateway, json!({})),
        returned(2, private, ToolOutcome::Ok(json!("hidden"))),
    ];
    let (chunks, _) = told(Start::Turn(1), Options::default(), &events);
    let error = json!({ "type": "tool-input-error", "toolCallId": call(1), "toolName": "ask", "input": {}, "errorText": "Tool failed" });
    assert!(chunks.contains(&error), "{chunks:#?}");
    assert!(
        chunks.contains(&json!({ "type": "tool-output-available", "toolCallId": call(2), "output": null }))
    );
}

#[test]
fn h11_a_client_tool_ends_the_body_and_its_output_continues_the_message() {
    let first = [
        replied(1, "Wait.", &[(1, json!({ "n": 1 }))], Visibility::Public),
        requested(1, Place::Client, json!({ "n": 1 })),
        paused(WaitKind::Client, 1),
    ];
    let (chunks, flow) = told(Start::Turn(1), Options::default(), &first);
    assert_eq!(flow, Flow::Over);
    let all = [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-available",
        "finish-step",
        "finish",
    ];
    assert_eq!(kinds(&chunks), all);
    assert_eq!(chunks[7], json!({ "type": "finish", "finishReason": "tool-calls" }));
    let then = [
        returned(1, Visibility::Public, ToolOutcome::Ok(json!(2))),
        replied(2, "Thanks", &[], Visibility::Public),
        finished(RunEnd::Completed),
    ];
    let log = [&first[..], &then[..]].concat();
    let held = Options { announced: [call(1)].into(), kept: [call(1)].into(), ..Options::default() };
    let (chunks, flow) = told(Start::After(1), held, &log);
    assert_eq!(flow, Flow::Over);
    // The call is not announced a second time: the client would run it again.
    assert_eq!(
        kinds(&chunks),
        ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]
    );
    assert_eq!(chunks[0]["messageId"], json!(MessageId::of_turn(&samples::run(), 1)));
    // A page that comes back hears how the call ended, and not that it may run.
    let (chunks, _) = told(Start::Turn(1), Options::default(), &log);
    assert!(!kinds(&chunks).contains(&"tool-input-available"), "{:?}", kinds(&chunks));
    assert!(chunks.contains(&json!({ "type": "tool-output-available", "toolCallId": call(1), "output": 2 })));
    let stale = Options { announced: [call(1)].into(), ..Options::default() };
    let (chunks, _) = told(Start::After(1), stale, &log);
    assert_eq!(chunks[1], json!({ "type": "tool-output-available", "toolCallId": call(1), "output": 2 }));
}

#[test]
fn a_client_tool_under_question_is_available_only_after_the_answer() {
    let first = [
        replied(1, "", &[(1, json!({ "n": 1 }))], Visibility::Public),
        asked(1, Place::Client),
        paused(WaitKind::Approval, 1),
    ];
    let (chunks, _) = told(Start::Turn(1), Options::default(), &first);
    let all = [
        "start",
        "start-step",
        "tool-input-start",
        "tool-input-delta",
        "tool-approval-request",
        "finish-step",
        "finish",
    ];
    assert_eq!(kinds(&chunks), all);
    assert_eq!(chunks[3]["inputTextDelta"], json!("{\"n\":1}"));
    let then = [allowed(1), requested(1, Place::Client, json!({ "n": 1 })), paused(WaitKind::Client, 1)];
    let held =
        Options { questions: [WaitId::of(WaitKind::Approval, &call(1), 0)].into(), ..Options::default() };
    let (chunks, _) = told(Start::After(1), held, &[&first[..], &then[..]].concat());
    assert_eq!(kinds(&chunks), ["start", "tool-input-available", "finish"]);
    let five = Options { without_approvals: true, ..Options::default() };
    let (chunks, _) = told(Start::Turn(1), five, &first);
    assert!(!kinds(&chunks).contains(&"tool-approval-request"));
    let asked = chunks.iter().find(|chunk| chunk["type"] == "data-permission-required").unwrap();
    assert_eq!((&asked["data"]["input"], &asked["data"]["risk"]), (&json!({ "n": 1 }), &json!("high")));
}

#[test]
fn h66_progress_is_a_preliminary_output() {
    let progress = ToolProgressed {
        call: call(1),
        tool: name(),
        visibility: Visibility::Public,
        fraction: Some(0.5),
        message: Guarded::Shown("half".to_owned()),
        preliminary: Guarded::Hidden,
        ticket: Guarded::Hidden,
        spent: Guarded::Hidden,
    };
    let events = [
        replied(1, "", &[(1, json!({}))], Visibility::Public),
        requested(1, Place::Gateway, json!({})),
        progress.into(),
        returned(1, Visibility::Public, ToolOutcome::Ok(json!("done"))),
    ];
    let (chunks, _) = told(Start::Turn(1), Options::default(), &events);
    let output = json!({ "progress": 0.5, "message": "half" });
    let preliminary = json!({ "type": "tool-output-available", "toolCallId": call(1), "output": output, "preliminary": true });
    assert_eq!(chunks[3], preliminary);
    assert_eq!(
        chunks[4],
        json!({ "type": "tool-output-available", "toolCallId": call(1), "output": "done" })
    );
}

#[test]
fn a_step_that_starts_over_cuts_those_who_heard_it() {
    let again = StepRestarted { step: 1, attempt: 2, why: Guarded::Hidden };
    let (_, flow) = told(Start::Turn(1), Options::default(), &[again.clone().into()]);
    assert_eq!(flow, Flow::On, "whoever heard nothing is not disturbed");
    let mut telling =
        ChatTelling::new(UiStream::default(), public(), samples::run(), Start::Turn(1), Options::default());
    let mut out = String::new();
    let piece = Piece::TextDelta { part: 0, text: "void".into() };
    let delta = Delta { run: samples::run(), step: 1, attempt: 1, offset: 0, piece };
    assert_eq!(telling.delta(&delta, &mut out), Flow::On);
    assert_eq!(telling.event(1, samples::at(), &again.into(), &mut out), Flow::Cut);
}

#[test]
fn a_failed_run_is_an_error_and_a_canceled_one_an_abort() {
    let (chunks, flow) = told(Start::Turn(1), Options::default(), &[finished(RunEnd::Failed)]);
    assert_eq!((kinds(&chunks), flow), (vec!["start", "error", "finish"], Flow::Over));
    assert_eq!(chunks[1]["errorText"], "The model failed");
    let (chunks, _) = told(Start::Turn(1), Options::default(), &[finished(RunEnd::Canceled)]);
    assert_eq!(kinds(&chunks), ["start", "abort", "finish"]);
}

#[test]
fn h12_lines_carry_the_reason_and_what_was_used() {
    let events = [
        replied(1, "Hi", &[(1, json!({ "n": 1 }))], Visibility::Public),
        requested(1, Place::Gateway, json!({ "n": 1 })),
        returned(1, Visibility::Public, ToolOutcome::Denied("not today".to_owned())),
        replied(2, "End", &[], Visibility::Public),
        finished(RunEnd::Completed),
    ];
    let (out, _) = told_by(DataStream, public(), Start::Turn(1), Options::default(), &events);
    let id = MessageId::of_turn(&samples::run(), 1);
    let call = call(1);
    let expected = format!(
        "f:{{\"messageId\":\"{id}\"}}\n0:\"Hi\"\n\
         9:{{\"args\":{{\"n\":1}},\"toolCallId\":\"{call}\",\"toolName\":\"ask\"}}\n\
         a:{{\"result\":{{\"error\":\"not today\"}},\"toolCallId\":\"{call}\"}}\n\
         e:{{\"finishReason\":\"tool-calls\",\"isContinued\":false,\"usage\":{{\"completionTokens\":3,\"promptTokens\":7}}}}\n\
         f:{{\"messageId\":\"{id}\"}}\n0:\"End\"\n\
         e:{{\"finishReason\":\"stop\",\"isContinued\":false,\"usage\":{{\"completionTokens\":3,\"promptTokens\":7}}}}\n\
         d:{{\"finishReason\":\"stop\",\"usage\":{{\"completionTokens\":6,\"promptTokens\":14}}}}\n"
    );
    assert_eq!(sorted(&out), sorted(&expected));
}

/// Keys of an object have no order.
fn sorted(lines: &str) -> Vec<(char, Value)> {
    let line = |line: &str| (line.chars().next().unwrap(), serde_json::from_str(&line[2..]).unwrap());
    lines.lines().map(line).collect()
}

#[test]
fn h16_h22_requests_of_all_ages_say_the_same() {
    let id = call(1);
    let parts = json!({ "id": "c", "messages": [{ "role": "user", "content": "go" }, { "id": "a", "role": "assistant", "parts": [
        { "type": "step-start" },
        { "type": "tool-ask", "toolCallId": id, "state": "output-available", "input": { "n": 1 }, "output": { "t": 1 } }] }] });
    let inner = json!({ "id": "c", "messages": [{ "role": "user", "content": "go" }, { "role": "assistant", "content": "", "parts": [
        { "type": "tool-invocation", "toolInvocation": { "state": "result", "toolCallId": id, "toolName": "ask", "args": { "n": 1 }, "result": { "t": 1 } } }] }] });
    let apart = json!({ "id": "c", "messages": [{ "role": "user", "content": "go" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": id, "type": "function", "function": { "name": "ask", "arguments": "{\"n\":1}" } }] },
        { "role": "tool", "tool_call_id": id, "content": "{\"t\":1}" }], "somethingNew": { "x": 1 } });
    for body in [parts, inner, apart] {
        let asked = Asked::read(&body).unwrap();
        assert_eq!(asked.replies.len(), 1, "{body}");
        assert_eq!(asked.replies[0].said, Replied::Outcome(ToolOutcome::Ok(json!({ "t": 1 }))));
        assert_eq!(asked.announced, std::slice::from_ref(&id));
        let Part::ToolCall { tool, args, .. } = &asked.items[1].parts[0] else { panic!("{:?}", asked.items) };
        assert_eq!((tool.as_str(), args.shown()), ("ask", Some(&json!({ "n": 1 }))));
        assert_eq!(asked.cut, None);
    }
}

#[test]
fn truncation_is_only_what_is_said() {
    let user = json!({ "id": "u1", "role": "user", "parts": [{ "type": "text", "text": "x" }] });
    let read = |extra: Value| {
        let mut body = json!({ "id": "c", "messages": [user] });
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        Asked::read(&body).unwrap().cut
    };
    assert_eq!(read(json!({ "trigger": "submit-message" })), None);
    assert_eq!(read(json!({ "messageId": "u1" })), Some(Cut::Edit { message: "u1".to_owned() }));
    assert_eq!(read(json!({ "messageId": "a1" })), None);
    let again = Cut::Regenerate { message: Some("a1".to_owned()) };
    assert_eq!(read(json!({ "trigger": "regenerate-message", "messageId": "a1" })), Some(again));
}

#[test]
fn an_approval_names_its_question_and_brings_no_input() {
    let wait = WaitId::of(WaitKind::Approval, &call(1), 0);
    let body = json!({ "id": "c", "message": { "id": "a", "role": "assistant", "parts": [{ "type": "tool-ask", "toolCallId": call(1),
        "state": "approval-responded", "input": { "evil": true }, "approval": { "id": wait, "approved": false, "reason": "no" } }] } });
    let asked = Asked::read(&body).unwrap();
    let decision = Replied::Decision { wait, allowed: false, reason: Some("no".to_owned()) };
    assert_eq!(asked.replies[0].said, decision);
    assert_eq!(asked.questions, [WaitId::of(WaitKind::Approval, &call(1), 0)]);
    assert!(asked.announced.is_empty(), "its input is not available to the client yet");
    assert_eq!(asked.items[0].speaker, Speaker::Assistant);
}

#[test]
fn outputs_count_also_before_a_new_message_and_never_from_a_user() {
    let part = json!({ "type": "tool-ask", "toolCallId": call(1), "state": "output-available", "input": {}, "output": 1 });
    let body = |role: &str| {
        json!({ "id": "c", "messages": [{ "id": "a", "role": role, "parts": [part] },
            { "id": "u", "role": "user", "parts": [{ "type": "text", "text": "and?" }] }] })
    };
    let asked = Asked::read(&body("assistant")).unwrap();
    assert_eq!((asked.replies.len(), asked.items.len()), (1, 2));
    let forged = Asked::read(&body("user")).unwrap();
    assert_eq!((forged.replies.len(), forged.items[0].parts.len()), (0, 0));
}
