//! The stored form: what was written can be read, now and by later releases.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolyard_protocol::event::{RunFinished, RunStarted, ToolReturned, Undecodable};
use toolyard_protocol::message::Part;
use toolyard_protocol::outcome::ToolOutcome;
use toolyard_protocol::principal::{Actor, Viewer};
use toolyard_protocol::run::Usage;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::visible::visible_to;
use toolyard_protocol::{Event, Guarded, ToolName};

use crate::samples;

#[test]
fn every_sample_comes_back_as_it_was() {
    for event in samples::all() {
        assert_eq!(Event::decode(&event.encode()).as_ref(), Ok(&event));
    }
}

#[test]
fn a_filtered_event_comes_back_with_its_gaps() {
    let [_, _, (_, bystander)] = samples::viewers();
    for event in samples::all() {
        if let Some(seen) = visible_to(&bystander, &event) {
            assert_eq!(Event::decode(&seen.encode()).as_ref(), Ok(seen.as_ref()));
        }
    }
}

#[test]
fn the_stored_form_is_flat_and_starts_with_version_and_type() {
    assert_eq!(Event::from(RunStarted {}).encode(), r#"{"v":1,"type":"RunStarted"}"#);
    for event in samples::all() {
        let head = format!(r#"{{"v":1,"type":"{}""#, event.kind());
        assert!(event.encode().starts_with(&head), "{}", event.encode());
    }
}

#[test]
fn an_unknown_type_is_an_error_and_names_itself() {
    let unknown = |kind: &str, v| Err(Undecodable::Unknown { kind: kind.to_owned(), v });
    assert_eq!(Event::decode(r#"{"v":1,"type":"MoonLanded","at":1}"#), unknown("MoonLanded", 1));
    assert_eq!(Event::decode(r#"{"v":2,"type":"RunStarted"}"#), unknown("RunStarted", 2));
    assert_eq!(
        Event::decode(r#"{"v":2,"type":"RunStarted"}"#).unwrap_err().to_string(),
        "event type RunStarted (version 2) is not known to this release"
    );
}

#[test]
fn a_broken_event_is_an_error_and_names_its_type() {
    let broken = |text: &str| match Event::decode(text) {
        Err(Undecodable::Broken { kind, .. }) => kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(""), "?");
    assert_eq!(broken("[]"), "?");
    assert_eq!(broken(r#"{"type":"RunStarted"}"#), "?");
    assert_eq!(broken(r#"{"v":1,"type":"StepRestarted","step":"one","attempt":1}"#), "StepRestarted");
    assert_eq!(broken(r#"{"v":1,"type":"StepRestarted","step":1}"#), "StepRestarted");
    assert_eq!(broken(r#"{"v":1,"type":"MessageQueued","message":"no spaces allowed"}"#), "MessageQueued");
}

#[test]
fn a_field_of_a_later_release_is_ignored() {
    let later = r#"{"v":1,"type":"StepRestarted","step":1,"attempt":2,"shoeSize":44}"#;
    let event = Event::decode(later).unwrap();
    assert_eq!(event.encode(), r#"{"v":1,"type":"StepRestarted","step":1,"attempt":2}"#);
}

/// Trap T5: with a plain `Option` a `null` result would come back as none.
#[test]
fn t5_a_null_result_stays_a_result() {
    let tool = ToolName::parse("lookup").unwrap();
    let null = ToolOutcome::Ok(Value::Null);
    let returned = ToolReturned::new(
        samples::call(1),
        tool.clone(),
        Visibility::Public,
        null.clone(),
        Actor::Gateway {},
    );
    let event = Event::from(returned);
    let Event::ToolReturned(read) = Event::decode(&event.encode()).unwrap() else { panic!() };
    assert_eq!(read.value, Guarded::Shown(Value::Null));
    assert_eq!(read.outcome(), null);

    let part = Part::tool_result(samples::call(1), tool, Visibility::Public, &null);
    let text = serde_json::to_value(&part).unwrap();
    assert_eq!(text["value"], Value::Null);
    assert!(text.get("value").is_some() && text.get("error").is_none());
    assert_eq!(serde_json::from_value::<Part>(text).unwrap(), part);
}

#[test]
fn a_hidden_value_is_absent_and_not_null() {
    let hidden = json!({ "type": "tool-result", "call": "call_1", "tool": "lookup", "visibility": "private",
        "outcome": "ok" });
    let part: Part = serde_json::from_value(hidden.clone()).unwrap();
    assert_eq!(serde_json::to_value(&part).unwrap(), hidden);
}

/// Logs of every release stay readable, and no stored field is lost by
/// reading and writing it again.
#[test]
fn golden_logs_of_all_releases_decode() {
    for (release, kinds, log) in [("0.1.0", 23, include_str!("golden/0.1.0.jsonl"))] {
        let mut seen = BTreeSet::new();
        for line in log.lines() {
            let event = Event::decode(line).unwrap_or_else(|e| panic!("{release}: {e}\n{line}"));
            let written: Value = serde_json::from_str(line).unwrap();
            let again: Value = serde_json::from_str(&event.encode()).unwrap();
            assert!(holds(&again, &written), "{release}: {written}\nbecame\n{again}");
            assert_eq!(visible_to(&Viewer::secret(), &event).as_deref(), Some(&event));
            seen.insert(event.kind());
        }
        assert_eq!(seen.len(), kinds, "{release}");
    }
}

/// Everything in `small` is in `large`; fields may have been added. A word that
/// says no may be left out, and in a usage a count of nothing.
fn holds(large: &Value, small: &Value) -> bool {
    holds_below("", large, small)
}

fn holds_below(name: &str, large: &Value, small: &Value) -> bool {
    match (large, small) {
        (Value::Object(large), Value::Object(small)) => {
            small.iter().all(|(key, value)| match large.get(key) {
                Some(larger) => holds_below(key, larger, value),
                None => value == false || (name == "usage" && value == 0),
            })
        }
        (Value::Array(large), Value::Array(small)) => {
            large.len() == small.len() && large.iter().zip(small).all(|(l, s)| holds_below(name, l, s))
        }
        (large, small) => large == small,
    }
}

#[test]
fn a_zero_is_lost_unless_it_counts_in_a_usage() {
    let usage = json!({ "usage": { "inputTokens": 0, "outputTokens": 7 } });
    assert!(holds(&json!({ "usage": { "outputTokens": 7 } }), &usage));
    assert!(!holds(&json!({ "usage": { "inputTokens": 0 } }), &usage));
    assert!(!holds(&json!({}), &json!({ "historyTo": 0 })));
    assert!(!holds(&json!({ "usage": {} }), &json!({ "usage": {}, "depth": 0 })));
}

#[test]
fn counts_of_nothing_are_not_stored_and_are_read_as_zero() {
    for usage in [Usage::default(), Usage { input_tokens: 7, cached_tokens: 3, ..Usage::default() }] {
        let finished = samples::all().into_iter().find_map(|event| match event {
            Event::RunFinished(finished) => Some(RunFinished { usage, ..finished }),
            _ => None,
        });
        let event = Event::from(finished.unwrap());
        let stored: Value = serde_json::from_str(&event.encode()).unwrap();
        let counts = stored["usage"].as_object().unwrap();
        assert!(counts.values().all(|count| count != 0), "{stored}");
        assert_eq!(counts.len(), if usage == Usage::default() { 0 } else { 2 });
        assert_eq!(Event::decode(&event.encode()).unwrap(), event);
    }
}

/// A release adds its own log: `TOOLYARD_WRITE_GOLDEN=1` writes it from the
/// samples, and [`golden_logs_of_all_releases_decode`] lists it from then on.
#[test]
fn this_release_has_a_golden_log() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/", env!("CARGO_PKG_VERSION"), ".jsonl");
    if std::env::var_os("TOOLYARD_WRITE_GOLDEN").is_some() {
        let lines: String = samples::all().iter().map(|event| event.encode() + "\n").collect();
        std::fs::write(path, lines).unwrap();
    }
    let log = std::fs::read_to_string(path).expect("set TOOLYARD_WRITE_GOLDEN=1 once to write it");
    let kinds: BTreeSet<_> = log.lines().map(|line| Event::decode(line).unwrap().kind()).collect();
    assert_eq!(kinds, Event::KINDS.iter().copied().collect());
}
