//! The native routes. [`table`] lists every one of them once; the router, the
//! OpenAPI document and the access tests are made from it.

mod agents;
mod answer;
mod audit;
pub(crate) mod call;
mod clients;
mod dispatch;
mod entities;
mod files;
mod grants;
mod keys;
mod members;
mod messages;
mod models;
pub(crate) mod openapi;
mod ops;
mod page;
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
