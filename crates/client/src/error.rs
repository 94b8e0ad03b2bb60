//! Why a request to the gateway has no answer. A variant answers the question
//! "what can the caller do?".

use std::time::Duration;

use toolyard_egress::EgressError;
use toolyard_protocol::ErrorCode;

use crate::journal::JournalError;
use crate::plugin::PluginError;

/// A request that did not work.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The gateway said no. The text is the gateway's own.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// Nobody answered. Ask again later.
    #[error("the gateway cannot be reached: {}", .0.causes())]
    Unreachable(#[source] EgressError),
    /// Something answered that is no gateway.
    #[error("the gateway's answer cannot be read: {0}")]
    Unreadable(String),
    /// The client was set up wrongly; a repeat will not help.
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What the gateway answered instead of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    /// The machine-readable reason, as text: newer gateways know more of them.
    pub code: String,
    pub message: String,
    /// The number of the limit that was crossed.
    pub limit: Option<u64>,
    pub retry_after: Option<Duration>,
}

impl ClientError {
    /// The gateway's code, if it was the gateway that refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            Self::Unreachable(_)
            | Self::Unreadable(_)
            | Self::Settings(_)
            | Self::Plugin(_)
            | Self::Journal(_) => None,
        }
    }

    /// Did the gateway refuse for this reason?
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code() == Some(code.as_str())
    }

    /// The same request may work later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(refusal.status, 408 | 425 | 429 | 500..=599),
            Self::Unreachable(_) => true,
            Self::Unreadable(_) | Self::Settings(_) | Self::Plugin(_) | Self::Journal(_) => false,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    pub(crate) fn settings(text: impl Into<String>) -> Self {
        Self::Settings(text.into())
    }
}
