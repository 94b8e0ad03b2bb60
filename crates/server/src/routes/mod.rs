//! The native routes. [`table`] lists every one of them once; the router, the
//! OpenAPI document and the access tests are made from it.

mod ag_ui;
mod agents;
mod answer;
mod audit;
pub(crate) mod call;
mod chat;
mod clients;
mod dispatch;
mod entities;
mod entries;
mod extract;
mod files;
mod foreign;
mod goals;
mod grants;
mod inbox;
mod kept;
mod keys;
mod knowledge;
mod mcp;
mod members;
mod memories;
mod messages;
mod models;
mod openai;
pub(crate) mod openapi;
mod ops;
mod own;
mod page;
mod plans;
mod results;
mod route;
pub(crate) mod router;
mod runs;
mod secrets;
mod selection;
mod spaces;
mod table;
pub(crate) mod view;
mod waits;
mod webhooks;

pub(crate) use dispatch::viewer;
