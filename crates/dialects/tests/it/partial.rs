//! Row G33: `partialInput`, the input of a call while it is being written.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_dialects::native::{InputsSoFar, PARTIAL_INPUT_BYTES, delta_frame};
use toolyard_protocol::ToolName;
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::tool::Visibility;

use crate::samples;

fn piece(call: u32, text: &str) -> Piece {
    Piece::ToolInputDelta {
        call: samples::call(call),
        tool: ToolName::parse("setGoals").unwrap(),
        visibility: Visibility::Private,
        text: text.into(),
    }
}

/// What is shown when this much is written; none if nothing can be shown.
fn shown(written: &str) -> Option<Value> {
    let delta = Delta { run: samples::run(), step: 1, attempt: 1, offset: 0, piece: piece(1, "") };
    let frame = delta_frame(&delta, &Viewer::secret(), Some(written)).unwrap();
    let mut payload: Value = serde_json::from_str(frame.data()).unwrap();
    payload.as_object_mut().unwrap().remove("partialInput")
}

#[test]
fn a_half_written_input_is_shown_as_far_as_it_can_be_read() {
    for (written, expected) in [
        (r#"{"#, json!({})),
        (r#"{"go"#, json!({})),
        (r#"{"goals""#, json!({})),
        (r#"{"goals":"#, json!({})),
        (r#"{"goals":["#, json!({ "goals": [] })),
        (r#"{"goals":[{"#, json!({ "goals": [{}] })),
        (r#"{"goals":[{"description":"Help u"#, json!({ "goals": [{ "description": "Help u" }] })),
        (r#"{"goals":[{"description":"Help u"}"#, json!({ "goals": [{ "description": "Help u" }] })),
        (r#"{"a":1,"b":tr"#, json!({ "a": 1 })),
        (r#"{"a":1,"b":12"#, json!({ "a": 1 })),
        (r#"{"a":1,"b":12,"#, json!({ "a": 1, "b": 12 })),
        (r#"{"a":1 , "#, json!({ "a": 1 })),
        (r#"{"a":"x\"#, json!({ "a": "x" })),
        (r#"{"a":"x\n"#, json!({ "a": "x\n" })),
        (r#"{"a":"x\u00"#, json!({ "a": "x" })),
        (r#"{"a":"x\u00e9"#, json!({ "a": "xé" })),
        (r#"{"a":"{\"b\":["#, json!({ "a": "{\"b\":[" })),
        (r#"[1,[2,"#, json!([1, [2]])),
        (r#"{"a":1}"#, json!({ "a": 1 })),
        (r#""te"#, json!("te")),
        (r#"null"#, Value::Null),
    ] {
        assert_eq!(shown(written), Some(expected), "{written}");
    }
}

#[test]
fn what_is_no_json_is_not_shown() {
    for written in ["", "   ", "nul", "12a", "}", "{]", "not json", r#"{"a":}"#] {
        assert_eq!(shown(written), None, "{written}");
    }
}

#[test]
fn inputs_are_kept_per_call_and_forgotten_with_the_step() {
    let mut inputs = InputsSoFar::default();
    assert_eq!(inputs.add(&piece(1, "{\"a\"")), Some("{\"a\""));
    assert_eq!(inputs.add(&piece(2, "[")), Some("["));
    assert_eq!(inputs.add(&piece(1, ":1}")), Some("{\"a\":1}"));
    assert_eq!(inputs.add(&Piece::TextStart { part: 0 }), None);
    inputs.clear();
    assert_eq!(inputs.add(&piece(1, "{")), Some("{"));
}

#[test]
fn a_long_input_has_only_its_deltas() {
    let mut inputs = InputsSoFar::default();
    let long = "x".repeat(PARTIAL_INPUT_BYTES);
    assert_eq!(inputs.add(&piece(1, &long)).map(str::len), Some(PARTIAL_INPUT_BYTES));
    assert_eq!(inputs.add(&piece(1, "y")), None);
    assert_eq!(inputs.add(&piece(1, "z")), None);
    assert_eq!(shown(&format!("\"{long}")), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\\n{}\\[\\],:é😀]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"{é]{0,4}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// `small` is a beginning of `large`.
fn begins(small: &Value, large: &Value) -> bool {
    match (small, large) {
        (Value::Object(small), Value::Object(large)) => {
            small.iter().all(|(key, value)| large.get(key).is_some_and(|whole| begins(value, whole)))
        }
        (Value::Array(small), Value::Array(large)) => {
            small.len() <= large.len() && small.iter().zip(large).all(|(s, l)| begins(s, l))
        }
        (Value::String(small), Value::String(large)) => large.starts_with(small.as_str()),
        (small, large) => small == large,
    }
}

proptest! {
    #[test]
    fn what_is_shown_is_always_a_beginning_of_the_whole(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(shown(&text), Some(value.clone()));
        for (cut, _) in text.char_indices() {
            if let Some(part) = shown(&text[..cut]) {
                // A cut number at the top is a number of its own.
                prop_assert!(begins(&part, &value) || value.is_number(), "{} of {text}", &text[..cut]);
            } else {
                prop_assert!(cut == 0 || !text.starts_with(['{', '[', '"']), "nothing of {}", &text[..cut]);
            }
        }
    }

    #[test]
    fn noise_is_survived(noise in "[\\[\\]{}\",:\\\\u0-9a-f\\s\\PC]{0,60}") {
        let _ = shown(&noise);
    }
}
