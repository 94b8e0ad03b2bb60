//! Why a call through the door did not work. No variant shows a URL, a header
//! or a body: those may hold credentials.

use std::time::Duration;

/// What the caller can do differs per variant.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The settings are wrong; a repeat will not help.
    #[error("{0}")]
    Refused(&'static str),
    /// The address is inside a network that strangers' URLs must not reach.
    #[error(
        "the address is in a private or reserved network; the operator can open it with allow_private_network"
    )]
    Inside,
    #[error("the address redirects more than {limit} times")]
    Redirects { limit: usize },
    /// A redirect leads where this request cannot go on. Whoever redirected had it.
    #[error(transparent)]
    Astray(Box<EgressError>),
    /// Nobody answered at the address; a repeat may help.
    #[error("the address cannot be reached")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The other side is there, but says nothing.
    #[error("no answer within {after:?}")]
    Timeout { after: Duration },
    /// The answer is larger than the caller accepts.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The connection ended in the middle of the answer.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
    /// This machine cannot make secure connections.
    #[error("the HTTP client cannot start")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl EgressError {
    /// Nothing of the request left this machine, so that a repeat cannot be a
    /// second effect.
    pub fn never_sent(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Unavailable(_) => true,
            Self::Unreachable(cause) => cause.is_connect(),
            // The first hop of a redirect was sent.
            Self::Inside | Self::Redirects { .. } | Self::Astray(_) => false,
            Self::Timeout { .. } | Self::TooLarge { .. } | Self::Broken(_) => false,
        }
    }

    /// The same behind a redirect: something was sent, whatever failed now.
    pub(crate) fn behind_a_redirect(self) -> Self {
        if self.never_sent() { Self::Astray(Box::new(self)) } else { self }
    }

    /// The causes in one line, for logs and secret details.
    pub fn causes(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(next) = cause {
            line.push_str(": ");
            line.push_str(&next.to_string());
            cause = next.source();
        }
        line
    }
}
