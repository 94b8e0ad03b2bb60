//! Chat completions and responses: transcripts, streamed and whole.

use serde_json::{Value, json};
use toolyard_dialects::history::Entry;
use toolyard_dialects::openai::{self, Format, chat, error_status, responses};
use toolyard_dialects::telling::{Flow, Start, Telling};
use toolyard_protocol::event::*;
use toolyard_protocol::message::Part;
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::run::{FinishReason, PauseReason, RunEnd};
use toolyard_protocol::tool::{Place, Visibility};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{ApiError, ErrorCode, Guarded, ToolOutcome};

use crate::samples;
use crate::story::*;

const PUBLIC: Visibility = Visibility::Public;
const PRIVATE: Visibility = Visibility::Private;

fn user() -> Viewer {
    let [_, (_, answerer), _] = samples::viewers();
    answerer
}

fn told(telling: &mut dyn Telling, beats: &[Beat]) -> String {
    let (body, flow) = tell(telling, beats);
    assert_eq!(flow, Flow::Over, "{body}");
    body
}

fn chat_with(start: Start, stream: bool, beats: &[Beat]) -> String {
    let open = chat::Opening {
        model: "helper".into(),
        run: samples::run(),
        viewer: user(),
        start,
        stream,
        include_usage: stream,
        known: ["call_1".to_owned()].into(),
    };
    told(&mut chat::Chat::new(open), beats)
}

fn responses_with(start: Start, stream: bool, beats: &[Beat]) -> String {
    let open = responses::Opening {
        model: "helper".into(),
        run: samples::run(),
        viewer: user(),
        start,
        stream,
        previous: None,
        known: ["call_1".to_owned()].into(),
    };
    told(&mut responses::Responses::new(open), beats)
}

/// Both APIs, streamed and whole.
fn all(beats: &[Beat]) -> String {
    let first = || Start::Turn(1);
    format!(
        "# chat, streamed\n{}# chat\n{}\n# responses, streamed\n{}# responses\n{}\n",
        chat_with(first(), true, beats),
        chat_with(first(), false, beats),
        responses_with(first(), true, beats),
        responses_with(first(), false, beats)
    )
}

fn chat_value(start: Start, beats: &[Beat]) -> Value {
    serde_json::from_str(&chat_with(start, false, beats)).unwrap()
}

fn response_value(start: Start, beats: &[Beat]) -> Value {
    serde_json::from_str(&responses_with(start, false, beats)).unwrap()
}

#[test]
fn words_thoughts_and_sources() {
    let mut beats = begin();
    let mut step = thought(0, true, &["Hm", "…"]);
    step.extend(text(1, &["Grüße \u{1F600}", ", 世界"]));
    beats.extend(pieces(1, step));
    let source = Part::Source {
        id: "s".into(),
        url: "https://example.com/".into(),
        title: None,
        start_index: Some(0),
        end_index: Some(5),
    };
    let parts = vec![reasoning("Hm…"), Part::text("Grüße \u{1F600}, 世界"), source];
    beats.extend([log(replied(1, parts, &[])), log(finished(RunEnd::Completed))]);
    insta::assert_snapshot!(all(&beats));
}

fn client_run() -> (Called, Called, Vec<Beat>) {
    let ours = called(1, "setGoals", PRIVATE, json!({ "g": "canary-tool" }));
    let theirs = called(2, "get_location", PUBLIC, json!({ "ü": 1 }));
    let mut beats = begin();
    beats.push(log(replied(1, vec![Part::text("One moment.")], &[ours, theirs])));
    let ours = called(1, "setGoals", PRIVATE, json!({ "g": "canary-tool" }));
    let theirs = called(2, "get_location", PUBLIC, json!({ "ü": 1 }));
    beats.push(log(requested(1, &ours, Place::Gateway)));
    beats.push(log(requested(1, &theirs, Place::Client)));
    beats.push(log(returned(&ours, ToolOutcome::Ok(json!("canary-tool")))));
    beats.push(log(paused(PauseReason::Client, &[(WaitKind::Client, 2, "get_location")])));
    (ours, theirs, beats)
}

/// A call of the gateway is not shown; the client's own ends the answer.
#[test]
fn x7_only_the_clients_own_calls_are_shown() {
    let (_, _, beats) = client_run();
    let body = all(&beats);
    assert!(!body.contains("canary") && !body.contains("setGoals"), "{body}");
    insta::assert_snapshot!(body);
}

#[test]
fn a_continued_run_tells_what_is_new() {
    let (_, theirs, mut beats) = client_run();
    let after = Start::After(i64::try_from(beats.len()).unwrap());
    beats.push(log(returned(&theirs, ToolOutcome::Ok(json!({ "city": "Bern" })))));
    beats.push(log(replied(2, vec![Part::text("Bern.")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    let whole = chat_value(after.clone(), &beats);
    let choice = &whole["choices"][0];
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("Bern."), &json!("stop")));
    assert_eq!(whole["usage"]["total_tokens"], 15);
    let whole = response_value(after, &beats);
    assert_eq!(whole["output"].as_array().unwrap().len(), 1);
    assert_eq!(whole["output"][0]["content"][0]["text"], "Bern.");
    let id = whole["id"].as_str().unwrap();
    assert_eq!(responses::run_of(id), Some(samples::run()));
}

/// One of two results came: the other call is handed out again.
#[test]
fn a_call_that_is_still_open_is_handed_out_again() {
    let one = called(1, "a", PUBLIC, json!({}));
    let two = called(2, "b", PUBLIC, json!({}));
    let mut beats = begin();
    beats.push(log(replied(1, vec![], &[one, two])));
    let one = called(1, "a", PUBLIC, json!({}));
    let two = called(2, "b", PUBLIC, json!({}));
    beats.push(log(requested(1, &one, Place::Client)));
    beats.push(log(requested(1, &two, Place::Client)));
    let waits = [(WaitKind::Client, 1, "a"), (WaitKind::Client, 2, "b")];
    beats.push(log(paused(PauseReason::Client, &waits)));
    // The core starts a continuation behind the reply that holds the calls.
    let after = Start::After(3);
    beats.push(log(returned(&one, ToolOutcome::Ok(json!(1)))));
    let whole = chat_value(after.clone(), &beats);
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(whole["choices"][0]["message"]["tool_calls"][0]["id"], "call_2");
    let whole = response_value(after, &beats);
    assert_eq!(whole["output"][0]["call_id"], "call_2");
}

/// Responses have a word for approvals; chat completions say it in words.
#[test]
fn an_approval_ends_the_answer_and_says_so() {
    let call = called(1, "delete_file", PUBLIC, json!({ "path": "/ä" }));
    let mut beats = begin();
    beats.push(log(replied(1, vec![], std::slice::from_ref(&call))));
    beats.push(log(asked(1, &call, Place::Gateway)));
    beats.push(log(paused(PauseReason::Approval, &[(WaitKind::Approval, 1, "delete_file")])));
    insta::assert_snapshot!(all(&beats));
}

#[test]
fn failures_cancels_and_cut_answers() {
    let mut failed = begin();
    failed.push(log(finished(RunEnd::Failed)));
    let mut canceled = begin();
    canceled.push(log(finished(RunEnd::Canceled)));
    let mut long = begin();
    let reply = ModelReplied { finish: FinishReason::Length, ..replied(1, vec![Part::text("So")], &[]) };
    long.extend([log(reply), log(finished(RunEnd::Completed))]);
    let body = chat_value(Start::Turn(1), &failed);
    assert_eq!(error_status(&body), Some(502));
    assert_eq!(error_status(&chat_value(Start::Turn(1), &long)), None);
    assert_eq!(chat_value(Start::Turn(1), &long)["choices"][0]["finish_reason"], "length");
    assert_eq!(response_value(Start::Turn(1), &long)["incomplete_details"]["reason"], "max_output_tokens");
    insta::assert_snapshot!(format!("{}{}", all(&failed), all(&canceled)));
}

#[test]
fn a_hook_that_changes_the_answer_changes_the_whole_one() {
    let mut beats = begin();
    let amended = ReplyAmended {
        step: 2,
        message: toolyard_protocol::MessageId::of_turn(&samples::run(), 1),
        parts: vec![Part::text("two!")],
        show_reasoning: false,
        by: Guarded::Hidden,
    };
    beats.push(log(replied(1, vec![Part::text("one ")], &[])));
    beats.push(log(replied(2, vec![Part::text("two")], &[])));
    beats.push(log(amended));
    beats.push(log(finished(RunEnd::Completed)));
    assert_eq!(chat_value(Start::Turn(1), &beats)["choices"][0]["message"]["content"], "one two!");
    let output = response_value(Start::Turn(1), &beats)["output"].clone();
    assert_eq!(output[0]["content"][0]["text"], "one ");
    assert_eq!(output[1]["content"][0]["text"], "two!");
}

/// Words that were streamed cannot be taken back: the client hears that the
/// answer is broken. Whole answers are simply right.
#[test]
fn a_restarted_step_ends_a_stream_and_not_a_whole_answer() {
    let mut beats = begin();
    beats.extend(pieces(1, text(0, &["wrong"])));
    beats.push(log(StepRestarted { step: 1, attempt: 2, why: Guarded::Hidden }));
    beats.push(log(replied(1, vec![Part::text("right")], &[])));
    beats.push(log(finished(RunEnd::Completed)));
    assert!(chat_with(Start::Turn(1), true, &beats).contains("model_stream_cut"));
    assert!(responses_with(Start::Turn(1), true, &beats).contains("response.failed"));
    assert_eq!(chat_value(Start::Turn(1), &beats)["choices"][0]["message"]["content"], "right");
    let whole = response_value(Start::Turn(1), &beats);
    assert_eq!(whole["output"][0]["content"][0]["text"], "right");
}

#[test]
fn x7_no_canary_of_another_class_is_told() {
    for (name, viewer) in samples::viewers() {
        let run = samples::run();
        let chat = |stream| chat::Opening {
            model: "m".into(),
            run: run.clone(),
            viewer: viewer.clone(),
            start: Start::Turn(1),
            stream,
            include_usage: true,
            known: Default::default(),
        };
        let response = |stream| responses::Opening {
            model: "m".into(),
            run: run.clone(),
            viewer: viewer.clone(),
            start: Start::Turn(1),
            stream,
            previous: None,
            known: Default::default(),
        };
        let mut tellings: Vec<Box<dyn Telling>> = vec![
            Box::new(chat::Chat::new(chat(true))),
            Box::new(chat::Chat::new(chat(false))),
            Box::new(responses::Responses::new(response(true))),
            Box::new(responses::Responses::new(response(false))),
        ];
        for telling in &mut tellings {
            let mut out = String::new();
            for (seq, event) in (1..).zip(samples::all()) {
                if !matches!(event, Event::MessageTaken(_) | Event::StepRestarted(_)) {
                    let _ = telling.event(seq, samples::at(), &event, &mut out);
                }
            }
            let _ = telling.rest(&mut out);
            assert!(!out.is_empty());
            let bad = match name {
                "secret" => vec!["canary-secret-opaque"],
                "answerer" => vec!["canary-secret", "canary-tool", "canary-thought"],
                _ => vec!["canary-secret", "canary-tool", "canary-thought", "canary-answer"],
            };
            for word in bad {
                assert!(!out.contains(word), "{name}: {word}\n{out}");
            }
        }
    }
}

#[test]
fn a_chat_request_is_read_and_refused_clearly() {
    let body = json!({
        "model": "helper", "temperature": 0.2, "stream": true, "stream_options": { "include_usage": true },
        "messages": [
            { "role": "system", "content": "Be kind" },
            { "role": "user", "content": [
                { "type": "text", "text": "Look" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ] },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "call_1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": "call_1", "content": "{\"a\":1}" },
        ],
        "tools": [{ "type": "function", "function": { "name": "f" } }],
        "response_format": { "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "object" } } },
        "metadata": { "thread_id": "t1" },
    });
    let read = chat::parse(body.clone()).unwrap();
    assert_eq!((read.entries.len(), read.stream, read.include_usage), (4, true, true));
    assert_eq!(read.thread.as_deref(), Some("t1"));
    assert_eq!(read.tools[0]["parameters"], json!({ "type": "object", "properties": {} }));
    assert_eq!(
        read.format,
        Format::Schema { name: "n".into(), schema: json!({ "type": "object" }), strict: false }
    );
    let Entry::User { parts, .. } = &read.entries[1] else { panic!() };
    assert!(matches!(&parts[1], Part::File { media_type, .. } if media_type == "image/png"));

    let with = |field: &str, value: Value| {
        let mut body = body.clone();
        body[field] = value;
        body
    };
    let refused = |body: Value, text: &str| {
        let error = chat::parse(body).unwrap_err();
        assert!(error.message.contains(text), "{}", error.message);
    };
    refused(with("model", Value::Null), "model");
    refused(with("messages", json!([])), "messages");
    refused(with("messages", json!([{ "role": "wizard" }])), "messages[0].role");
    refused(with("n", json!(2)), "n:");
    refused(with("tools", json!([{ "type": "web_search" }])), "tools[0].type");
    refused(with("tool_choice", json!("required")), "tool_choice");
    refused(with("response_format", json!({ "type": "xml" })), "response_format.type");
    assert_eq!(chat::parse(with("tool_choice", json!("none"))).unwrap().tools, Vec::<Value>::new());
}

#[test]
fn a_responses_request_is_read_and_refused_clearly() {
    let read =
        responses::parse(json!({ "model": "helper", "input": "hi", "instructions": "Be kind" })).unwrap();
    assert_eq!(read.entries.len(), 2);
    let read = responses::parse(json!({
        "model": "helper", "previous_response_id": "resp_1_2",
        "input": [
            { "role": "user", "content": "hi" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "so" }] },
            { "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}" },
            { "type": "function_call", "call_id": "call_2", "name": "g", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "call_1", "output": "ok" },
            { "type": "reasoning", "id": "rs_1", "summary": [] },
            { "type": "mcp_approval_response", "approval_request_id": "wait_1", "approve": false, "reason": "no" },
        ],
    }))
    .unwrap();
    assert_eq!(read.entries.len(), 3);
    let Entry::Assistant { calls, .. } = &read.entries[1] else { panic!() };
    assert_eq!(calls.len(), 2);
    assert_eq!((read.approvals.len(), read.approvals[0].approve), (1, false));
    for (body, text) in [
        (json!({ "input": "x" }), "model"),
        (json!({ "model": "m" }), "input"),
        (json!({ "model": "m", "input": "x", "background": true }), "background"),
        (json!({ "model": "m", "input": [{ "type": "computer_call" }] }), "input[0].type"),
    ] {
        let error = responses::parse(body).unwrap_err();
        assert!(error.message.contains(text), "{}", error.message);
    }
}

#[test]
fn errors_have_openais_form() {
    let refused = ApiError::limit(ErrorCode::RateLimited, 5, "Slow down");
    let body = openai::error_body(&refused);
    assert_eq!(body["error"]["type"], "rate_limit_error");
    assert_eq!((&body["error"]["code"], &body["error"]["limit"]), (&json!("rate_limited"), &json!(5)));
    assert_eq!(error_status(&body), Some(429));
    assert_eq!(responses::run_of("resp_x"), None);
    assert_eq!(responses::run_of("nothing"), None);
}
