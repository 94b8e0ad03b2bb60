//! Why a server does not work, and what the host may do about it.

use std::time::Duration;

/// One fault. Its text is for the operator: it may quote the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// A later try may work.
    Passing {
        /// Nothing of the request reached the server.
        never_sent: bool,
        /// The server asks to stay away for so long.
        after: Option<Duration>,
    },
    /// A later try will not work before somebody changes something.
    Lasting,
    /// A user must log in.
    Login { challenge: Option<String> },
}

impl Fault {
    pub(crate) fn passing(text: impl Into<String>) -> Self {
        Self { kind: FaultKind::Passing { never_sent: false, after: None }, text: text.into() }
    }
    pub(crate) fn never_sent(text: impl Into<String>) -> Self {
        Self { kind: FaultKind::Passing { never_sent: true, after: None }, text: text.into() }
    }
    pub(crate) fn lasting(text: impl Into<String>) -> Self {
        Self { kind: FaultKind::Lasting, text: text.into() }
    }
    pub(crate) fn login(challenge: Option<String>) -> Self {
        Self { kind: FaultKind::Login { challenge }, text: "the server asks for a login".to_owned() }
    }
    /// An HTTP status that is no answer.
    pub(crate) fn status(status: u16, after: Option<Duration>, body: &str) -> Self {
        let shown: String = body.chars().filter(|c| !c.is_control()).take(200).collect();
        let text = if shown.is_empty() {
            format!("the server answered HTTP {status}")
        } else {
            format!("the server answered HTTP {status}: {shown}")
        };
        match status {
            // Refused before anything was done.
            429 | 503 => Self { kind: FaultKind::Passing { never_sent: status == 429, after }, text },
            408 | 425 | 500..=599 => Self::passing(text),
            _ => Self::lasting(text),
        }
    }
    #[must_use]
    pub(crate) fn with_last_words(mut self, words: &str) -> Self {
        if !words.is_empty() {
            self.text = format!("{}; its last words: {words}", self.text);
        }
        self
    }
    pub(crate) const fn was_never_sent(&self) -> bool {
        matches!(
            self.kind,
            FaultKind::Passing { never_sent: true, .. } | FaultKind::Login { .. } | FaultKind::Lasting
        )
    }
}
