//! Named places where a test build dies or hangs. Compiled away
//! without the feature `failpoints`.
//!
//! `TOOLYARD_FAILPOINT=append.after_commit:kill:3` kills the process with
//! SIGKILL at the third time it comes by; `hang` stops it there for ever.

/// All names, for tests that walk them. A name that is hit and not listed
/// here ends the process with a message, so the list cannot go stale.
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
    "submit.before_response",
    "pause.after_commit",
    "expiry.after_commit",
    "cancel.after_commit",
    "finish.before_commit",
    "finish.after_commit",
    "release.after_commit",
    "renew.before",
    "idempotency.after_commit",
    "group.mid_savepoint",
    "group.before_commit",
    "group.after_commit",
    "migrate.mid",
];

/// Marks a place. Does nothing without the feature.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        $crate::failpoint::reach($name);
    };
}

#[cfg(feature = "failpoints")]
pub use active::reach;

#[cfg(feature = "failpoints")]
mod active {
    use std::collections::HashMap;
    use std::sync::{Mutex, OnceLock, PoisonError};

    struct Plan {
        name: String,
        deed: String,
        nth: u32,
    }

    fn plan() -> Option<&'static Plan> {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        PLAN.get_or_init(|| {
            let text = std::env::var("TOOLYARD_FAILPOINT").ok()?;
            let mut words = text.split(':');
            let name = words.next()?.to_owned();
            let deed = words.next().unwrap_or("kill").to_owned();
            let nth = words.next().and_then(|n| n.parse().ok()).unwrap_or(1);
            Some(Plan { name, deed, nth })
        })
        .as_ref()
    }

    fn hit(name: &str) -> Option<&'static Plan> {
        static COUNTS: OnceLock<Mutex<HashMap<String, u32>>> = OnceLock::new();
        let plan = plan()?;
        if plan.name != name {
            return None;
        }
        let counts = COUNTS.get_or_init(Mutex::default);
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        (*count == plan.nth).then_some(plan)
    }

    /// Comes by a place: dies or hangs there if the plan says so.
    pub fn reach(name: &str) {
        if !super::NAMES.contains(&name) {
            eprintln!("failpoint {name} is not in the list");
            std::process::exit(70);
        }
        match hit(name).map(|p| p.deed.as_str()) {
            Some("kill") => {
                let me = rustix::process::getpid();
                let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
                loop {
                    std::thread::park();
                }
            }
            Some("hang") => loop {
                std::thread::park();
            },
            Some(_) | None => {}
        }
    }
}
