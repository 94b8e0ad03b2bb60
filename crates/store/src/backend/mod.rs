//! The two databases behind [`crate::Store`].

mod arrival;
pub(crate) mod frame;
mod held;
pub(crate) mod postgres;
#[cfg(feature = "failpoints")]
mod room;
pub(crate) mod sqlite;
