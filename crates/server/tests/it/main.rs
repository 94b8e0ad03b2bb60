//! The real binary on a free port with its own data folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "tests play the outside world")]

mod a2a;
mod a2a_clients;
mod access;
mod canaries;
mod chat;
mod chat_clients;
mod chat_socket;
mod citations;
mod cli;
mod cli_edges;
mod cli_runs;
mod cluster;
mod compute;
mod crowd;
mod cuts;
#[path = "../kill/database.rs"]
#[allow(dead_code, reason = "shared with the kill tests, which use all of it")]
mod database;
mod definitions;
mod documents;
mod edge;
mod entity_streams;
mod families;
mod far_side;
#[path = "../../../mcp/tests/it/fault_http.rs"]
mod fault_http;
mod files;
mod foreign;
mod gate;
mod gateway;
mod generated;
mod hangups;
mod http_tools;
mod idempotency;
mod issuer;
mod jwks;
mod keeping;
mod kept;
mod keys;
mod letters;
mod life;
mod live;
mod logins;
mod loops;
mod matrix;
mod mcp;
mod mcp_agent;
mod mcp_library;
mod mcp_news;
mod mcp_refusals;
mod models;
mod nodes;
mod obedient;
mod orders;
mod planned;
mod plugin_cli;
mod plugin_fetch;
mod plugin_hooks;
mod plugins;
mod poison;
mod power;
mod progress;
mod readings;
mod readme;
mod redis_away;
#[path = "../../../store/tests/it/redis_server.rs"]
#[allow(dead_code, reason = "shared with the store's tests, which use all of it")]
mod redis_server;
mod replay;
mod rest;
mod room;
mod rows;
mod runs;
mod samples;
mod secrets;
mod site;
mod sizes;
mod socket;
mod starts;
mod streams;
mod talking_over;
mod tokens;
mod tool_list;
mod traces;
mod upgrade;
mod vendor;
mod vendor_words;
mod wait_pages;
mod web;
mod webhooks;
mod yard;
