//! Why a question with one answer has none.

use crate::error::ModelError;

/// A variant answers: what can the caller do?
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Ask for less. The name of the limit is a constant of this crate.
    #[error("{what}: {asked} is more than the limit of {limit}")]
    Over { what: &'static str, asked: u64, limit: u64 },
    /// Ask for something.
    #[error("{what} is missing")]
    Empty { what: &'static str },
    /// As for any model.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl CallError {
    pub(crate) fn check(what: &'static str, asked: usize, limit: usize) -> Result<(), Self> {
        if asked > limit {
            return Err(Self::Over { what, asked: asked as u64, limit: limit as u64 });
        }
        Ok(())
    }
}
