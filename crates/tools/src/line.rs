//! How a call in flight speaks with its run: what it is at, what it asks in
//! the middle, what it may be found by after a crash.

use std::fmt;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolyard_protocol::CallId;

/// Words that wait to be heard. Progress above that is dropped, as only the
/// last counts; a question and a ticket wait for their turn.
pub const WORDS: usize = 64;

/// What a call says.
#[derive(Debug)]
pub enum Word {
    Progressed {
        fraction: Option<f64>,
        message: Option<String>,
    },
    /// Somebody is to answer while the call waits. No answer means a no.
    Asked {
        payload: Value,
        reply: oneshot::Sender<Value>,
    },
    /// The far side works on by itself under this ticket. Said once it is kept.
    Ticket {
        ticket: Value,
        kept: oneshot::Sender<()>,
    },
}

/// A call's end of the line.
#[derive(Clone)]
pub struct Line {
    call: CallId,
    words: mpsc::Sender<(CallId, Word)>,
    leaving: CancellationToken,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({})", self.call)
    }
}

impl Line {
    /// `leaving` says that this node goes, and not that the call is unwanted.
    pub fn new(call: CallId, words: mpsc::Sender<(CallId, Word)>, leaving: CancellationToken) -> Self {
        Self { call, words, leaving }
    }

    pub(crate) fn leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    pub fn progressed(&self, fraction: Option<f64>, message: Option<String>) {
        let _ = self.words.try_send((self.call.clone(), Word::Progressed { fraction, message }));
    }

    /// Asks, and waits for the answer. None means that nobody gives one.
    pub async fn ask(&self, payload: Value) -> Option<Value> {
        let (reply, answer) = oneshot::channel();
        self.words.send((self.call.clone(), Word::Asked { payload, reply })).await.ok()?;
        answer.await.ok()
    }

    /// Has a ticket kept. False if it is not: then a crash makes the end unknown.
    pub async fn keep(&self, ticket: Value) -> bool {
        let (kept, done) = oneshot::channel();
        let sent = self.words.send((self.call.clone(), Word::Ticket { ticket, kept })).await;
        sent.is_ok() && done.await.is_ok()
    }
}
