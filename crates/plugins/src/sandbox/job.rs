//! One call: what runs, with which arguments, within which limits, and what
//! comes back.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::limits;

/// A piece of code and its arguments.
///
/// The code becomes an async function by the engine's own constructor; names
/// are checked, and code that would reach out of its function is refused.
#[derive(Debug, Clone)]
pub struct Job {
    pub(super) form: Form,
    pub(super) code: String,
    pub(super) prelude: Option<&'static str>,
    pub(super) arguments: Vec<(String, Value)>,
    pub(super) finite: bool,
    pub(super) limits: Limits,
}

/// How the code is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Form {
    /// Statements; `return` gives the result.
    Body,
    /// One expression, whose value is the result; statements if it is none.
    Formula,
}

impl Job {
    /// Runs statements; `return` gives the result, which may be a promise.
    pub fn body(code: impl Into<String>) -> Self {
        Self::new(Form::Body, code.into())
    }

    /// Runs one expression, or statements with `return` if it is none.
    pub fn formula(code: impl Into<String>) -> Self {
        Self::new(Form::Formula, code.into())
    }

    fn new(form: Form, code: String) -> Self {
        let limits = Limits::default();
        Self { form, code, prelude: None, arguments: Vec::new(), finite: false, limits }
    }

    /// One more parameter and its value. A later one of the same name wins.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let name = name.into();
        self.arguments.retain(|(known, _)| *known != name);
        self.arguments.push((name, value.into()));
        self
    }

    /// Our own code that runs first: the body of a function that returns an
    /// object, whose fields the job's code sees as names. An argument of the
    /// same name wins.
    #[must_use]
    pub const fn prelude(mut self, code: &'static str) -> Self {
        self.prelude = Some(code);
        self
    }

    /// Refuses a result that holds `NaN` or `Infinity` anywhere. JSON would say `null`.
    #[must_use]
    pub const fn finite(mut self) -> Self {
        self.finite = true;
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.bounded();
        self
    }
}

/// What bounds one call. Numbers above the gateway's own limits are lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub time_ms: u64,
    pub memory_bytes: usize,
    pub stack_bytes: usize,
    pub result_bytes: usize,
    pub console_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time_ms: limits::SANDBOX_TIME_MS,
            memory_bytes: limits::SANDBOX_MEMORY_BYTES,
            stack_bytes: limits::SANDBOX_STACK_BYTES,
            result_bytes: limits::SANDBOX_RESULT_BYTES,
            console_bytes: limits::SANDBOX_CONSOLE_BYTES,
        }
    }
}

impl Limits {
    pub(super) fn bounded(self) -> Self {
        Self {
            time_ms: self.time_ms.min(limits::SANDBOX_TIME_MAX_MS),
            memory_bytes: self.memory_bytes.min(limits::SANDBOX_MEMORY_MAX_BYTES),
            stack_bytes: self.stack_bytes.min(limits::SANDBOX_STACK_MAX_BYTES),
            result_bytes: self.result_bytes.min(limits::SANDBOX_RESULT_MAX_BYTES),
            console_bytes: self.console_bytes.min(limits::SANDBOX_CONSOLE_BYTES),
        }
    }
}

/// What a call gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub value: Value,
    /// The name of a result that JSON cannot say, such as `undefined` or `NaN`;
    /// `value` is null then.
    pub lost: Option<String>,
    pub console: Vec<ConsoleLine>,
    /// How long the code itself took.
    pub took: Duration,
}

/// One line of the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLine {
    pub level: Level,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}
