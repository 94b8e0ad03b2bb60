//! Where a run stands. A waiting run cannot exist without its calls.

use toolyard_protocol::run::RunEnd;

use crate::call::{Call, Calls};

/// Whether the model may call tools in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tools {
    On,
    /// The last step of a turn that used up `max_steps`: text only.
    Off,
}

/// The state of a run: a fold over its log, and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Created; nobody works on it yet.
    Queued,
    /// The model is to speak. No event says that it was asked: a repeat after
    /// a crash costs tokens, and has no outside effect.
    Thinking {
        step: u32,
        attempt: u32,
        tools: Tools,
    },
    /// A reply is there and something of it is still to be done here. Without
    /// any calls the turn is over; the same append says what follows.
    Acting {
        step: u32,
        calls: Calls,
    },
    /// Nothing is to be done here and at least one call is open.
    Waiting {
        step: u32,
        calls: Calls,
    },
    Finished(RunEnd),
}

impl State {
    /// The calls of the open step, in call order.
    pub fn calls(&self) -> &[Call] {
        match self {
            Self::Acting { calls, .. } | Self::Waiting { calls, .. } => calls.as_slice(),
            Self::Queued | Self::Thinking { .. } | Self::Finished(_) => &[],
        }
    }
}
