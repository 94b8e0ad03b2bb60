//! Stories about the executors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compute;
mod goals;
mod home;
mod knowledge;
mod plans;
mod prebuilt;
mod secrets;
mod x15;

use serde_json::{Value, json};
use toolyard_protocol::agent::execution::{Basic, BasicMode, Waiting};
use toolyard_tools::{basic, waiting};

fn basic_tool(mode: BasicMode, output: Value, template: bool) -> Basic {
    Basic { mode, output: output.as_object().cloned().unwrap_or_default(), template }
}

#[test]
fn g9_static_answers_its_output_with_success() {
    let tool = basic_tool(BasicMode::Static, json!({"greeting": "hello"}), false);
    assert_eq!(
        basic::execute(&tool, &json!({"name": "Ada"})),
        Some(json!({"success": true, "greeting": "hello"}))
    );
}

#[test]
fn g9_a_template_fills_known_names_and_leaves_unknown_ones() {
    let output = json!({"text": "Hi {{name}}, {{ n }} {{missing}} {{", "list": ["{{name}}"], "n": 1});
    let tool = basic_tool(BasicMode::Static, output, true);
    let answer = basic::execute(&tool, &json!({"name": "Ada", "n": 3}));
    let expected = json!({"success": true, "text": "Hi Ada, 3 {{missing}} {{", "list": ["Ada"], "n": 1});
    assert_eq!(answer, Some(expected));
}

#[test]
fn g9_pass_through_answers_its_input() {
    let tool = basic_tool(BasicMode::PassThrough, json!({}), false);
    assert_eq!(basic::execute(&tool, &json!({"a": [1]})), Some(json!({"success": true, "a": [1]})));
}

#[test]
fn g9_no_execution_is_left_to_a_client() {
    assert_eq!(basic::execute(&Basic::default(), &json!({})), None);
}

#[test]
fn g13_the_input_overrides_the_configured_pause() {
    let tool = Waiting { duration: Some(50), reason: Some("cool down".to_owned()) };
    let plan = waiting::plan(&tool, &json!({})).unwrap();
    assert_eq!((plan.ms, plan.payload), (50, json!({"waited": 50, "reason": "cool down"})));
    assert_eq!(waiting::plan(&tool, &json!({"seconds": 1.5})).unwrap().ms, 1500);
    assert_eq!(waiting::plan(&tool, &json!({"duration": 7, "seconds": 9})).unwrap().ms, 7);
    assert_eq!(waiting::plan(&tool, &json!({"reason": "tea"})).unwrap().payload["reason"], "tea");
}

#[test]
fn g13_an_endless_or_negative_pause_is_refused_with_its_limit() {
    let tool = Waiting::default();
    assert!(waiting::plan(&tool, &json!({})).unwrap_err().contains("how long"));
    assert!(waiting::plan(&tool, &json!({"duration": -1})).unwrap_err().contains("not negative"));
    assert!(waiting::plan(&tool, &json!({"seconds": 1e300})).unwrap_err().contains("2592000000"));
}
