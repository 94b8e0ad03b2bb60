//! The invariants of RELIABILITY: A (each call ends once), B (at most one
//! execution, exactly one if it says ok), C (dense seqs), D (tables agree with
//! the log), F (everything ended).

use serde_json::{Value, json};

use crate::story::{Ended, Story};

/// Whether the call of a tool that must not be repeated may end in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    No,
    May,
    /// The process died between the call's commit and its end's.
    Must,
}

/// Places between "the call is committed" and "its end is committed".
const UNCERTAIN_AT: [&str; 8] = [
    "tool.before_start",
    "tool.after_effect",
    "tool.before_outcome_commit",
    "mcp.before_call",
    "mcp.before_ticket_commit",
    "mcp.after_answer",
    "file.before_commit",
    "file.after_commit",
];
/// Of them those that a call with a ticket comes by before the ticket is kept:
/// behind that, its server is asked for the end.
const WITHOUT_TICKET: [&str; 3] = ["tool.before_start", "mcp.before_call", "mcp.before_ticket_commit"];
/// Places that also lie elsewhere, or that other tasks come by meanwhile: behind
/// the commit of an answer the run is on its way already, and the caller's task
/// dies wherever the worker has come to.
const PERHAPS_AT: [&str; 7] = [
    "submit.after_commit",
    "append.before_commit",
    "append.after_commit",
    "feed.after_publish",
    "group.mid_savepoint",
    "group.before_commit",
    "group.after_commit",
];

impl Doubt {
    /// After so many deaths at a place.
    pub(crate) fn of_death(story: Story, place: &str, deaths: u32) -> Self {
        match deaths {
            0 => Self::No,
            _ if story == Story::McpTask && !WITHOUT_TICKET.contains(&place) => Self::No,
            _ if UNCERTAIN_AT.contains(&place) => Self::Must,
            _ if PERHAPS_AT.contains(&place) => Self::May,
            _ => Self::No,
        }
    }
}

/// What a story comes to, whatever died in between.
struct Expected {
    end: &'static str,
    /// The replies of the model.
    replies: usize,
    /// The tool of its one call.
    tool: Option<&'static str>,
    /// The text of a reply without a call.
    text: String,
}

fn expected(story: Story) -> Expected {
    let words = |count: usize| (1..=count).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    let said = |text: String| Expected { end: "run.completed", replies: 1, tool: None, text };
    let called = |tool| Expected { end: "run.completed", replies: 2, tool: Some(tool), text: String::new() };
    match story {
        Story::Text | Story::Plan | Story::Queued => said("all is well".to_owned()),
        Story::Spoken => said(format!("{}\nall is well", words(3))),
        Story::Stop => said(format!("{}\nall is well", words(20))),
        Story::ClientTool => called("read_screen"),
        Story::GatewayTool => called("record"),
        Story::Repeatable => called("record_safely"),
        Story::Approval => called("approve_record"),
        Story::Goals => called("setGoals"),
        Story::Expiry => called("brief_screen"),
        Story::Cancel => Expected { end: "run.canceled", replies: 1, ..called("read_screen") },
        Story::McpCall => called("mcp_far_paint"),
        Story::McpRepeatable => called("mcp_far_repaint"),
        Story::McpTask => called("mcp_far_task_held"),
        // Its calls are two: `hooked` looks at them.
        Story::Hooked => Expected { replies: 2, ..said(String::new()) },
    }
}

pub(crate) fn outcome(story: Story, doubt: Doubt, ended: &Ended, place: &str) {
    let expected = expected(story);
    let kinds: Vec<&str> = ended.events.iter().map(kind).collect();
    let context = format!("{story:?} at {place}: {kinds:?}");
    // C
    let seqs: Vec<i64> = ended.events.iter().map(|e| e["seq"].as_i64().unwrap()).collect();
    assert_eq!(seqs, (1..=i64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>(), "{context}");
    // F
    assert_eq!(kinds.last(), Some(&expected.end), "{context}");
    let count = |wanted: &str| kinds.iter().filter(|kind| **kind == wanted).count();
    let ends = ["run.completed", "run.failed", "run.canceled"].map(count);
    assert_eq!(ends.iter().sum::<usize>(), 1, "{context}");
    assert_eq!(count("message.assistant"), expected.replies, "{context}");
    assert_eq!(count("run.canceling"), usize::from(story == Story::Cancel), "{context}");
    // One message made one run, whatever died between.
    assert_eq!(ended.runs.len(), 1, "{context}");
    let roles: Vec<_> = ended.messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"], "{context}");
    // D
    assert_eq!(Some(expected.end), ended.runs[0]["status"].as_str().map(|s| format!("run.{s}")).as_deref());
    assert_eq!(ended.runs[0]["lastSeq"], seqs.len(), "{context}");
    assert_eq!(ended.open_waits, 0, "{context}");
    if story == Story::Hooked {
        return;
    }
    let end = call_end(story, &expected, doubt, ended, &context);
    assert_eq!(ended.goals, usize::from(story == Story::Goals), "{context}");
    // Nothing is said twice, and nothing is left out.
    let text = match (expected.tool, end) {
        // It had called, and said nothing yet.
        _ if story == Story::Cancel => String::new(),
        (Some(tool), Some(end)) => repeated(tool, end),
        _ => expected.text,
    };
    assert_eq!(ended.messages[1]["content"], text, "{context}");
}

/// How the demo model repeats the end of a call.
fn repeated(tool: &str, end: &Value) -> String {
    match end["outcome"].as_str() {
        Some("ok") if end["output"].is_string() => {
            format!("Tool {tool} answered: {}", end["output"].as_str().unwrap())
        }
        Some("ok") => format!("Tool {tool} answered: {}", end["output"]),
        _ => format!("Tool {tool} failed: {}", json!({"error": end["error"]})),
    }
}

/// The one end of the story's one call.
fn call_end<'e>(
    story: Story,
    expected: &Expected,
    doubt: Doubt,
    ended: &'e Ended,
    context: &str,
) -> Option<&'e Value> {
    let asked: Vec<&str> =
        ended.events.iter().filter(|e| kind(e) == "tool-input-available").map(call).collect();
    assert_eq!(asked.len(), usize::from(expected.tool.is_some()), "{context}");
    let ends: Vec<&Value> =
        ended.events.iter().filter(|e| matches!(kind(e), "tool-output-available" | "tool-error")).collect();
    // A
    assert_eq!(ends.iter().map(|end| call(end)).collect::<Vec<_>>(), asked, "{context}");
    let end = *ends.first()?;
    let id = call(end);
    // An MCP server does not hear the id of a call.
    let name = expected.tool.and_then(|tool| tool.strip_prefix("mcp_far_")).unwrap_or(id);
    let own = |line: &&String| line.split(' ').next() == Some(name);
    let others = ended.recorded.iter().filter(|line| !own(line)).count();
    assert_eq!(others, 0, "an execution of an uncommitted call: {context}");
    let recorded = ended.recorded.len();
    match (story, end["outcome"].as_str().unwrap()) {
        (Story::ClientTool, "ok") => assert_eq!(end["output"]["seen"], id, "{context}"),
        (Story::Expiry, "expired") | (Story::Cancel, "canceled") => {}
        // Effect and result are one commit: there is no uncertainty.
        (Story::Goals, "ok") => assert_eq!(end["output"]["totalGoals"], 1, "{context}"),
        // B
        (Story::GatewayTool | Story::Approval | Story::McpCall | Story::McpTask, "ok") => {
            assert_eq!(recorded, 1, "{context}");
            assert_ne!(doubt, Doubt::Must, "it died while the tool ran, and nobody is told: {context}");
        }
        (Story::GatewayTool | Story::Approval | Story::McpCall | Story::McpTask, "uncertain") => {
            assert!(recorded <= 1, "{context}");
            assert_ne!(doubt, Doubt::No, "uncertain for no reason: {context}");
        }
        // The far side gets the same key again, and nobody is in doubt.
        (Story::Repeatable | Story::McpRepeatable, "ok") => {
            let most = 1 + usize::try_from(ended.deaths).unwrap();
            assert!((1..=most).contains(&recorded), "{recorded} {context}");
        }
        (_, other) => panic!("{id} ended {other}: {context}"),
    }
    // However often it was called: its picture is one file.
    let brought = i64::from(matches!(story, Story::McpCall | Story::McpRepeatable));
    match end["outcome"] == "ok" {
        true => assert_eq!(ended.files, brought, "{context}"),
        false => assert!(ended.files <= brought, "{context}"),
    }
    Some(end)
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

fn call(event: &Value) -> &str {
    event["toolCallId"].as_str().unwrap()
}
