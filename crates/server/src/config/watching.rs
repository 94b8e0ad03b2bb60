//! The sections about what the operator sees of the gateway: logs and traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hidden::Hidden;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,toolyard=debug`.
    pub(crate) level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned() }
    }
}

/// Where spans go: of the agents with the plugin `tracing`, or of all.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// The address that takes OTLP in JSON, such as
    /// `http://127.0.0.1:4318/v1/traces`. Missing means that none leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) otlp_traces: Option<String>,
    /// Every agent's turns become spans, without what was said. An agent that
    /// names the plugin keeps its own options.
    pub(crate) all_agents: bool,
    /// The header `authorization` for it, such as `Basic …`.
    pub(crate) authorization: Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}
