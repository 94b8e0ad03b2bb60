//! A checker that never complains proves nothing: a history that is fine is
//! spoiled in one way after the other, and each time the checker must say which
//! promise is broken.

use serde_json::{Value, json};
use toolyard_faults::check::{Promise, check};
use toolyard_faults::history::{History, Nature, Record};
use toolyard_faults::sim::{Bug, play};

/// The first play that has all that the spoilers need.
fn fine() -> History {
    let wanted = |h: &History| {
        let ok = |nature: Nature| of_nature(h, nature).is_some();
        let has = |of: fn(&Record) -> bool| h.count(of) > 0;
        ok(Nature::Outside)
            && ok(Nature::Client)
            && approved(h).is_some()
            && has(|r| matches!(r, Record::Handed { status: 200, .. }))
            && has(|r| matches!(r, Record::Canceled { status: 200, .. }))
    };
    let found = (1..200).map(|seed| play(seed, 600, Bug::None).history).find(wanted);
    found.expect("one of two hundred plays has everything")
}

fn event(record: &Record) -> Option<&Value> {
    if let Record::Event { data, .. } = record { Some(data) } else { None }
}

fn is(record: &Record, kind: &str) -> bool {
    event(record).is_some_and(|data| data["type"] == kind)
}

fn at(history: &History, kind: &str) -> usize {
    history.0.iter().position(|r| is(r, kind)).unwrap_or_else(|| panic!("no {kind}"))
}

/// The place of an end of a call with such a tool that is ok.
fn of_nature(history: &History, nature: Nature) -> Option<usize> {
    let tools = history.0.iter().filter_map(|r| match r {
        Record::Tool { name, nature: n } if *n == nature => Some(name.as_str()),
        _ => None,
    });
    let tools: Vec<&str> = tools.collect();
    history.0.iter().position(|r| {
        is(r, "tool-output-available")
            && event(r).is_some_and(|data| tools.contains(&data["toolName"].as_str().unwrap()))
    })
}

/// The place of the yes to a call that happened.
fn approved(history: &History) -> Option<usize> {
    let effects: Vec<&str> = effects(history);
    history.0.iter().position(|r| {
        is(r, "wait.answered")
            && event(r).is_some_and(|data| {
                data["decision"] == "allow" && effects.contains(&data["toolCallId"].as_str().unwrap())
            })
    })
}

fn effects(history: &History) -> Vec<&str> {
    let effects = history.0.iter().filter_map(|r| match r {
        Record::Effect { call, .. } => Some(call.as_str()),
        _ => None,
    });
    effects.collect()
}

fn change(history: &mut History, at: usize, to: impl FnOnce(&mut Value)) {
    let Record::Event { data, .. } = &mut history.0[at] else { panic!("no event at {at}") };
    to(data);
}

/// The call of an event.
fn call(history: &History, at: usize) -> String {
    event(&history.0[at]).unwrap()["toolCallId"].as_str().unwrap().to_owned()
}

/// Numbers the events of all runs anew, so that only the intended fault is left.
fn renumber(history: &mut History) {
    let mut next = std::collections::HashMap::<String, i64>::new();
    for record in &mut history.0 {
        if let Record::Event { run, data } = record {
            let seq = next.entry(run.clone()).or_insert(0);
            *seq += 1;
            data["seq"] = json!(*seq);
        }
    }
}

fn complains(history: &History, promise: Promise, how: &str) {
    let found = check(history);
    assert!(found.iter().any(|c| c.promise == promise), "{how}: {found:#?}");
}

/// Each promise with ways to break it in a history that is fine.
type Spoiler<'s> = &'s mut dyn FnMut(Promise, &str, &dyn Fn(&mut History));

/// Spoils a history in one way after the other; each must be found and named.
fn all_are_found(ways: fn(Spoiler<'_>)) {
    let fine = fine();
    assert_eq!(check(&fine), []);
    ways(&mut |promise, how, spoil| {
        let mut history = fine.clone();
        spoil(&mut history);
        complains(&history, promise, how);
    });
}

#[test]
fn every_promise_can_be_broken() {
    let mut broken = Vec::new();
    for ways in [in_a_log, outside_the_log, of_readers] {
        ways(&mut |promise, _, _| broken.push(promise));
    }
    let never: Vec<_> = Promise::ALL.iter().filter(|promise| !broken.contains(promise)).collect();
    assert!(never.is_empty(), "no history is spoiled for {never:?}");
}

#[test]
fn seeded_bugs_in_a_log_are_found() {
    all_are_found(in_a_log);
}

#[test]
fn seeded_bugs_outside_the_log_are_found() {
    all_are_found(outside_the_log);
}

#[test]
fn seeded_bugs_of_readers_are_found() {
    all_are_found(of_readers);
}

fn in_a_log(spoil: Spoiler<'_>) {
    spoil(Promise::Gap, "an event is missing", &|h| drop(h.0.remove(at(h, "message.assistant"))));
    spoil(Promise::Gap, "two events change places", &|h| {
        let i = at(h, "run.started");
        h.0.swap(i, i + 1);
    });
    spoil(Promise::AfterEnd, "an event follows the end", &|h| {
        let i = h.0.iter().position(|r| is(r, "run.completed")).unwrap();
        let mut late = h.0[i].clone();
        if let Record::Event { data, .. } = &mut late {
            data["type"] = json!("run.started");
        }
        h.0.insert(i + 1, late);
        renumber(h);
    });
    spoil(Promise::SaidTwice, "a step is said twice", &|h| {
        let i = at(h, "message.assistant");
        h.0.insert(i + 1, h.0[i].clone());
        renumber(h);
    });
    spoil(Promise::LostOutcome, "an outcome is dropped", &|h| {
        h.0.remove(of_nature(h, Nature::Client).unwrap());
        renumber(h);
    });
    spoil(Promise::SecondOutcome, "an outcome comes twice", &|h| {
        let i = of_nature(h, Nature::Outside).unwrap();
        h.0.insert(i + 1, h.0[i].clone());
        renumber(h);
    });
    spoil(Promise::Order, "an outcome comes before its request", &|h| {
        let i = of_nature(h, Nature::Outside).unwrap();
        let id = call(h, i);
        let asked = h
            .0
            .iter()
            .position(|r| is(r, "tool-input-available") && event(r).unwrap()["toolCallId"] == id.as_str());
        let end = h.0.remove(i);
        h.0.insert(asked.unwrap(), end);
        renumber(h);
    });
    spoil(Promise::WrongCall, "a result lands on another call", &|h| {
        let i = of_nature(h, Nature::Client).unwrap();
        change(h, i, |data| data["output"]["seen"] = json!("call_of_somebody_else"));
    });
    spoil(Promise::Unfinished, "a run does not end", &|h| {
        let i = at(h, "run.completed");
        h.0.remove(i);
    });
}

fn outside_the_log(spoil: Spoiler<'_>) {
    let sent = |h: &History| {
        let id = call(h, of_nature(h, Nature::Outside).unwrap());
        h.0.iter().position(|r| matches!(r, Record::Effect { call, .. } if *call == id)).unwrap()
    };
    spoil(Promise::DoubledEffect, "an effect happens twice", &|h| h.0.push(h.0[sent(h)].clone()));
    spoil(Promise::LostEffect, "an effect never happened", &|h| drop(h.0.remove(sent(h))));
    spoil(Promise::UnloggedEffect, "an effect without a call", &|h| {
        let call = "call_nobody_made".to_owned();
        h.push(Record::Effect { call, at: 0, repeat: false, cut: false });
    });
    spoil(Promise::UnapprovedEffect, "an effect without a yes", &|h| {
        let i = approved(h).unwrap();
        change(h, i, |data| data["decision"] = json!("deny"));
    });
    spoil(Promise::NeedlessDoubt, "doubt without a fault", &|h| {
        let i = of_nature(h, Nature::Outside).unwrap();
        change(h, i, |data| {
            data["type"] = json!("tool-error");
            data["outcome"] = json!("uncertain");
        });
        h.0.retain(|r| !matches!(r, Record::Fault { .. }));
    });
    spoil(Promise::LostAnswer, "a result that was taken is another", &|h| {
        for record in &mut h.0 {
            if let Record::Handed { value, status: 200, .. } = record {
                *value = json!({"seen": "what the client saw"});
            }
        }
    });
    spoil(Promise::LostAnswer, "a cancel is written twice", &|h| {
        let i = at(h, "run.canceling");
        h.0.insert(i + 1, h.0[i].clone());
        renumber(h);
    });
    spoil(Promise::Tables, "a row says something else", &|h| {
        for record in &mut h.0 {
            if let Record::Row { last_seq, .. } = record {
                *last_seq += 1;
            }
        }
    });
    spoil(Promise::Tables, "a wait of an ended run is open", &|h| {
        for record in &mut h.0 {
            if let Record::Row { open_waits, .. } = record {
                *open_waits = 1;
            }
        }
    });
    spoil(Promise::LostRequest, "a run that was answered is gone", &|h| {
        h.push(Record::Made { key: "k".to_owned(), run: "run_gone".to_owned() });
    });
    spoil(Promise::LostRequest, "one key makes two runs", &|h| {
        let runs: Vec<String> = h.runs().into_iter().map(str::to_owned).collect();
        for run in runs.into_iter().take(2) {
            h.push(Record::Made { key: "k".to_owned(), run });
        }
    });
    spoil(Promise::UnaskedRun, "a run that nobody asked for", &|h| {
        h.0.retain(|r| !matches!(r, Record::Made { .. }));
    });
    spoil(Promise::KeptCount, "a goal is made twice", &|h| {
        h.push(Record::Kept { mark: "goal".to_owned(), count: 2, wanted: 1 });
    });
    let refused = |from: i64, to: i64| Record::Refused { asked: "GET /".to_owned(), status: 503, from, to };
    spoil(Promise::LongRefusal, "a refusal while nothing is away", &|h| h.push(refused(0, 0)));
    spoil(Promise::LongRefusal, "a refusal that Redis is blamed for", &|h| {
        h.push(Record::Fault { what: "redis: kill -9".to_owned(), from: 0, to: 9 });
        h.push(refused(1, 2));
    });
    spoil(Promise::LongRefusal, "a refusal that outlasts what is away", &|h| {
        h.push(Record::Fault { what: "crash of the database".to_owned(), from: 0, to: 1_000 });
        h.push(refused(500, 6_001));
    });
}

fn of_readers(spoil: Spoiler<'_>) {
    let heard = |h: &History| -> Vec<usize> {
        (0..h.0.len()).filter(|i| matches!(h.0[*i], Record::Read { .. })).collect()
    };
    spoil(Promise::Reader, "a reader misses an event", &|h| drop(h.0.remove(heard(h)[0])));
    spoil(Promise::Reader, "a reader hears an event twice", &|h| {
        let first = heard(h)[0];
        h.0.insert(first, h.0[first].clone());
    });
    spoil(Promise::Reader, "a reader never hears the end", &|h| {
        drop(h.0.remove(*heard(h).last().unwrap()));
    });
    spoil(Promise::Reader, "a reader hears something else", &|h| {
        let first = heard(h)[0];
        if let Record::Read { name, .. } = &mut h.0[first] {
            *name = "run.failed".to_owned();
        }
    });
}

/// What an outage excuses, it excuses: no complaint is the rule.
#[test]
fn d10_a_refusal_within_an_outage_and_a_little_more_is_fine() {
    let mut history = fine();
    history.push(Record::Fault { what: "crash of the database".to_owned(), from: 0, to: 1_000 });
    history.push(Record::Refused { asked: "GET /".to_owned(), status: 503, from: 500, to: 5_900 });
    assert_eq!(check(&history), []);
}

/// A history that is written down and read again is judged in the same way.
#[test]
fn a_history_is_kept_in_a_file() {
    let history = play(3, 300, Bug::None).history;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    history.write(&file).unwrap();
    assert_eq!(History::read(&file).unwrap(), history);
}
