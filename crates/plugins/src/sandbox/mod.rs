//! The sandbox: JavaScript that the gateway does not trust.
//!
//! Code runs in QuickJS, in a process of its own that has no files, no network
//! and no environment, with a fresh runtime for every call. The gateway holds a
//! few such processes warm ([`Sandbox`]), gives a free one a [`Job`], and kills
//! it when it does not answer in time. A call that breaks a limit fails alone,
//! with a [`SandboxError`] that names the limit.
//!
//! ```no_run
//! # async fn example() -> Result<(), toolyard_plugins::sandbox::SandboxError> {
//! use toolyard_plugins::sandbox::{Job, Sandbox, Settings};
//!
//! let sandbox = Sandbox::new(Settings::this_program());
//! let job = Job::body("return price * pieces").argument("price", 3).argument("pieces", 7);
//! assert_eq!(sandbox.call(job).await?.value, 21);
//! # Ok(())
//! # }
//! ```
//!
//! The program that makes a `Sandbox` with [`Settings::this_program`] calls
//! [`worker::main`] when its first argument is [`WORKER`], before it starts
//! anything else. What code finds inside is in `docs/guides/sandbox.md`.

mod error;
mod host;
mod job;
mod keeper;
mod pool;
mod process;
mod sitting;
mod wire;
pub mod worker;

pub use error::SandboxError;
pub use host::Host;
pub use job::{Answer, ConsoleLine, Job, Level, Limits};
pub use pool::{Sandbox, Settings};
pub use sitting::{Payload, Script, Sitting};

/// The argument that makes a program a sandbox process.
pub const WORKER: &str = "js-worker";
