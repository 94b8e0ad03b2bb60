//! The log of one run by itself: dense, in order, ended once.

use serde_json::Value;

use super::{Found, Promise, is_end, kind, text};

pub(super) fn check(run: &str, log: &[&Value], found: &mut Found) {
    for (i, event) in log.iter().enumerate() {
        let wanted = i64::try_from(i).unwrap_or(i64::MAX) + 1;
        if event["seq"].as_i64() != Some(wanted) {
            found.say(Promise::Gap, format!("{run}: event {wanted} is {}", event["seq"]));
            break;
        }
    }
    if let Some(end) = log.iter().position(|event| is_end(kind(event))) {
        let behind: Vec<&str> = log[end + 1..].iter().map(|event| kind(event)).collect();
        found.unless(behind.is_empty(), Promise::AfterEnd, || format!("{run}: {behind:?} after its end"));
    }
    let first = log.first().map(|event| kind(event));
    found.unless(first == Some("run.created"), Promise::Order, || format!("{run} begins with {first:?}"));
    let mut said: Vec<i64> = Vec::new();
    for event in log.iter().filter(|event| kind(event) == "message.assistant") {
        let step = event["step"].as_i64().unwrap_or(-1);
        found.unless(!said.contains(&step), Promise::SaidTwice, || format!("{run}: step {step} twice"));
        said.push(step);
    }
    calls_in_order(run, log, found);
}

/// A call is in a reply, then asked for, then ended, each at most once; an end
/// without a request is a refusal and not an answer.
fn calls_in_order(run: &str, log: &[&Value], found: &mut Found) {
    let mut replied: Vec<&str> = Vec::new();
    let mut requested: Vec<&str> = Vec::new();
    for event in log {
        let call = text(event, "toolCallId");
        match kind(event) {
            "message.assistant" => {
                let calls = event["toolCalls"].as_array().into_iter().flatten();
                replied.extend(calls.map(|call| text(call, "toolCallId")));
            }
            "tool-input-available" => {
                let known = replied.contains(&call) && !requested.contains(&call);
                found.unless(known, Promise::Order, || format!("{run}: {call} is asked for out of turn"));
                requested.push(call);
            }
            "tool-output-available" => {
                let known = requested.contains(&call);
                found.unless(known, Promise::Order, || format!("{run}: {call} ends before it is asked for"));
            }
            _ => {}
        }
    }
}
