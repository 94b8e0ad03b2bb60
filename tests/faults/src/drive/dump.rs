//! What is left when all is quiet: logs, rows, and the far side's book.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Yard;
use super::stories::Cast;
use crate::dice::Dice;
use crate::history::Record;

/// Writes every run of every space into the history, whoever made it.
pub(super) async fn dump(yard: &Yard, cast: &Cast) {
    let mut dice = Dice::new(yard.plan.seed);
    let mut all: BTreeSet<String> = BTreeSet::new();
    for space in &cast.spaces {
        let mut before = String::new();
        loop {
            let path = format!("/api/smart-spaces/{space}/runs?limit=100{before}");
            let page = yard.get(&mut dice, &path).await;
            let runs: Vec<&str> =
                page["runs"].as_array().into_iter().flatten().filter_map(|r| r["id"].as_str()).collect();
            all.extend(runs.iter().map(|run| (*run).to_owned()));
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
    }
    for run in &all {
        let mut after = 0;
        loop {
            let page =
                yard.get(&mut dice, &format!("/api/runs/{run}/events?limit=200&afterSeq={after}")).await;
            let events = page["events"].as_array().cloned().unwrap_or_default();
            after = events.last().and_then(|e| e["seq"].as_i64()).unwrap_or(after);
            for data in events {
                yard.note(Record::Event { run: run.clone(), data });
            }
            if page["more"] != Value::Bool(true) {
                break;
            }
        }
        let row = yard.get(&mut dice, &format!("/api/runs/{run}")).await["run"].clone();
        let waits = yard.get(&mut dice, &format!("/api/waits?runId={run}")).await;
        yard.note(Record::Row {
            run: run.clone(),
            status: row["status"].as_str().unwrap_or_default().to_owned(),
            last_seq: row["lastSeq"].as_i64().unwrap_or(-1),
            open_waits: waits["waits"].as_array().map_or(0, Vec::len),
        });
    }
    for effect in yard.far_side.effects() {
        yard.note(effect);
    }
}
