//! Calls: each ends once, and what happened outside fits its end.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Effect, Found, Promise, Read, is_end, kind, text};
use crate::history::Nature;

pub(super) fn check(read: &Read<'_>, found: &mut Found) {
    let mut logged: BTreeSet<&str> = BTreeSet::new();
    for (run, log) in &read.logs {
        let ended = log.iter().any(|event| is_end(kind(event)));
        let mut asked: BTreeSet<&str> = BTreeSet::new();
        for event in log {
            let replied = event["toolCalls"].as_array().into_iter().flatten();
            asked.extend(replied.map(|call| text(call, "toolCallId")).filter(|id| !id.is_empty()));
            if kind(event) == "tool-input-available" {
                asked.insert(text(event, "toolCallId"));
            }
        }
        for call in asked {
            let ends: Vec<&&Value> =
                log.iter().filter(|e| ends_call(e) && text(e, "toolCallId") == call).collect();
            match ends.as_slice() {
                [] if ended => found.say(Promise::LostOutcome, format!("{run}: {call} has no end")),
                [] => {}
                [end] => one(read, run, log, call, end, found),
                more => {
                    found.say(Promise::SecondOutcome, format!("{run}: {call} ended {} times", more.len()))
                }
            }
            let requested =
                log.iter().any(|e| kind(e) == "tool-input-available" && text(e, "toolCallId") == call);
            if requested {
                logged.insert(call);
            }
        }
    }
    for call in read.effects.keys().filter(|call| !logged.contains(**call)) {
        found.say(Promise::UnloggedEffect, format!("{call} happened, and no log has asked for it"));
    }
}

fn ends_call(event: &Value) -> bool {
    matches!(kind(event), "tool-output-available" | "tool-error")
}

/// The one end of a call against what the far side saw of it.
fn one(read: &Read<'_>, run: &str, log: &[&Value], call: &str, end: &Value, found: &mut Found) {
    let Some(nature) = read.tools.get(text(end, "toolName")) else { return };
    let outcome = text(end, "outcome");
    let effects = read.effects.get(call).map(Vec::as_slice).unwrap_or_default();
    let real = effects.iter().filter(|effect| !effect.repeat).count();
    match nature {
        Nature::Outside => {
            let arrived = effects.len();
            found.unless(arrived <= 1, Promise::DoubledEffect, || {
                format!("{run}: {call} happened {arrived} times")
            });
        }
        Nature::Repeatable => {
            found
                .unless(real <= 1, Promise::DoubledEffect, || format!("{run}: {call} happened {real} times"));
        }
        Nature::Client if outcome == "ok" => {
            let seen = text(&end["output"], "seen");
            found.unless(seen == call, Promise::WrongCall, || {
                format!("{run}: {call} ended with the result of {seen}")
            });
        }
        Nature::Client | Nature::Prebuilt | Nature::Timer => {}
    }
    if matches!(nature, Nature::Outside | Nature::Repeatable) {
        let lost = outcome == "ok" && real == 0;
        found.unless(!lost, Promise::LostEffect, || format!("{run}: {call} is ok and never happened"));
        approved(run, log, call, real, found);
    }
    if outcome == "uncertain" && !doubtful(read, log, call, end, effects) {
        found.say(Promise::NeedlessDoubt, format!("{run}: {call} is uncertain, and nothing was broken"));
    }
}

/// A call that was asked about happens only behind a yes.
fn approved(run: &str, log: &[&Value], call: &str, real: usize, found: &mut Found) {
    let about = |event: &&&Value, wanted: &str| kind(event) == wanted && text(event, "toolCallId") == call;
    let asked = log.iter().any(|event| about(&event, "tool-approval-request"));
    let yes = log.iter().any(|event| about(&event, "wait.answered") && text(event, "decision") == "allow");
    let unasked = real > 0 && asked && !yes;
    found.unless(!unasked, Promise::UnapprovedEffect, || format!("{run}: {call} happened without a yes"));
}

/// Something was broken between the request and the end: a fault, or an answer
/// that the far side never gave. A broken moment is felt for a lease longer.
fn doubtful(read: &Read<'_>, log: &[&Value], call: &str, end: &Value, effects: &[Effect]) -> bool {
    const FELT_MS: i64 = 10_000;
    if effects.iter().any(|effect| effect.cut) {
        return true;
    }
    let begin = log.iter().find(|e| kind(e) == "tool-input-available" && text(e, "toolCallId") == call);
    let (Some(from), Some(to)) = (begin.and_then(|e| at(e)), at(end)) else { return false };
    read.faults.iter().any(|(broken, mended)| *broken <= to && mended + FELT_MS >= from)
}

fn at(event: &Value) -> Option<i64> {
    serde_json::from_value::<toolyard_protocol::Timestamp>(event["ts"].clone()).ok().map(|ts| ts.millis())
}
