//! The real binary on a free port with its own data folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play the outside world")]

mod gateway;
