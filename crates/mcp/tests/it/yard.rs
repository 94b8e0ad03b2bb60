//! What the tests share: a host, the fault server, and its own log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fault_http::python;
use serde_json::{Map, Value, json};
use toolyard_egress::Door;
use toolyard_mcp::{
    Answer, Call, Catalogue, Doors, Entry, Host, Logins, McpTool, Outcome, Owner, ServerSettings,
    ServerStatus, read_entries,
};
use toolyard_protocol::TenantId;
use toolyard_schema::Schemas;

pub(crate) fn host() -> Host {
    host_with(None)
}

pub(crate) fn host_with(logins: Option<Logins>) -> Host {
    let door = Door::operator().unwrap();
    Host::new(Doors { operator: door.clone(), guarded: door }, Schemas::new(), logins)
}

pub(crate) fn owner(tenant: &str) -> Owner {
    Owner { tenant: TenantId::parse(tenant).unwrap(), entity: None }
}

pub(crate) fn server(name: &str, entry: Value) -> ServerSettings {
    let entry: Entry = serde_json::from_value(entry).unwrap();
    read_entries(&BTreeMap::from([(name.to_owned(), entry)]), &|_| None).unwrap().remove(0)
}

/// The fault server in one of its modes, and the file it writes to.
pub(crate) struct Fault {
    pub(crate) settings: ServerSettings,
    pub(crate) host: Host,
    folder: tempfile::TempDir,
}

pub(crate) fn fault(mode: &str) -> Fault {
    fault_with(mode, json!({}))
}

pub(crate) fn fault_with(mode: &str, more: Value) -> Fault {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fault_server.py");
    let mut entry = json!({
        "command": python(), "args": ["-u", script, mode],
        "env": { "FAULT_LOG": folder.path().join("log"), "FAULT_KEY": "very-secret-key" },
        "tool_timeout_sec": 20, "startup_timeout_sec": 30,
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    Fault { settings: server("fault", entry), host: host(), folder }
}

impl Fault {
    /// What the far side did, one word each.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
    pub(crate) fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|line| line[0] == what).count()
    }
    pub(crate) async fn catalogue(&self) -> Catalogue {
        self.host.catalogue(&owner("a"), std::slice::from_ref(&self.settings), Duration::from_secs(30)).await
    }
    pub(crate) async fn tool(&self, raw: &str) -> Option<McpTool> {
        self.catalogue().await.tools.into_iter().find(|tool| tool.tool.raw == raw)
    }
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.host.call(&owner("a"), &self.settings, call(tool, arguments)).await
    }
    pub(crate) fn status(&self) -> ServerStatus {
        self.host.status().remove(0)
    }
    /// Waits until the status is as wanted.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&ServerStatus) -> bool) -> ServerStatus {
        eventually(what, || self.host.status().pop().filter(&wanted)).await
    }
}

/// Waits for something that another task or process does.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not happen within 30 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> Call {
    Call::new(tool, object(arguments))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn done(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Done(answer) => answer,
        other => panic!("the call did not end well: {other:?}"),
    }
}

pub(crate) fn text(outcome: Outcome) -> String {
    done(outcome).for_model()
}

pub(crate) fn alive(pid: i32) -> bool {
    // A zombie has ended; it only waits for its parent.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

/// The folder of installed servers, or `None` with a word about it.
pub(crate) fn installed() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers");
    if root.join("node/done").exists() && root.join("python/requirements.txt").exists() {
        return Some(root.canonicalize().unwrap());
    }
    eprintln!("not tested: the MCP servers are not installed; run scripts/setup-mcp-servers");
    None
}
