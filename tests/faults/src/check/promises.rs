//! What was told to clients and readers against what the logs say.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{Found, Promise, Read, is_end, kind, text};
use crate::history::{History, Record};

pub(super) fn check(history: &History, read: &Read<'_>, found: &mut Found) {
    let mut made: HashMap<&str, &str> = HashMap::new();
    let mut rows: HashMap<&str, (&str, i64, usize)> = HashMap::new();
    let mut heard: BTreeMap<(&str, &str), Vec<(i64, &str)>> = BTreeMap::new();
    for record in &history.0 {
        match record {
            Record::Made { key, run } => {
                let first = *made.entry(key).or_insert(run);
                found.unless(first == run, Promise::LostRequest, || format!("{key} made {first} and {run}"));
                let exists = read.logs.contains_key(run.as_str());
                found.unless(exists, Promise::LostRequest, || {
                    format!("{key} was answered with {run}, which is not there")
                });
            }
            Record::Handed { run, call, value, status } => handed(read, run, call, value, *status, found),
            Record::Decided { run, call, allow: true, status: 200 } => {
                let log = read.logs.get(run.as_str()).map(Vec::as_slice).unwrap_or_default();
                let taken = log.iter().any(|e| kind(e) == "wait.answered" && text(e, "toolCallId") == call);
                found.unless(taken, Promise::LostAnswer, || {
                    format!("{run}: the yes to {call} is not in the log")
                });
            }
            Record::Canceled { run, status: 200 } => {
                let log = read.logs.get(run.as_str()).map(Vec::as_slice).unwrap_or_default();
                let asked = log.iter().filter(|e| kind(e) == "run.canceling").count();
                found.unless(asked == 1, Promise::LostAnswer, || format!("{run} was canceled {asked} times"));
            }
            Record::Row { run, status, last_seq, open_waits } => {
                rows.insert(run, (status, *last_seq, *open_waits));
            }
            Record::Read { reader, run, seq, name } => {
                heard.entry((reader, run)).or_default().push((*seq, name));
            }
            Record::Kept { mark, count, wanted } => {
                found.unless(count == wanted, Promise::KeptCount, || {
                    format!("{mark} is there {count} times, not {wanted}")
                });
            }
            Record::Stuck { run, why } => found.say(Promise::Unfinished, format!("{run}: {why}")),
            _ => {}
        }
    }
    for (run, log) in &read.logs {
        let wanted = made.values().any(|made| made == run);
        found.unless(wanted, Promise::UnaskedRun, || format!("nobody asked for {run}"));
        ended(run, log, rows.get(run).copied(), found);
    }
    for ((reader, run), events) in &heard {
        let log = read.logs.get(run).map(Vec::as_slice).unwrap_or_default();
        listened(reader, run, events, log, found);
    }
}

/// A result that was taken is the end of its call.
fn handed(read: &Read<'_>, run: &str, call: &str, value: &Value, status: u16, found: &mut Found) {
    if status != 200 {
        return;
    }
    let log = read.logs.get(run).map(Vec::as_slice).unwrap_or_default();
    let ends = |e: &&&Value| kind(e) == "tool-output-available" && text(e, "toolCallId") == call;
    let end = log.iter().find(ends).map(|event| &event["output"]);
    found.unless(end == Some(value), Promise::LostAnswer, || {
        format!("{run}: the result {value} of {call} was taken, and the log says {end:?}")
    });
}

/// Inv-F and Inv-D.
fn ended(run: &str, log: &[&Value], row: Option<(&str, i64, usize)>, found: &mut Found) {
    let end = log.last().map(|event| kind(event)).unwrap_or_default();
    found.unless(is_end(end), Promise::Unfinished, || format!("{run} stands at {end}"));
    let Some((status, last_seq, open_waits)) = row else { return };
    let agrees = end.strip_prefix("run.") == Some(status)
        && usize::try_from(last_seq).ok() == Some(log.len())
        && open_waits == 0;
    found.unless(agrees, Promise::Tables, || {
        format!(
            "{run}: the row says {status} at {last_seq} with {open_waits} waits, the log {end} at {}",
            log.len()
        )
    });
}

/// Inv-E: a reader heard the log from its first event on, each once.
fn listened(reader: &str, run: &str, heard: &[(i64, &str)], log: &[&Value], found: &mut Found) {
    for (i, (seq, name)) in heard.iter().enumerate() {
        let wanted = log.get(i).map(|event| (event["seq"].as_i64().unwrap_or_default(), kind(event)));
        if wanted != Some((*seq, name)) {
            let about = format!("{reader} of {run} heard {seq} {name} where the log has {wanted:?}");
            return found.say(Promise::Reader, about);
        }
    }
    let whole = heard.len() == log.len();
    found.unless(whole, Promise::Reader, || {
        format!("{reader} of {run} heard {} of {}", heard.len(), log.len())
    });
}
