//! What the runtime is told: this node's name and its limits.

use std::io;
use std::path::Path;

use toolyard_protocol::NodeId;
use toolyard_runtime::{ClientToolRules, Settings};

use crate::config::Config;

pub(super) fn settings(config: &Config) -> io::Result<Settings> {
    let mut settings = Settings::new(name(&config.data)?);
    settings.active_runs = config.limits.active_runs;
    settings.ask_from = config.permissions.ask_from;
    settings.keep_finished = config.retention.finished_runs();
    settings.tool_result_tokens = config.limits.tool_result_tokens;
    settings.embedding = config.knowledge.embedder();
    settings.client_sockets = config.limits.connections;
    settings.trace_all = config.telemetry.all_agents && config.telemetry.otlp_traces.is_some();
    settings.client_tools = ClientToolRules {
        public: config.limits.public_tools,
        secret: config.limits.secret_tools,
        on_conflict: config.client_tools.on_conflict,
    };
    Ok(settings)
}

/// The node's name, stable over restarts: a restarted node takes its own runs
/// back at once.
fn name(data: &Path) -> io::Result<NodeId> {
    let file = data.join("node");
    if let Ok(text) = std::fs::read_to_string(&file)
        && let Ok(node) = NodeId::parse(text.trim())
    {
        return Ok(node);
    }
    let node = NodeId::mint();
    std::fs::write(&file, node.as_str())?;
    Ok(node)
}
