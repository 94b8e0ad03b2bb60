//! The only SQL: what the gateway remembers, on SQLite or PostgreSQL.
//!
//! [`Store`] opens a database and runs transactions. What happens inside one
//! is composed by the caller from the table modules: [`runs`], [`log`],
//! [`waits`] and so on, each a few functions over a [`Tx`]. This crate knows
//! the shape of rows, never why they change.

mod backend;
mod clock;
mod error;
pub mod failpoint;
mod feed;
mod migrate;
mod so_far;
mod steady;
mod store;
mod tx;

pub mod agents;
pub mod audit;
pub mod blobs;
pub mod branches;
pub mod clients;
pub mod compactions;
pub mod curators;
pub mod entities;
pub mod export;
pub mod goals;
pub mod grants;
pub mod idempotency;
pub mod inbox;
pub mod keys;
pub mod knowledge;
pub mod log;
pub mod mcp_logins;
pub mod mcp_pins;
pub mod mcp_records;
pub mod memories;
pub mod messages;
pub mod nodes;
pub mod outbox;
pub mod plans;
pub mod plugins;
pub mod presences;
pub mod push_configs;
pub mod removal;
pub mod retention;
pub mod runs;
pub mod secrets;
pub mod spaces;
pub mod tasks;
pub mod threads;
pub mod tool_uses;
pub mod usage;
pub mod waits;
pub mod webhooks;

pub use backend::sqlite::{back_up, is_kept, lock_folder};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{OpenError, StoreError};
pub use feed::{CallsOf, Feed, Joined, LinkState, News, RedisUrl, Watch, ask_redis};
pub use migrate::known_version;
pub use so_far::StepSoFar;
pub use store::{DatabaseUrl, Settings, Store};
pub use tx::{CallNews, Commit, Row, Touched, Tx};
