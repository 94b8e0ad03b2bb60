//! The native routes. [`table`] lists every one of them once; the router, the
//! OpenAPI document and the access tests are made from it.

mod agents;
mod answer;
mod audit;
pub(crate) mod call;
mod clients;
mod dispatch;
mod entities;
mod extract;
mod files;
mod goals;
mod grants;
mod inbox;
mod kept;
mod keys;
mod knowledge;
mod logins;
mod mcp;
mod members;
mod memories;
mod messages;
mod models;
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
mod tools;
pub(crate) mod view;
mod waits;
mod webhooks;

pub(crate) use dispatch::viewer;
