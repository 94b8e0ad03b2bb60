//! D2: the database refuses a commit, or takes it and its answer is lost. The
//! process lives on, so nothing may be uncertain, and the model speaks once.

use serde_json::{Value, json};
use toolyard_store::failpoint::{self, NAMES, objection};

use crate::check::{self, Doubt};
use crate::database::Database;
use crate::gateway::{self, Gateway};
use crate::story::{Ended, Story};
use crate::world::World;

/// How often a named place is tried. Every commit passes the places of its
/// group, so these are walked to the end of the story.
const TIMES: u32 = 2;
const MOST: u32 = 60;

async fn at_every_commit(story: Story, database: fn() -> Database) {
    let world = World::new(database()).await;
    let (mut faults, mut told, mut heard) = (0, 0, 0);
    for name in NAMES.iter().filter(|name| name.ends_with("_commit")) {
        for deed in ["error", "lost_reply"].into_iter().filter(|deed| objection(name, deed).is_none()) {
            let times = if name.starts_with("group.") { MOST } else { TIMES };
            for nth in 1..=times {
                let place = format!("{name}:{deed}:{nth}");
                let ended = story.run_heard(&world, &place).await;
                let fired = ended.log.contains(&format!("failpoint {name}: {deed}"));
                // A gateway whose first commit fails does not start; the next one does.
                let at_start = name.starts_with("group.") && ended.deaths == 1;
                assert!(ended.deaths == 0 || at_start, "{place}\n{}", ended.log);
                check::outcome(story, Doubt::No, &ended, &place);
                // Readers drop pieces that they have: a second call is counted here.
                let asked = ended.log.matches("failpoint model.before_call is passed").count();
                let steps = ended.events.iter().filter(|e| e["type"] == "message.assistant").count();
                assert!(
                    at_start && asked == 0 || asked == steps,
                    "{place}: the model was called again\n{}",
                    ended.log
                );
                told += 1;
                heard += u32::from(speaks_once(&ended, &place));
                if !fired {
                    break;
                }
                assert!(times == TIMES || nth < MOST, "{place} is passed without end");
                faults += 1;
            }
        }
    }
    gateway::forget_binary();
    // A matrix that never fails proves nothing.
    assert!(faults >= 10, "only {faults} faults");
    assert!(story != Story::Spoken || heard * 2 > told, "only {heard} of {told} were heard");
    println!("{story:?}: {faults} faults, nothing lost, nothing doubled");
}

/// No part of a reply is begun twice. True if its pieces were heard: a reader
/// that comes to a whole reply gets that instead.
fn speaks_once(ended: &Ended, place: &str) -> bool {
    let mut begun: Vec<String> = Vec::new();
    let mut calls = 0;
    let mut text = String::new();
    let mut last = 0;
    for (name, data) in &ended.heard {
        match name.as_str() {
            "text-start" => begun.push(data["id"].as_str().unwrap().to_owned()),
            "text-delta" => text.push_str(data["delta"].as_str().unwrap()),
            "tool-input-start" => calls += 1,
            _ => {}
        }
        if let Some(seq) = data["seq"].as_i64() {
            assert_eq!(seq, last + 1, "{place}: {:?}", ended.heard);
            last = seq;
        }
    }
    let count = begun.len();
    begun.sort();
    begun.dedup();
    assert_eq!(begun.len(), count, "{place}: a part was streamed twice: {:?}", ended.heard);
    let asked = ended.events.iter().filter(|e| e["type"] == "tool-input-available").count();
    assert!(calls <= asked, "{place}: {:?}", ended.heard);
    let content = ended.messages[1]["content"].as_str().unwrap();
    assert!(content.contains(&text), "{place}: {text:?} of {content:?}");
    text == content
}

macro_rules! stories {
    ($($name:ident: $story:ident),* $(,)?) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                at_every_commit(Story::$story, Database::sqlite).await;
            })*
        }
        mod postgres {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                at_every_commit(Story::$story, Database::postgres).await;
            })*
        }
    };
}

stories! {
    d2_a_text_run_outlives_refused_commits_and_lost_answers: Spoken,
    d2_a_client_tool_run_outlives_refused_commits_and_lost_answers: ClientTool,
    d2_a_gateway_tool_run_outlives_refused_commits_and_lost_answers: GatewayTool,
    d2_an_approval_outlives_refused_commits_and_lost_answers: Approval,
}

/// D11: every commit of every story may fail or lose its answer, by dice. The
/// long tier is `xtask faults --errors 10`.
async fn by_chance(database: fn() -> Database) {
    const STORIES: [Story; 6] =
        [Story::Text, Story::ClientTool, Story::GatewayTool, Story::Approval, Story::Goals, Story::Plan];
    let world = World::with_spaces(database(), STORIES.len()).await;
    let mut failed = 0;
    for (seed, story) in (1..).zip(STORIES) {
        let ended = story.run_by_chance(&world, seed, 80).await;
        check::outcome(story, Doubt::No, &ended, &format!("by chance, seed {seed}"));
        failed += ended.log.matches(": by chance\n").count();
    }
    gateway::forget_binary();
    // Dice that never fall prove nothing.
    assert!(failed >= 3, "only {failed} commits failed");
    println!("{failed} commits failed or lost their answer, nothing lost, nothing doubled");
}

#[tokio::test]
async fn d11_every_story_outlives_errors_by_chance_on_sqlite() {
    by_chance(Database::sqlite).await;
}

#[tokio::test]
async fn d11_every_story_outlives_errors_by_chance_on_postgres() {
    by_chance(Database::postgres).await;
}

#[tokio::test]
async fn d2_a_model_that_refuses_fails_the_run_once_and_the_next_one_works() {
    let world = World::new(Database::sqlite()).await;
    let ended = Story::Text.run_heard(&world, "model.before_call:error:1").await;
    let kinds: Vec<&Value> = ended.events.iter().map(|e| &e["type"]).collect();
    assert_eq!(kinds.last(), Some(&&json!("run.failed")), "{kinds:?}");
    assert_eq!(ended.events.last().unwrap()["error"]["code"], "model_failed", "{:?}", ended.events);
    assert!(ended.heard.iter().all(|(name, _)| name != "text-start"), "{:?}", ended.heard);
    let ended = Story::Text.run(&world, None).await;
    check::outcome(Story::Text, Doubt::No, &ended, "no place");
    gateway::forget_binary();
}

#[test]
fn d2_a_deed_that_makes_no_sense_is_refused_with_a_sentence() {
    let refused = [
        ("append.after_commit:error", "append.after_commit cannot fail: the commit is done"),
        ("append.before_commit:lost_reply", "append.before_commit has no answer to lose"),
        ("tool.after_effect:error", "tool.after_effect cannot fail"),
        ("append.before_commit:explode", "there is no deed explode"),
        ("nowhere.at_all:kill", "there is no failpoint nowhere.at_all"),
        ("append.before_commit:error:never", "with a number from 1 on"),
    ];
    for (plan, sentence) in refused {
        let database = Database::sqlite();
        let (code, log) = Gateway::start(&database, Some(plan)).outlived();
        assert_eq!(code, Some(70), "{plan}: {log}");
        assert!(log.contains(sentence), "{plan}: {log}");
    }
    gateway::forget_binary();
}

/// A name that marks no place would be walked and prove nothing.
#[test]
fn every_name_is_a_place_of_the_code() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut code = String::new();
    let mut folders = ["store/src", "runtime/src", "tools/src"].map(|folder| crates.join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if !entry.ends_with("failpoint.rs") {
                code.push_str(&std::fs::read_to_string(entry).unwrap_or_default());
            }
        }
    }
    let missing: Vec<_> = failpoint::all().filter(|name| !code.contains(&format!("(\"{name}\")"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
