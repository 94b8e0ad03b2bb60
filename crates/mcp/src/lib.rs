//! MCP over rmcp: the host side (one state machine per server, a pool, lenient
//! results) and the server side.
//!
//! An empty room: nothing of it is built yet. It stands alone because rmcp is
//! slow to build, so that editing the rest never rebuilds it.
