//! The Rust SDK: chat, tools, plugins and the MCP bridge, for programs that
//! execute an agent's tools.
//!
//! An empty room: nothing of it is built yet. Until then a program speaks the
//! native REST and SSE API.
