//! What stands around a story: its agent, and what its gateway is told.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::story::Story;
use crate::world::RECORDED;

/// The file with the MCP servers, in the folder that the gateway runs in.
const SERVERS: &str = "mcp.json";
/// Where the MCP server writes down what it does, beside it.
const FAR: &str = "far-log";

impl Story {
    /// What the gateway of the story is told beside its place.
    pub(crate) fn settings(self) -> Vec<(String, String)> {
        let setting = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        match self {
            Self::Queued => setting("TOOLYARD_LIMITS_ACTIVE_RUNS", "1"),
            Self::Stop => setting("TOOLYARD_DRAIN_SECONDS", "0"),
            Self::McpCall | Self::McpRepeatable | Self::McpTask => {
                setting("TOOLYARD_MCP_SERVERS_FILE", SERVERS)
            }
            _ => Vec::new(),
        }
    }

    /// Lays what the gateway finds at its start into its folder.
    pub(crate) fn furnish(self, folder: &Path) {
        if !matches!(self, Self::McpCall | Self::McpRepeatable | Self::McpTask) {
            return;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/fixtures/fault_server.py");
        let server = json!({
            "command": python(), "args": ["-u", script, "modern"], "env": {"FAULT_LOG": FAR},
            "startup_timeout_sec": 30, "trusted": true,
        });
        std::fs::write(folder.join(SERVERS), json!({"mcpServers": {"far": server}}).to_string()).unwrap();
        // The task that outlives the server's process is done when somebody asks for it.
        std::fs::write(folder.join(format!("{FAR}.go")), "").unwrap();
    }

    /// The agent that the story is told with.
    pub(crate) fn agent(self) -> Value {
        let mut config = json!({
            "agent": {"name": "bot"},
            "model": {"provider": "demo", "name": "demo"},
            "tools": [
                {"name": "read_screen", "description": "On a client"},
                {"name": "brief_screen", "description": "On a client, for a moment", "expiresMs": 300},
                {"name": "record_safely", "executionType": "recorder", "execution": {"file": RECORDED}, "idempotent": true},
                {"name": "record", "executionType": "recorder", "execution": {"file": RECORDED}},
                {"name": "approve_record", "executionType": "recorder", "execution": {"file": RECORDED}, "approval": "ask"},
                {"executionType": "prebuilt", "execution": {"action": "setGoals"}},
                {"executionType": "prebuilt", "execution": {"action": "sendNotification", "channels": ["email"]}},
                {"name": "rest", "executionType": "waiting", "execution": {}},
            ],
        });
        match self {
            Self::McpCall | Self::McpRepeatable | Self::McpTask => {
                config["mcp"] = json!({"servers": [{"name": "far"}]});
            }
            Self::Hooked => config["plugins"] = json!(["witness"]),
            _ => {}
        }
        config
    }

    /// The plugin of the story: it changes whatever it sees, and counts it.
    pub(crate) fn plugin(self) -> Option<Value> {
        let counts =
            |what: &str| format!("context.state.set('{what}', (context.state.get('{what}') ?? 0) + 1)");
        (self == Self::Hooked).then(|| {
            json!({
                "id": "witness", "name": "witness", "version": "1.0.0", "tools": [], "rewrites": true,
                "hooks": {
                    "onUserMessage": counts("prompts"),
                    "onTextChunk": "return chunk.replaceAll('answered', 'said')",
                    "onBeforeToolCall": format!("{}; return {{ ...call, args: {{ ...call.args, seen: true }} }}", counts("calls")),
                    "onAfterToolCall": format!("{}; return {{ seen: result.result }}", counts("results")),
                    "onTextEnd": format!("{}; return text + '.'", counts("texts")),
                    "onAgentResponse": "context.events.emit('counted', Object.fromEntries(context.state)); return response.text + ' Seen.'",
                },
            })
        })
    }
}

/// One line per call that the MCP server was asked for, with the name of its tool first.
pub(crate) fn far_calls(folder: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(folder.join(FAR)).unwrap_or_default();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls = lines.filter(|line| line[0] == "call");
    calls.map(|line| format!("{} {}", line[1].as_str().unwrap(), line[2])).collect()
}

/// The Python behind `python3`, which may be a script that adds variables.
fn python() -> String {
    let out = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let out = out.expect("python3 is needed for the MCP server").stdout;
    String::from_utf8(out).unwrap().trim().to_owned()
}
