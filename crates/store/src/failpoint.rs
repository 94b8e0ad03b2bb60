//! Named places where a test build dies, hangs, fails or loses an answer.
//! Nothing of it is left without the feature `failpoints`.
//!
//! `TOOLYARD_FAILPOINT=append.after_commit:kill:3` does it once, at the third
//! time the process comes by. The deeds:
//!
//! | deed | what happens | where |
//! |---|---|---|
//! | `kill` | the process dies by SIGKILL | everywhere |
//! | `hang` | its thread stands still for ever | everywhere |
//! | `error` | the operation is refused before it takes effect | before a commit or a call |
//! | `lost_reply` | it has taken effect, but its caller hears "unavailable" | after a commit |
//!
//! `TOOLYARD_FAILPOINT_DICE=7:10` lets chance decide at every commit instead: with
//! the seed 7, ten of a thousand fail before it (unavailable, or no room) and as
//! many lose their answer after it.

use crate::error::StoreError;

/// All names that runs of any kind come by, for tests that walk them. A name that is hit and
/// not listed here ends the process with a message, so the list cannot go stale.
pub const NAMES: &[&str] = &[
    "start.before_commit",
    "start.after_commit",
    "claim.after_commit",
    "model.before_call",
    "model.first_byte",
    "model.after_stream",
    "append.before_commit",
    "append.after_commit",
    "feed.after_publish",
    "tool.before_start",
    "tool.after_effect",
    "tool.before_outcome_commit",
    "submit.before_commit",
    "submit.after_commit",
    "pause.after_commit",
    "expiry.after_commit",
    "cancel.after_commit",
    "finish.before_commit",
    "finish.after_commit",
    "release.after_commit",
    "renew.before",
    "group.mid_savepoint",
    "group.before_commit",
    "group.after_commit",
    "migrate.mid",
];

/// The names of places that only runs with plugins come by: once for each look
/// that the plugins take, at a prompt, at words, at a reply and at a result.
pub const OF_HOOKS: &[&str] = &["hook.before_run", "hook.after_run"];

/// The names of places that only calls of MCP servers come by, and tools that
/// bring files: those are commits of their own, before the one of the outcome.
pub const OF_MCP: &[&str] = &[
    "mcp.before_call",
    "mcp.after_answer",
    "mcp.before_ticket_commit",
    "mcp.after_ticket_commit",
    "file.before_commit",
    "file.after_commit",
];

/// The names of places that a parcel comes by on its way out of the outbox.
pub const OF_DELIVERIES: &[&str] = &[
    "take.before_commit",
    "take.after_commit",
    "delivery.before_attempt",
    "delivery.after_attempt",
    "settle.before_commit",
    "settle.after_commit",
];

/// The names of places that no run comes by: what is removed, piece by piece.
pub const OF_REMOVALS: &[&str] = &["removal.after_commit", "retire.after_commit", "sweep.after_commit"];

/// Every name there is.
pub fn all() -> impl Iterator<Item = &'static str> {
    [NAMES, OF_HOOKS, OF_MCP, OF_DELIVERIES, OF_REMOVALS].into_iter().flatten().copied()
}

fn is_known(name: &str) -> bool {
    all().any(|known| known == name)
}

/// Why a deed cannot be done at a place, or nothing if it can.
pub fn objection(name: &str, deed: &str) -> Option<String> {
    if !is_known(name) {
        return Some(format!("there is no failpoint {name}"));
    }
    let after_commit = name.ends_with(".after_commit");
    match deed {
        "kill" | "hang" => None,
        "error" if name.ends_with(".before_commit") || name == "model.before_call" => None,
        "error" if after_commit => {
            Some(format!("{name} cannot fail: the commit is done, only its answer can be lost (lost_reply)"))
        }
        "error" => Some(format!("{name} cannot fail: nothing is asked of the database or a vendor there")),
        "lost_reply" if after_commit => None,
        "lost_reply" => Some(format!("{name} has no answer to lose: nothing has been committed there")),
        other => Some(format!("there is no deed {other}: it is kill, hang, error or lost_reply")),
    }
}

/// Marks a place where the process can die or hang. Does nothing without the feature.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::reach($name);
    };
}

/// Marks a place that can also fail, or lose the answer of what was done.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn pass(_: &'static str) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(feature = "failpoints")]
pub use active::{pass, reach};

#[cfg(feature = "failpoints")]
mod active {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use super::{StoreError, is_known, objection};

    struct Plan {
        name: String,
        deed: String,
        nth: u32,
        passed: AtomicU32,
    }

    fn plan() -> Option<&'static Plan> {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        PLAN.get_or_init(|| {
            let text = std::env::var("TOOLYARD_FAILPOINT").ok()?;
            let mut words = text.split(':');
            let name = words.next().unwrap_or_default().to_owned();
            let deed = words.next().unwrap_or("kill").to_owned();
            let nth = words.next().unwrap_or("1").parse().unwrap_or(0);
            let number = (nth == 0 || words.next().is_some())
                .then(|| format!("{text} is not name:deed:number, with a number from 1 on"));
            if let Some(why) = objection(&name, &deed).or(number) {
                refuse(&why);
            }
            Some(Plan { name, deed, nth, passed: AtomicU32::new(0) })
        })
        .as_ref()
    }

    /// A plan that cannot be carried out would make a test that proves nothing.
    fn refuse(why: &str) -> ! {
        eprintln!("TOOLYARD_FAILPOINT: {why}");
        std::process::exit(70);
    }

    /// The deed to be done here and now. Every passing is said, for tests that
    /// count.
    fn due(name: &str) -> Option<&'static str> {
        if !is_known(name) {
            refuse(&format!("there is no failpoint {name}"));
        }
        let plan = plan()?;
        eprintln!("failpoint {name} is passed");
        if plan.name != name {
            return None;
        }
        if plan.passed.fetch_add(1, Ordering::SeqCst) + 1 != plan.nth {
            return None;
        }
        eprintln!("failpoint {name}: {}", plan.deed);
        Some(&plan.deed)
    }

    struct Dice {
        seed: u64,
        per_mille: u64,
        thrown: AtomicU64,
    }

    fn dice() -> Option<&'static Dice> {
        static DICE: OnceLock<Option<Dice>> = OnceLock::new();
        DICE.get_or_init(|| {
            let text = std::env::var("TOOLYARD_FAILPOINT_DICE").ok()?;
            let numbers = text.split_once(':').map(|(seed, rate)| (seed.parse(), rate.parse()));
            let Some((Ok(seed), Ok(per_mille))) = numbers else {
                refuse(&format!("TOOLYARD_FAILPOINT_DICE: {text} is not seed:per_mille"));
            };
            Some(Dice { seed, per_mille, thrown: AtomicU64::new(0) })
        })
        .as_ref()
    }

    /// What chance has decided for a place where a commit can fail.
    fn chance(name: &str) -> Option<StoreError> {
        let (before, after) = (name.ends_with(".before_commit"), name.ends_with(".after_commit"));
        let dice = dice().filter(|_| before || after)?;
        let nth = dice.thrown.fetch_add(1, Ordering::SeqCst);
        // SplitMix64: every throw depends on the seed and its number alone.
        let mut mixed = dice.seed.wrapping_add(nth.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        if mixed % 1000 >= dice.per_mille {
            return None;
        }
        eprintln!("failpoint {name}: by chance");
        let why = format!("failpoint {name}: by chance").into();
        let full = before && (mixed >> 32).is_multiple_of(4);
        Some(if full { StoreError::Full(why) } else { StoreError::Unavailable(why) })
    }

    fn stand_still() -> ! {
        loop {
            std::thread::park();
        }
    }

    /// Comes by a place that can also fail.
    pub fn pass(name: &'static str) -> Result<(), StoreError> {
        match due(name) {
            Some("kill") => {
                let me = rustix::process::getpid();
                let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
                stand_still()
            }
            Some("hang") => stand_still(),
            Some(deed) => Err(StoreError::Unavailable(format!("failpoint {name}: {deed}").into())),
            None => chance(name).map_or(Ok(()), Err),
        }
    }

    /// Comes by a place where the process can only die or hang.
    pub fn reach(name: &'static str) {
        if pass(name).is_err() {
            refuse(&format!("{name} cannot fail where it stands"));
        }
    }
}
