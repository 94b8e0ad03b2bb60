//! The host against real servers and against one that misbehaves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests play the outside world"
)]

mod calls;
mod catalogue;
mod config;
mod fault_http;
mod http;
mod lifecycle;
mod logins;
mod pausing;
mod real;
mod yard;
