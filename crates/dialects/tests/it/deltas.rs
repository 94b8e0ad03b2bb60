//! Streaming pieces, and the step so far.

use serde_json::{Value, json};
use toolyard_dialects::native::{
    Frame, InputsSoFar, delta_frame, space_delta_frame, space_step_so_far, step_so_far,
};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::{CallId, ToolName};

use crate::samples;

fn delta(piece: Piece) -> Delta {
    Delta { run: samples::run(), step: 2, attempt: 1, offset: 0, piece }
}

fn input(n: u32, visibility: Visibility, text: &str) -> Piece {
    let (call, tool) = tool(n, visibility);
    Piece::ToolInputDelta { call, tool, visibility, text: text.into() }
}

fn input_start(n: u32, visibility: Visibility) -> Piece {
    let (call, tool) = tool(n, visibility);
    Piece::ToolInputStart { call, tool, visibility }
}

fn tool(n: u32, visibility: Visibility) -> (CallId, ToolName) {
    let name = if visibility == Visibility::Private { "setGoals" } else { "getUserApproval" };
    (samples::call(n), ToolName::parse(name).unwrap())
}

/// A step with every kind of piece.
fn step() -> Vec<Piece> {
    let thought = |part, public, text: &str| {
        [
            Piece::ReasoningStart { part, public },
            Piece::ReasoningDelta { part, public, text: text.into() },
            Piece::ReasoningEnd { part, public },
        ]
    };
    let mut pieces = Vec::from(thought(0, false, "canary-thought-hidden"));
    pieces.extend(thought(1, true, "canary-open-thought"));
    pieces.extend([
        Piece::TextStart { part: 2 },
        Piece::TextDelta { part: 2, text: "He said \"hi\"\n".into() },
        Piece::TextDelta { part: 2, text: "and left.".into() },
        Piece::TextEnd { part: 2 },
        Piece::TextStart { part: 3 },
        input_start(1, Visibility::Private),
        input_start(2, Visibility::Public),
        input(1, Visibility::Private, "{\"a\":\"canary-tool"),
        input(2, Visibility::Public, "{\"b\":\"canary-open"),
        input(1, Visibility::Private, "-input\"}"),
        input(2, Visibility::Public, "-input\"}"),
    ]);
    pieces
}

/// Every frame that a viewer gets of the step, live and as the step so far.
pub(crate) fn frames(viewer: &Viewer) -> Vec<Frame> {
    let mut inputs = InputsSoFar::default();
    let mut frames = Vec::new();
    for piece in step() {
        let written = inputs.add(&piece).map(str::to_owned);
        let delta = delta(piece);
        frames.extend(delta_frame(&delta, viewer, written.as_deref()));
        frames.extend(space_delta_frame(&samples::space(), &delta, viewer, None));
    }
    frames.push(step_so_far(&samples::run(), 2, 1, step(), viewer));
    frames.push(space_step_so_far(&samples::space(), &samples::run(), 2, 1, step(), viewer));
    frames
}

fn transcript(viewer: &Viewer) -> String {
    frames(viewer).into_iter().map(Frame::encode).collect()
}

#[test]
fn g33_deltas_of_a_secret_key() {
    insta::assert_snapshot!(transcript(&Viewer::secret()));
}

/// Row G32: the name of a private tool is there at once, its input never.
#[test]
fn g32_deltas_of_a_public_key() {
    let [_, _, (_, bystander)] = samples::viewers();
    let text = transcript(&bystander);
    insta::assert_snapshot!(text);
    assert!(!text.contains("canary-tool") && !text.contains("canary-thought"));
    assert!(text.contains("canary-open-thought") && text.contains("canary-open-input"));
}

#[test]
fn g32_a_private_tools_start_carries_its_id_and_name_only() {
    let [_, _, (_, bystander)] = samples::viewers();
    let start = delta_frame(&delta(input_start(1, Visibility::Private)), &bystander, None).unwrap();
    assert_eq!(
        start.encode(),
        "event: tool-input-start\ndata: {\"type\":\"tool-input-start\",\"runId\":\"run_1\",\"toolCallId\":\"call_1\",\"toolName\":\"setGoals\"}\n\n"
    );
    let more = delta_frame(&delta(input(1, Visibility::Private, "{}")), &bystander, Some("{}"));
    assert_eq!(more, None);
}

#[test]
fn a_text_delta_is_written_into_one_buffer() {
    let text = "word ".repeat(2000);
    let frame = delta_frame(
        &delta(Piece::TextDelta { part: 0, text: text.as_str().into() }),
        &Viewer::secret(),
        None,
    );
    let encoded = frame.unwrap().encode();
    // The buffer was made once, with room to spare, and never grew.
    assert_eq!(encoded.capacity(), 320 + text.len() + text.len() / 8);
    assert!(encoded.contains("\"id\":\"part_1_2_0\",\"delta\":\"word "));
}

fn parts(frame: &Frame) -> Value {
    serde_json::from_str::<Value>(frame.data()).unwrap()["parts"].take()
}

#[test]
fn the_step_so_far_joins_what_was_streamed() {
    let all = step_so_far(&samples::run(), 2, 1, step(), &Viewer::secret());
    assert_eq!((all.name(), all.id()), ("step-so-far", None));
    assert_eq!(
        parts(&all),
        json!([
            { "type": "reasoning", "id": "part_1_2_0", "text": "canary-thought-hidden", "done": true },
            { "type": "reasoning", "id": "part_1_2_1", "text": "canary-open-thought", "done": true },
            { "type": "text", "id": "part_1_2_2", "text": "He said \"hi\"\nand left.", "done": true },
            { "type": "text", "id": "part_1_2_3", "text": "", "done": false },
            { "type": "tool-input", "toolCallId": "call_1", "toolName": "setGoals", "inputText": "{\"a\":\"canary-tool-input\"}" },
            { "type": "tool-input", "toolCallId": "call_2", "toolName": "getUserApproval", "inputText": "{\"b\":\"canary-open-input\"}" },
        ])
    );
}

/// Row S5: what joins late and what is seen live tell the same story.
#[test]
fn s5_the_step_so_far_is_the_sum_of_the_live_deltas() {
    for (name, viewer) in samples::viewers() {
        let pieces = step();
        for cut in 0..=pieces.len() {
            let late = parts(&step_so_far(&samples::run(), 2, 1, pieces[..cut].iter().cloned(), &viewer));
            let live: Vec<Value> = pieces[..cut]
                .iter()
                .filter_map(|piece| delta_frame(&delta(piece.clone()), &viewer, None))
                .map(|frame| serde_json::from_str(frame.data()).unwrap())
                .collect();
            assert_eq!(late, sum(&live), "{name}, {cut} pieces");
        }
    }
}

/// What a client that follows live frames has.
fn sum(live: &[Value]) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for frame in live {
        let kind = frame["type"].as_str().unwrap();
        if let Some(call) = frame.get("toolCallId") {
            if kind == "tool-input-start" {
                parts
                    .push(json!({ "type": "tool-input", "toolCallId": call, "toolName": frame["toolName"] }));
                continue;
            }
            let part = parts.iter_mut().find(|part| part.get("toolCallId") == Some(call)).unwrap();
            let before = part["inputText"].as_str().unwrap_or_default().to_owned();
            part["inputText"] = json!(before + frame["delta"].as_str().unwrap());
            continue;
        }
        let (word, what) = kind.split_once('-').unwrap();
        if what == "start" {
            parts.push(json!({ "type": word, "id": frame["id"], "text": "", "done": false }));
            continue;
        }
        let part = parts.iter_mut().find(|part| part.get("id") == frame.get("id")).unwrap();
        if what == "end" {
            part["done"] = json!(true);
        } else {
            let before = part["text"].as_str().unwrap().to_owned();
            part["text"] = json!(before + frame["delta"].as_str().unwrap());
        }
    }
    json!(parts)
}
