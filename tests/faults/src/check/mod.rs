//! Which promises a history breaks. One function per promise; a complaint names
//! the promise, so that a test can say which one must be found.

mod calls;
mod order;
mod promises;
mod refusals;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::history::{History, Nature, Record};

/// Names the promises once: as an enum, and as the list of all of them.
macro_rules! promises {
    ($($(#[$what:meta])* $name:ident,)*) => {
        /// A broken promise.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Promise {
            $($(#[$what])* $name,)*
        }
        impl Promise {
            /// All of them: a test spoils a history for each.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

promises! {
    /// Inv-C: the numbers of a run's events are 1, 2, 3, …
    Gap,
    /// Nothing follows the end of a run, and it ends once.
    AfterEnd,
    /// A step is said once.
    SaidTwice,
    /// A call is asked for before it ends, and once.
    Order,
    /// Inv-A: every call of a run that ended has an end.
    LostOutcome,
    /// Inv-A: a call ends once.
    SecondOutcome,
    /// A result that was taken is the end of its call, and of no other.
    LostAnswer,
    /// The end of a client's call is what that client handed in.
    WrongCall,
    /// Inv-B: an effect that must not happen twice did not.
    DoubledEffect,
    /// Inv-B: what ended ok did happen.
    LostEffect,
    /// Nothing happens outside for a call that is not in the log.
    UnloggedEffect,
    /// Nothing that needs a yes happens without one.
    UnapprovedEffect,
    /// A call is uncertain only if something broke while it ran.
    NeedlessDoubt,
    /// Inv-D: the tables say what the log says.
    Tables,
    /// Inv-E: every reader hears the log, in order, without a gap or a repeat.
    Reader,
    /// Inv-F: everything ends when nothing is broken any more.
    Unfinished,
    /// A request that was answered has its run, and the same key the same run.
    LostRequest,
    /// Every run was asked for.
    UnaskedRun,
    /// A prebuilt tool and a due plan happen exactly once.
    KeptCount,
    /// D10: who asks is not refused for longer than something is away, and a
    /// little more.
    LongRefusal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    pub promise: Promise,
    pub about: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.about)
    }
}

/// How faults of Redis begin: they excuse nothing.
pub(crate) const REDIS: &str = "redis:";

/// What the complaints are collected in.
#[derive(Debug, Default)]
struct Found(Vec<Complaint>);

impl Found {
    fn say(&mut self, promise: Promise, about: impl Into<String>) {
        self.0.push(Complaint { promise, about: about.into() });
    }
    fn unless(&mut self, holds: bool, promise: Promise, about: impl FnOnce() -> String) {
        if !holds {
            self.say(promise, about());
        }
    }
}

/// A history sorted by what it is about.
#[derive(Debug, Default)]
struct Read<'h> {
    logs: BTreeMap<&'h str, Vec<&'h Value>>,
    tools: HashMap<&'h str, Nature>,
    effects: BTreeMap<&'h str, Vec<Effect>>,
    /// What breaks a promise to clients. That Redis is away must not be felt.
    faults: Vec<(i64, i64)>,
}

#[derive(Debug, Clone, Copy)]
struct Effect {
    repeat: bool,
    cut: bool,
}

impl<'h> Read<'h> {
    fn of(history: &'h History) -> Self {
        let mut read = Self::default();
        for record in &history.0 {
            match record {
                Record::Event { run, data } => read.logs.entry(run).or_default().push(data),
                Record::Tool { name, nature } => drop(read.tools.insert(name, *nature)),
                Record::Effect { call, repeat, cut, .. } => {
                    let effect = Effect { repeat: *repeat, cut: *cut };
                    read.effects.entry(call).or_default().push(effect);
                }
                Record::Fault { what, from, to } if !what.starts_with(REDIS) => {
                    read.faults.push((*from, *to));
                }
                _ => {}
            }
        }
        read
    }
}

/// Reads a whole history. No complaint means that every promise held.
pub fn check(history: &History) -> Vec<Complaint> {
    let read = Read::of(history);
    let mut found = Found::default();
    for (run, log) in &read.logs {
        order::check(run, log, &mut found);
    }
    calls::check(&read, &mut found);
    promises::check(history, &read, &mut found);
    refusals::check(history, &read, &mut found);
    found.0
}

fn text<'v>(event: &'v Value, name: &str) -> &'v str {
    event[name].as_str().unwrap_or_default()
}

fn kind(event: &Value) -> &str {
    text(event, "type")
}

fn is_end(kind: &str) -> bool {
    matches!(kind, "run.completed" | "run.failed" | "run.canceled")
}
