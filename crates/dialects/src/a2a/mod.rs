//! A2A, versions 1.0 and 0.3, over JSON-RPC and HTTP+JSON.
//!
//! A task is a run, a context is a space. Requests of either version and
//! binding become one [`Command`]; a run's log becomes one [`TaskSoFar`] for
//! its reader's key, and [`write`] spells it. [`TaskStream`] tells it as
//! server-sent events. The client-tools extension is in [`client_tools`], the
//! form of seeds/001 in `literal`, agent cards in [`card`].

pub mod answer;
pub mod card;
pub mod client;
pub mod client_tools;
mod command;
mod fault;
mod fields;
mod history;
mod literal;
mod model;
mod push;
mod read;
mod rest;
mod rpc;
pub mod signing;
mod stream;
mod task;
mod version;
pub mod write;

pub use client_tools::{Answer, Asked, CLIENT_TOOLS, Offer, OpenCall};
pub use command::{Command, List, Method, Send, TASK_PAGE, TASK_PAGE_MAX};
pub use fault::{Fault, FaultKind, Violation};
pub use history::{data_text, history_message, kept, message_id};
pub use model::{Artifact, Content, Item, Message, Part, Role, State, Status, Task};
pub use push::{PUSH_CHARS, PUSH_CONFIGS, PushConfig, push_config, push_list};
pub use read::MESSAGE_PARTS;
pub use rest::{Rest, is_rest, rest_request};
pub use rpc::{Binding, Refused, Request, rpc_request};
pub use stream::{Begin, Form, TaskStream, Until, sse};
pub use task::{BARE_MESSAGE, Change, TaskSoFar, Taste};
pub use version::{VERSION_HEADER, Version};
