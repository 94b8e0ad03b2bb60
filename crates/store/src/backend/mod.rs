//! The two databases behind [`crate::Store`].

pub(crate) mod postgres;
#[cfg(feature = "failpoints")]
mod room;
pub(crate) mod sqlite;
