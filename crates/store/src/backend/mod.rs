//! The two databases behind [`crate::Store`].

pub(crate) mod postgres;
pub(crate) mod sqlite;
