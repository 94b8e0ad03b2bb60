//! What one call keeps beside the engine: its deadline, its console, its timers
//! and its open questions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use toolyard_protocol::limits::{SANDBOX_ASKS, SANDBOX_TIMERS};

use crate::sandbox::error::SandboxError;
use crate::sandbox::job::{ConsoleLine, Level, Limits};

/// What a line of the console counts beside its text, so that empty ones count too.
const LINE: usize = 16;

#[derive(Debug, Default)]
pub(super) struct State {
    limits: Cell<Limits>,
    deadline: Cell<Option<Instant>>,
    /// The limit that was broken: from here on no code runs.
    broken: RefCell<Option<SandboxError>>,
    console: RefCell<Vec<ConsoleLine>>,
    written: Cell<usize>,
    timers: RefCell<BTreeMap<(Instant, u32), Option<Duration>>>,
    open_asks: Cell<usize>,
    host: Cell<bool>,
}

impl State {
    pub(super) fn begin(&self, limits: Limits, host: bool) {
        self.limits.set(limits);
        self.host.set(host);
        // What an earlier call of the same runtime wrote or asked is not this one's.
        self.written.set(0);
        self.open_asks.set(0);
        self.deadline.set(Some(Instant::now() + Duration::from_millis(limits.time_ms)));
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits.get()
    }

    /// The engine asks now and then whether to go on.
    pub(super) fn must_stop(&self) -> bool {
        if self.broken.borrow().is_some() {
            return true;
        }
        let late = self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline);
        if late {
            self.break_limit(SandboxError::TimedOut { limit_ms: self.limits.get().time_ms });
        }
        late
    }

    pub(super) fn break_limit(&self, error: SandboxError) {
        self.broken.borrow_mut().get_or_insert(error);
    }

    pub(super) fn broken(&self) -> Option<SandboxError> {
        self.broken.borrow().clone()
    }

    /// Until the deadline.
    pub(super) fn left(&self) -> Duration {
        self.deadline.get().map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Says no when the console is full; the call ends then.
    pub(super) fn write(&self, level: Level, text: String) -> bool {
        let written = self.written.get().saturating_add(text.len() + LINE);
        let limit_bytes = self.limits.get().console_bytes;
        if written > limit_bytes {
            self.break_limit(SandboxError::ConsoleFlood { limit_bytes });
            return false;
        }
        self.written.set(written);
        self.console.borrow_mut().push(ConsoleLine { level, text });
        true
    }

    pub(super) fn take_console(&self) -> Vec<ConsoleLine> {
        self.console.take()
    }

    /// Sets a timer. Says no when there are too many.
    pub(super) fn set_timer(&self, id: u32, after: Duration, repeats: bool) -> bool {
        let mut timers = self.timers.borrow_mut();
        if timers.len() >= SANDBOX_TIMERS {
            return false;
        }
        timers.insert((Instant::now() + after, id), repeats.then_some(after));
        true
    }

    pub(super) fn clear_timer(&self, id: u32) {
        self.timers.borrow_mut().retain(|(_, known), _| *known != id);
    }

    /// When the next timer is due.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.borrow().keys().next().map(|(at, _)| *at)
    }

    /// The timer that is due, if one is. A repeating one is set again.
    pub(super) fn due_timer(&self) -> Option<u32> {
        let mut timers = self.timers.borrow_mut();
        let key = timers.keys().next().copied().filter(|(at, _)| *at <= Instant::now())?;
        if let Some(Some(every)) = timers.remove(&key) {
            timers.insert((Instant::now() + every, key.1), Some(every));
        }
        Some(key.1)
    }

    /// Opens a question. Says no when nobody answers or too many are open.
    pub(super) fn open_ask(&self) -> Result<(), String> {
        if !self.host.get() {
            return Err("nobody answers questions of this call".to_owned());
        }
        if self.open_asks.get() >= SANDBOX_ASKS {
            return Err(format!("more than {SANDBOX_ASKS} questions are open"));
        }
        self.open_asks.set(self.open_asks.get() + 1);
        Ok(())
    }

    pub(super) fn close_ask(&self) {
        self.open_asks.set(self.open_asks.get().saturating_sub(1));
    }

    pub(super) fn has_open_asks(&self) -> bool {
        self.open_asks.get() > 0
    }
}
