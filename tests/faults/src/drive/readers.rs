//! A reader that follows a run over every fault, by its last id.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolyard_protocol::sse::SseSplitter;

use super::Yard;
use super::client::PATIENCE;
use super::nodes::SECRET;
use super::storm::rest;
use crate::dice::Dice;
use crate::history::Record;

/// Reads a run's stream to its end and notes what it hears.
pub(super) async fn follow(yard: Arc<Yard>, reader: String, run: String, mut dice: Dice) {
    let mut last = 0;
    loop {
        if listen(&yard, &reader, &run, &mut last, &mut dice).await || yard.quiet() > PATIENCE {
            return;
        }
        rest(30).await;
    }
}

/// One connection; true when the end was heard.
async fn listen(yard: &Yard, reader: &str, run: &str, last: &mut i64, dice: &mut Dice) -> bool {
    let Some(url) = yard.nodes[dice.below(yard.nodes.len())].url() else { return false };
    let request = yard.http.get(format!("{url}/api/runs/{run}/stream")).header("x-secret-key", SECRET);
    let request = request.header("last-event-id", last.to_string()).timeout(Duration::from_secs(20));
    let Ok(mut response) = request.send().await else { return false };
    if response.status() != 200 {
        return false;
    }
    let mut splitter = SseSplitter::new(8 << 20);
    // Some readers hang up by themselves.
    let mut left = if dice.chance(30) { dice.between(1, 4) } else { u64::MAX };
    while let Ok(Some(bytes)) = response.chunk().await {
        let mut events = Vec::new();
        if splitter.push(&bytes, &mut events).is_err() {
            return false;
        }
        for event in events {
            let (Some(id), Some(name)) = (event.id, event.event) else { continue };
            let (seq, data) =
                (id.parse().unwrap_or(-1), serde_json::from_str(&event.data).unwrap_or(Value::Null));
            // A frame's own number and its id are the same; a reset would show here.
            let seq = if data["seq"].as_i64() == Some(seq) { seq } else { -1 };
            *last = seq;
            let (reader, run) = (reader.to_owned(), run.to_owned());
            let end = matches!(name.as_str(), "run.completed" | "run.failed" | "run.canceled");
            yard.note(Record::Read { reader, run, seq, name });
            left -= 1;
            if end {
                return true;
            }
            if left == 0 {
                return false;
            }
        }
    }
    false
}
