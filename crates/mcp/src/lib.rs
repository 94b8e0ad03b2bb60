//! MCP
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
mod settings;
mod status;
mod task;
mod token_store;
mod tool;
mod wire;

pub use answer::{Answer, Block, Paused};
pub use ask::{Ask, Question, Reply};
pub use call::{Call, OnProgress, Outcome};
pub use entry::{Entry, EntryKind, Lookup, OauthEntry, read_entries, read_file_form};
pub use flight::Progress;
pub use host::{Catalogue, Change, Doors, Host, Missing};
pub use listing::Difference;
pub use login::{Login, Logins};
pub use settings::{
    BadServer, Era, Launch, OauthClient, Origin, Owner, Program, Remote, ServerName, ServerSettings, Share,
    Sharing,
};
pub use status::ServerStatus;
pub use task::Ticket;
pub use token_store::{MemoryTokens, Record, TokenKey, TokenStore};
pub use tool::{Hints, LeftOut, ListedTool, McpTool, Pin, Pins};
