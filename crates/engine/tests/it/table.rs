//! The transition table: every state against every input, one line each.

use toolyard_engine::{AskKind, Input};
use toolyard_protocol::ErrorCode;
use toolyard_protocol::limits::RunLimits;

use crate::fixture::*;

fn inputs() -> Vec<(&'static str, Input)> {
    let fail = Input::ModelFailed {
        code: ErrorCode::ModelFailed,
        message: "The model failed".to_owned(),
        detail: String::new(),
        said: None,
    };
    let ended =
        Input::ToolEnded { call: id("a"), outcome: ok(), blob: None, untrusted: false, notes: Vec::new() };
    let child = toolyard_protocol::RunId::parse("run_9").unwrap();
    vec![
        ("Claimed", claimed()),
        ("Recovered", recovered()),
        ("Woken", Input::Woken),
        ("ModelReplied", Input::ModelReplied { reply: reply("x"), calls: vec![] }),
        ("ModelFailed", fail),
        ("Routed", Input::Routed(gateway("a"))),
        ("ToolEnded", ended),
        ("ChildStarted", Input::ChildStarted { call: id("a"), child, expires: None, stream: false }),
        ("Noted", Input::Noted(vec![])),
        ("Halted", Input::Halted { said: Some(reply("h")) }),
    ]
}

/// Each input, and the kinds of the events it causes.
fn row(story: &Story) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, input) in inputs() {
        let events = story.run.next(NOW, input);
        if !events.is_empty() {
            lines.push(format!("{name}: {}", kinds(&events).join(" ")));
        }
    }
    lines
}

#[test]
fn queued() {
    let mut story = Story::queued(RunLimits::default());
    assert_eq!(row(&story), ["Claimed: RunStarted", "Recovered: RunStarted"]);
    story.queue("m1", false);
    assert_eq!(row(&story), ["Claimed: RunStarted", "Recovered: RunStarted"]);
    story.queue("m2", true);
    assert_eq!(row(&story), ["Claimed: RunStarted MessageTaken", "Recovered: RunStarted MessageTaken"]);
    story.cancel();
    assert!(row(&story).iter().all(|line| line.ends_with(": RunFinished")));
    assert_eq!(row(&story).len(), inputs().len());
}

#[test]
fn thinking() {
    let story = Story::started();
    assert_eq!(
        row(&story),
        ["Recovered: StepRestarted", "ModelReplied: ModelReplied RunFinished", "ModelFailed: RunFinished"]
    );
}

#[test]
fn thinking_with_a_queued_message() {
    let mut story = Story::started();
    story.queue("m1", false);
    assert_eq!(
        row(&story),
        ["Recovered: StepRestarted", "ModelReplied: ModelReplied MessageTaken", "ModelFailed: RunFinished"]
    );
}

#[test]
fn thinking_while_interrupted() {
    let mut story = Story::started();
    story.queue("m1", true);
    assert_eq!(
        row(&story),
        [
            "Claimed: MessageTaken",
            "Recovered: MessageTaken",
            "ModelReplied: ModelReplied MessageTaken",
            "ModelFailed: MessageTaken",
            "Halted: ModelReplied MessageTaken"
        ]
    );
}

#[test]
fn thinking_while_canceled() {
    let mut story = Story::started();
    story.cancel();
    assert_eq!(
        row(&story),
        [
            "Claimed: RunFinished",
            "Recovered: RunFinished",
            "ModelReplied: ModelReplied RunFinished",
            "ModelFailed: RunFinished",
            "Halted: ModelReplied RunFinished"
        ]
    );
}

#[test]
fn acting() {
    assert_eq!(
        row(&Story::acting(false)),
        [
            "Claimed: ToolReturned",
            "Recovered: ToolReturned",
            "ToolEnded: ToolReturned",
            "ChildStarted: ChildStarted RunPaused"
        ]
    );
    assert_eq!(
        row(&Story::acting(true)),
        ["ToolEnded: ToolReturned", "ChildStarted: ChildStarted RunPaused"]
    );
}

#[test]
fn acting_while_canceled() {
    let mut story = Story::acting(false);
    story.cancel();
    assert_eq!(
        row(&story),
        [
            "Claimed: ToolReturned RunFinished",
            "Recovered: ToolReturned RunFinished",
            "ToolEnded: ToolReturned RunFinished",
            "Halted: ToolReturned RunFinished"
        ]
    );
}

#[test]
fn acting_while_interrupted() {
    let mut story = Story::acting(true);
    story.queue("m1", true);
    assert_eq!(
        row(&story),
        [
            "Claimed: ToolReturned MessageTaken",
            "Recovered: ToolReturned MessageTaken",
            "ToolEnded: ToolReturned MessageTaken",
            "Halted: ToolReturned MessageTaken"
        ]
    );
}

#[test]
fn waiting() {
    assert!(row(&Story::waiting_for_client()).is_empty());
    let mut story = Story::started();
    story.reply(vec![asked("a", AskKind::Approval)]);
    assert!(row(&story).is_empty());
    story.cancel();
    let end = "Answered ToolReturned RunFinished";
    assert!(row(&story).iter().all(|line| line.ends_with(end)));
    assert_eq!(row(&story).len(), inputs().len());
}

#[test]
fn finished() {
    let mut story = Story::started();
    story.reply(vec![]);
    assert!(row(&story).is_empty());
    story.cancel();
    story.queue("m1", true);
    assert!(row(&story).is_empty() && !story.run.halting());
}
