//! Ids, names, moments, hashes and codes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;
use toolyard_protocol::ids::ID_MAX;
use toolyard_protocol::message::Speaker;
use toolyard_protocol::run::{RunEnd, RunStatus};
use toolyard_protocol::*;

#[test]
fn ids_take_letters_digits_and_four_marks() {
    for fine in ["a", "run_1", "A-b.c:d_9", &"x".repeat(ID_MAX)] {
        assert_eq!(RunId::parse(fine).unwrap().as_str(), fine);
    }
    for junk in
        ["", " ", "a b", "a/b", "../x", "a\nb", "a\0", "ä", "a;drop", "%2e", "\"", &"x".repeat(ID_MAX + 1)]
    {
        assert!(RunId::parse(junk).is_err(), "{junk:?}");
        assert!(serde_json::from_value::<SpaceId>(json!(junk)).is_err(), "{junk:?}");
    }
    assert!(serde_json::from_value::<RunId>(json!(7)).is_err());
}

#[test]
fn a_hostile_id_is_not_echoed_whole() {
    let error = CallId::parse(&"<script>\r\n".repeat(50)).unwrap_err().to_string();
    assert!(error.len() < 140 && !error.contains(['\r', '\n']), "{error}");
    assert!(error.starts_with("CallId must be 1 to 96 characters"), "{error}");
}

#[test]
fn minted_ids_name_their_kind_are_unique_and_grow() {
    let minted: Vec<RunId> = (0..1000).map(|_| RunId::mint()).collect();
    assert!(minted.iter().all(|id| id.as_str().starts_with("run_") && RunId::parse(id.as_str()).is_ok()));
    assert_eq!(minted.iter().collect::<BTreeSet<_>>().len(), 1000);
    assert!(minted.is_sorted());
}

#[test]
fn a_turns_message_id_is_the_same_for_every_reader() {
    let run = RunId::parse("run_abc").unwrap();
    assert_eq!(MessageId::of_turn(&run, 2).as_str(), "msg_abc_2");
}

#[test]
fn tool_names_are_1_to_64_letters_digits_hyphens_and_underscores() {
    for fine in ["a", "1", "my-tool_name-123", &"t".repeat(64)] {
        assert_eq!(ToolName::parse(fine).unwrap().as_str(), fine);
    }
    for bad in ["", "a b", "a.b", "é", "a:b", &"t".repeat(65)] {
        assert!(ToolName::parse(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        ToolName::parse("a b").unwrap_err().to_string(),
        "Invalid tool name \"a b\": use 1 to 64 letters, digits, hyphens and underscores"
    );
}

#[test]
fn agent_names_leave_route_words_alone() {
    for fine in ["a", "0", "my.agent-1_x", "v2", "Message", &"a".repeat(64)] {
        assert_eq!(AgentName::parse(fine).unwrap().as_str(), fine);
    }
    for bad in ["", "-a", ".a", "_a", "a/b", "a b", "é", &"a".repeat(65)] {
        assert!(AgentName::parse(bad).is_err(), "{bad:?}");
    }
    for reserved in ["message", "tasks", "v1", "v0.3"] {
        let error = AgentName::parse(reserved).unwrap_err().to_string();
        assert!(error.contains("is reserved"), "{error}");
    }
}

#[test]
fn a_moment_is_written_with_milliseconds_and_read_in_every_offset() {
    let moment = Timestamp::from_millis(1_700_000_000_120);
    assert_eq!(serde_json::to_value(moment).unwrap(), json!("2023-11-14T22:13:20.120Z"));
    assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    assert_eq!(Timestamp::from_millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
    for text in [
        "2023-11-14T22:13:20.120Z",
        "2023-11-14T22:13:20.12Z",
        "2023-11-15T00:13:20.120+02:00",
        "2023-11-14T22:13:20.120999Z",
    ] {
        assert_eq!(serde_json::from_value::<Timestamp>(json!(text)).unwrap(), moment, "{text}");
    }
    for junk in
        [json!("yesterday"), json!(""), json!(1_700_000_000_120_i64), json!("2023-11-14"), json!(null)]
    {
        assert!(serde_json::from_value::<Timestamp>(junk.clone()).is_err(), "{junk}");
    }
}

#[test]
fn time_stops_at_its_end_instead_of_wrapping() {
    let last = Timestamp::from_millis(i64::MAX);
    assert_eq!(last.plus_millis(1), last);
    assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(7)), 0);
    assert_eq!(Timestamp::from_millis(7).since(Timestamp::from_millis(5)), 2);
}

proptest! {
    #[test]
    fn every_moment_comes_back(ms in -62_000_000_000_000_i64..253_000_000_000_000) {
        let moment = Timestamp::from_millis(ms);
        let text = serde_json::to_string(&moment).unwrap();
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), moment);
    }
}

#[test]
fn a_hash_does_not_depend_on_the_order_of_keys() {
    let one: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":[true,null]}"#).unwrap();
    let two: serde_json::Value = serde_json::from_str(r#" { "a" : [ true , null ] , "b" : 1 } "#).unwrap();
    assert_eq!(Hash::of_json(&one), Hash::of_json(&two));
    assert_ne!(Hash::of_json(&one), Hash::of_json(&json!({"b": 1, "a": [true]})));
    assert_eq!(Hash::of(b"").as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(Hash::from_hex(Hash::of(b"x").as_str()), Some(Hash::of(b"x")));
    assert_eq!(Hash::from_hex("xyz"), None);
}

#[test]
fn error_codes_are_unique_and_named_alike_everywhere() {
    let texts: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(texts.len(), ErrorCode::ALL.len());
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), json!(code.as_str()));
        assert!((400..600).contains(&code.status()), "{}", code.as_str());
    }
}

#[test]
fn an_error_says_its_limit_only_if_there_is_one() {
    let plain = ApiError::missing("result");
    assert_eq!(
        serde_json::to_value(&plain).unwrap(),
        json!({"code": "missing_field", "message": "Missing required field: result"})
    );
    let limited = ApiError::limit(ErrorCode::LimitExceeded, 10, "At most 10 tools");
    assert_eq!(serde_json::to_value(&limited).unwrap()["limit"], json!(10));
    assert_eq!(ApiError::not_found("Run").message, "Run not found");
}

#[test]
fn states_have_the_documented_names() {
    let names = ["queued", "running", "waiting_tool", "completed", "failed", "canceled"];
    assert!(names.iter().all(|name| RunStatus::parse(name).is_some_and(|s| s.as_str() == *name)));
    for status in names.map(|name| RunStatus::parse(name).unwrap()) {
        assert_eq!(serde_json::to_value(status).unwrap(), json!(status.as_str()));
    }
    let ends = [RunEnd::Completed, RunEnd::Failed, RunEnd::Canceled];
    assert!(ends.iter().all(|end| end.status().is_final()));
    assert_eq!(RunStatus::parse("waiting-tool"), None);
    assert_eq!(
        ["user", "assistant", "system"].map(|name| Speaker::parse(name).map(Speaker::as_str)),
        [Some("user"), Some("assistant"), Some("system")]
    );
}

#[test]
fn a_model_reads_text_as_it_is_and_the_rest_as_json() {
    let heard = |outcome: ToolOutcome| outcome.for_model();
    assert_eq!(heard(ToolOutcome::Ok(json!("plain \"text\""))), "plain \"text\"");
    assert_eq!(heard(ToolOutcome::Ok(json!({"a": 1}))), r#"{"a":1}"#);
    assert_eq!(heard(ToolOutcome::Ok(json!(null))), "null");
    assert_eq!(heard(ToolOutcome::Denied("no".into())), r#"{"error":"no"}"#);
}
