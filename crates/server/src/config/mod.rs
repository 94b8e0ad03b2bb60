//! `toolyard.toml`: what the operator says, read once at the start.
//!
//! The file is overlaid by `TOOLYARD_…` variables, then by flags. Every key is
//! optional and an unknown key is an error. This room never opens anything: it
//! only turns text into a checked [`Config`].

mod check;
mod env;
mod hidden;
mod lines;
mod listen;
mod load;
mod misfits;
mod model;
mod section;
mod watching;

pub(crate) use hidden::Hidden;
pub(crate) use load::{ConfigError, Flags, load, mcp_servers};
pub(crate) use model::*;
pub(crate) use section::*;
pub(crate) use watching::*;

/// The JSON Schema of the file.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}

/// The effective configuration as TOML, secrets hidden.
pub(crate) fn print(config: &Config) -> String {
    toml::to_string_pretty(config).unwrap_or_else(|e| format!("# cannot be printed: {e}\n"))
}
