//! The invariants of RELIABILITY: A (each call ends once), B (at most one
//! execution, exactly one if it says ok), C (dense seqs), D (tables agree with
//! the log), F (everything ended).

use std::collections::HashMap;

use serde_json::Value;

use crate::story::{Ended, Story};

/// Places that lie between "the call is committed" and "its end is committed".
/// Behind the commit of an answer the run is on its way already: the caller's
/// task dies wherever the worker has come to.
pub(crate) const UNCERTAIN_AT: [&str; 10] = [
    "submit.after_commit",
    "tool.before_start",
    "tool.after_effect",
    "tool.before_outcome_commit",
    "append.before_commit",
    "append.after_commit",
    "feed.after_publish",
    "group.mid_savepoint",
    "group.before_commit",
    "group.after_commit",
];

/// `uncertain` says whether a gateway call may have ended so.
pub(crate) fn outcome(story: Story, uncertain: bool, ended: &Ended, place: &str) {
    let kinds: Vec<&str> = ended.events.iter().map(kind).collect();
    let context = format!("{story:?} at {place}: {kinds:?}");
    // C
    let seqs: Vec<i64> = ended.events.iter().map(|e| e["seq"].as_i64().unwrap()).collect();
    assert_eq!(seqs, (1..=i64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>(), "{context}");
    // F
    assert_eq!(kinds.last(), Some(&"run.completed"), "{context}");
    assert_eq!(
        kinds.iter().filter(|k| k.starts_with("run.c") && **k != "run.created").count(),
        1,
        "{context}"
    );
    // One message made one run, whatever died between.
    assert_eq!(ended.runs.len(), 1, "{context}");
    let roles: Vec<_> = ended.messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"], "{context}");
    // D
    assert_eq!(ended.runs[0]["status"], "completed", "{context}");
    assert_eq!(ended.runs[0]["lastSeq"], seqs.len(), "{context}");
    assert_eq!(ended.open_waits, 0, "{context}");
    calls(story, uncertain, ended, &context);
    assert_eq!(ended.goals, usize::from(story == Story::Goals), "{context}");
    if expected_calls(story) == 0 {
        let content = ended.messages[1]["content"].as_str().unwrap();
        assert!(content.ends_with("all is well"), "{content} {context}");
    }
}

fn expected_calls(story: Story) -> usize {
    match story {
        Story::Text | Story::Spoken | Story::Plan => 0,
        Story::ClientTool | Story::GatewayTool | Story::Approval | Story::Goals => 1,
    }
}

fn calls(story: Story, uncertain: bool, ended: &Ended, context: &str) {
    let mut ends: HashMap<&str, Vec<&Value>> = HashMap::new();
    for event in &ended.events {
        if matches!(kind(event), "tool-output-available" | "tool-error") {
            ends.entry(call(event)).or_default().push(event);
        }
    }
    let asked: Vec<&str> =
        ended.events.iter().filter(|e| kind(e) == "tool-input-available").map(call).collect();
    assert_eq!(asked.len(), expected_calls(story), "{context}");
    for id in asked {
        // A
        let end = ends.get(id).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(end.len(), 1, "{id} {context}");
        let end = end[0];
        let recorded = ended.recorded.iter().filter(|line| line.starts_with(id)).count();
        match (story, end["outcome"].as_str().unwrap()) {
            (Story::ClientTool, "ok") => assert_eq!(end["output"]["seen"], id, "{context}"),
            // Effect and result are one commit: there is no uncertainty.
            (Story::Goals, "ok") => assert_eq!(end["output"]["totalGoals"], 1, "{context}"),
            // B
            (Story::GatewayTool | Story::Approval, "ok") => assert_eq!(recorded, 1, "{context}"),
            (Story::GatewayTool | Story::Approval, "uncertain") => {
                assert!(recorded <= 1, "{context}");
                assert!(uncertain, "uncertain for no reason: {context}");
            }
            (_, other) => panic!("{id} ended {other}: {context}"),
        }
    }
    let others = ended.recorded.iter().filter(|line| !ends.keys().any(|id| line.starts_with(id))).count();
    assert_eq!(others, 0, "an execution of an uncommitted call: {context}");
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

fn call(event: &Value) -> &str {
    event["toolCallId"].as_str().unwrap()
}
