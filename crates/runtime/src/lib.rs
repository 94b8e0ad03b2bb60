//! Runs in motion: workers advance them, the scheduler wakes them, and the
//! commands of the outside (messages, results, answers, cancels) reach them.
//!
//! Everything commits first and acts afterwards. A waiting run has no task, no
//! lease and no memory here: only rows. This crate speaks no HTTP to clients
//! and holds no SQL. Start with [`Runtime`]; the loop itself is in `worker`.

mod account;
mod agents;
mod blob;
mod child;
mod client_tools;
mod command;
mod create;
mod earlier;
mod ending;
mod facts;
mod family;
mod knowledge;
mod live;
pub mod once;
mod outbox;
mod parked;
mod plans;
mod post;
mod refused;
mod replay;
mod retention;
mod runtime;
mod scheduler;
mod settings;
mod slots;
mod starting;
mod tally;
mod task;
mod tasks;
mod traces;
mod turn;
mod worker;

pub use account::{Account, account};
pub use agents::{LoadedAgent, check_agent, check_secret_fields};
pub use client_tools::BroughtTools;
pub use command::{CreateRun, Disposition, Fresh, Once, PostMessage, Posted, Respond, Triggered};
pub use create::{CreatedRun, check_model};
pub use facts::{AnswerIn, Caller, ProgressIn, Progressed, Remember, ResultIn, Submitted, Worked};
pub use live::{Answering, Connected, LiveNews, OfferedCall};
pub use outbox::{Delivery, NOTICE_HEADER, Retry};
pub use refused::{Refused, store_error};
pub use replay::ReplayRun;
pub use runtime::Runtime;
pub use settings::{ClientToolRules, Settings};
pub use task::{TASK_METADATA, TaskRead, TaskReader, changed_at};
pub use tasks::Tasks;
pub use traces::Collector;
pub use turn::{Cut, Following, Item, Replied, Reply, Turn, Turned};
// What callers of this crate also need, so that they know no deeper crate.
pub use toolyard_engine::facts::Answer;
pub use toolyard_engine::permission::{Grant, GrantEffect, GrantScope, key_of};
pub use toolyard_models::direct;
pub use toolyard_models::tck;
pub use toolyard_models::{
    BadProvider, BadRegistry, ModelError, ModelRecord, Price, ProviderKind, ProviderSettings, Providers,
    Registry, Wanted,
};
pub use toolyard_schema::{NameRule, tool_name_of};
pub use toolyard_tools::knowledge::{Embedder, Form, text_of};
pub use toolyard_tools::sealer::{Closed, Purpose, Sealer};
pub use toolyard_tools::secrets::{NoSecret, Secrets};
pub use toolyard_tools::timing::{self, Timing};
pub use toolyard_tools::tokens::DatabaseTokens;
pub use toolyard_tools::{
    FetchRule, LoggedIn, McpTools, NoLogin, Pictures, PluginRules, Plugins, Toolbox, admit_installed, keyring,
};
