//! MCP over rmcp: the host side holds connections to MCP servers, knows their
//! tools and makes their calls; [`server`] is the other side, for MCP clients.
//! It stands alone because rmcp is slow to build; no type of rmcp leaves it.
//!
//! # How to use it
//!
//! 1. Settings. [`read_entries`] and [`read_file_form`] read the operator's
//!    servers; [`ServerSettings::of_agent`] reads one of an agent.
//! 2. [`Host::new`] once per process, with the doors, the compiled schemas and
//!    (for logins) a [`TokenStore`]. [`Host::start`] warms servers up.
//! 3. [`Host::catalogue`] before a run and after a [`Change`]: the tools by the
//!    names that the model sees, and what is [`Missing`]. Keep the table
//!    `name → (server, raw)`; never take a name apart. [`McpTool::pin`] tells a
//!    changed tool from the one that somebody approved.
//! 4. [`Host::call`] with the server's settings and the *raw* name. Arguments
//!    are checked by the caller, with [`ListedTool::schema`]. The [`Outcome`]:
//!    * `Done`: the answer; `is_error` goes to the model as an error.
//!    * `Failed`: the server answered that it will not, or its answer is useless.
//!    * `NotSent`: nothing happened; `needs_login` asks for a `Credential` wait.
//!    * `Unknown`: the caller makes it `Uncertain`.
//!    * `Paused`: store it (its state is secret), open an `Input` wait, then
//!      [`Host::resume`] with the same arguments, in any process.
//!    * `Task`: store the ticket, then [`Host::follow`], in any process.
//! 5. [`Host::status`] for people, [`Host::login`] and [`Host::finish_login`]
//!    for users, [`Host::stop`] at the end: no program is left.
//!
//! # Rooms
//!
//! `settings`, `entry`, `environment`: what a server is. `wire`: bytes to and
//! from it, below rmcp. `connect`, `link`, `keeper`, `health`: one connection
//! and its life. `listing`, `tool`, `name`: its tools. `call`, `flight`, `ask`,
//! `answer`, `task`: one call. `login`, `token_store`: who may.
//!
//! What this crate never does: decide a permission, write to a store of its
//! own, open a connection past the doors, or repeat a call that may have
//! happened.

mod answer;
mod ask;
mod call;
mod connect;
mod entry;
mod environment;
mod fault;
mod flight;
mod handler;
mod health;
mod host;
mod keeper;
mod link;
mod listing;
mod login;
mod name;
pub mod server;
mod settings;
mod status;
mod task;
mod token_store;
mod tool;
mod wire;

pub use answer::{Answer, Block, Paused};
pub use ask::{Ask, Question, Reply};
pub use call::{Call, OnProgress, Outcome};
pub use entry::{Entry, EntryKind, Lookup, OauthEntry, Veiled, read_entries, read_file_form};
pub use flight::Progress;
pub use host::{Catalogue, Change, Doors, Host, Missing};
pub use listing::Difference;
pub use login::{Login, Logins};
pub use settings::{
    BadServer, Era, Launch, OauthClient, Origin, Owner, Program, Remote, ServerName, ServerSettings, Share,
    Sharing, Tenants,
};
pub use status::ServerStatus;
pub use task::Ticket;
pub use token_store::{MemoryTokens, Record, TokenKey, TokenStore};
pub use tool::{Hints, LeftOut, ListedTool, McpTool, Pin, Pins};
