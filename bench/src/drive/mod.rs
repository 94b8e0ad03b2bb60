//! The load client: starts the mock model and the servers, drives the same
//! errands through each, and writes what they cost.
//!
//! A failed run or a missing piece of text is an error of the whole
//! measurement: a server that drops work is not fast.

pub mod api;
pub mod errand;
mod fill;
mod goals;
mod load;
mod measure;
mod process;
mod ratios;
mod report;
mod rounds;
pub mod stamps;
pub mod stats;
mod stress;
mod system;
mod target;

pub use rounds::{Plan, measure_all};
pub use stress::{Amounts, load_all};
pub use target::Target;

use crate::http::HttpError;

/// Why a measurement is void.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{what} was refused with {status}: {text}")]
    Refused { what: &'static str, status: u16, text: String },
    #[error("{what} is not what was expected: {text}")]
    Unexpected { what: &'static str, text: String },
    #[error("{got} of {want} pieces of text arrived")]
    Missing { got: u32, want: u32 },
    #[error("the run failed: {0}")]
    Failed(String),
    #[error("a run took longer than {seconds} s")]
    TooSlow { seconds: u64 },
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    #[error("{name} did not get ready; its output ends with:\n{tail}")]
    NotReady { name: String, tail: String },
    #[error("the database could not be read: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the database could not be filled: {0}")]
    Fill(String),
}
