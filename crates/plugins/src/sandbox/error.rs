//! Why a call in the sandbox has no answer. Each limit has its own variant, and
//! its number is in the text.

use serde::{Deserialize, Serialize};

/// What went wrong. The first group is the code's own doing and may be told to
/// whoever wrote it; the second is the gateway's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum SandboxError {
    /// The code is no JavaScript.
    #[error("the code is not valid JavaScript: {message}")]
    Syntax { message: String },
    /// The code threw, or its promise was rejected.
    #[error("{name}: {message}")]
    Threw { name: String, message: String },
    /// The engine stopped the code at its limit.
    #[error("the code ran longer than its limit of {limit_ms} ms")]
    TimedOut { limit_ms: u64 },
    /// The code was inside an operation that cannot be stopped; its process was killed.
    #[error("the code did not stop at its limit of {limit_ms} ms and its process was killed")]
    Killed { limit_ms: u64 },
    #[error("the code used more memory than its limit of {limit_bytes} bytes")]
    Memory { limit_bytes: usize },
    #[error("the code nested its calls deeper than its stack of {limit_bytes} bytes allows")]
    Stack { limit_bytes: usize },
    #[error("the result is larger than its limit of {limit_bytes} bytes of JSON")]
    ResultTooLarge { limit_bytes: usize },
    #[error("the console got more than its limit of {limit_bytes} bytes")]
    ConsoleFlood { limit_bytes: usize },
    /// Nothing is left that could settle the promise.
    #[error("the promise never settles: no timer and no question to the gateway is open")]
    NeverSettles,
    /// The result has no form in JSON.
    #[error("the result cannot be written as JSON: {message}")]
    NotJson { message: String },
    #[error("code and arguments are {bytes} bytes, the limit is {limit_bytes}")]
    InputTooLarge { bytes: usize, limit_bytes: usize },
    /// A parameter is not a name that JavaScript allows.
    #[error("{name:?} is not a name of a parameter")]
    BadName { name: String },

    /// The process ended without an answer.
    #[error("the sandbox process ended without an answer ({how})")]
    Died { how: String },
    #[error("the sandbox is busy: {limit} calls wait already")]
    Busy { limit: usize },
    #[error("no sandbox process could be started: {why}")]
    Unavailable { why: String },
}

impl SandboxError {
    /// Whether the process may be in a state that the next call should not meet.
    pub(super) const fn spoils(&self) -> bool {
        !matches!(
            self,
            Self::Syntax { .. }
                | Self::Threw { .. }
                | Self::NeverSettles
                | Self::NotJson { .. }
                | Self::InputTooLarge { .. }
                | Self::BadName { .. }
        )
    }
}
