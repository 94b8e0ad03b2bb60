//! Servers that other people wrote.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolyard_mcp::{Catalogue, Era, Host, Outcome, ServerSettings};

use crate::yard::{call, done, host, installed, owner, server, text};

struct Real {
    host: Host,
    settings: ServerSettings,
    catalogue: Catalogue,
}

async fn real(name: &str, mut entry: Value) -> Real {
    entry["startup_timeout_sec"] = json!(60);
    entry["required"] = json!(true);
    let (host, settings) = (host(), server(name, entry));
    let catalogue =
        host.catalogue(&owner("a"), std::slice::from_ref(&settings), Duration::from_secs(60)).await;
    assert!(catalogue.missing.is_empty(), "{:?}", catalogue.missing);
    assert_eq!(host.status()[0].left_out, [], "a tool of a real server was left out");
    Real { host, settings, catalogue }
}

impl Real {
    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let known = self.catalogue.tools.iter().find(|known| known.tool.raw == tool).expect(tool);
        known.tool.schema.check(&arguments).unwrap();
        self.host.call(&owner("a"), &self.settings, call(tool, arguments)).await
    }
    fn is(&self, era: Era, tools: usize) {
        assert_eq!((self.host.status()[0].era, self.catalogue.tools.len()), (Some(era), tools));
    }
}

fn node(root: &Path, package: &str, args: &[&str]) -> Value {
    let script = root.join("node/node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    let mut all = vec![script.to_string_lossy().into_owned()];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    json!({ "command": "node", "args": all })
}

#[tokio::test]
async fn g4_everything_echoes_adds_and_shows_progress() {
    let Some(root) = installed() else { return };
    let real = real("everything", node(&root, "server-everything", &["stdio"])).await;
    assert_eq!(real.host.status()[0].era, Some(Era::Legacy));
    assert_eq!(text(real.call("echo", json!({ "message": "hi" })).await), "Echo: hi");
    let image = done(real.call("get-tiny-image", json!({})).await);
    assert!(image.blocks.iter().any(|block| matches!(block, toolyard_mcp::Block::Image { .. })), "{image:?}");
    // Row X17, by a server that others wrote to show it.
    let env = text(real.call("get-env", json!({})).await);
    assert!(env.contains("PATH") && !env.contains("CARGO"), "{env}");
    let unknown = real.host.call(&owner("a"), &real.settings, call("nobody", json!({}))).await;
    assert!(done(unknown).is_error);
    real.host.stop().await;
}

#[tokio::test]
async fn g4_filesystem_reads_what_it_may() {
    let Some(root) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    std::fs::write(&file, "content of a").unwrap();
    let real = real("files", node(&root, "server-filesystem", &[folder.path().to_str().unwrap()])).await;
    real.is(Era::Legacy, 14);
    let answer = done(real.call("read_text_file", json!({ "path": file })).await);
    assert_eq!((answer.for_model().as_str(), answer.structured.is_some()), ("content of a", true));
    assert!(done(real.call("read_text_file", json!({ "path": "/etc/passwd" })).await).is_error);
    real.host.stop().await;
}

#[tokio::test]
async fn g4_memory_remembers() {
    let Some(root) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut entry = node(&root, "server-memory", &[]);
    entry["env"] = json!({ "MEMORY_FILE_PATH": folder.path().join("memory.jsonl") });
    let real = real("memory", entry).await;
    real.is(Era::Legacy, 9);
    let entity =
        json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["likes engines"] }] });
    assert!(!done(real.call("create_entities", entity).await).is_error);
    assert!(text(real.call("search_nodes", json!({ "query": "engines" })).await).contains("Ada"));
    real.host.stop().await;
}

#[tokio::test]
async fn g4_time_converts() {
    let Some(root) = installed() else { return };
    let real = real(
        "time",
        json!({ "command": root.join("python/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"] }),
    )
    .await;
    real.is(Era::Modern, 2);
    let arguments = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    assert!(text(real.call("convert_time", arguments).await).contains("21:00"));
    let unknown = real.host.call(&owner("a"), &real.settings, call("nobody", json!({}))).await;
    assert!(matches!(&unknown, Outcome::Failed(why) if why.contains("-32602")), "{unknown:?}");
    real.host.stop().await;
}

#[tokio::test]
async fn g4_git_tells_of_a_repository() {
    let Some(root) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let made = std::process::Command::new("git").args(["init", "-q", path]).status();
    if !made.is_ok_and(|status| status.success()) {
        return eprintln!("not tested: git is not installed");
    }
    let real = real("git", json!({ "command": root.join("python/bin/mcp-server-git") })).await;
    real.is(Era::Modern, 12);
    assert!(text(real.call("git_status", json!({ "repo_path": path })).await).contains("No commits yet"));
    real.host.stop().await;
}

#[tokio::test]
async fn g4_sqlite_writes_and_reads() {
    let Some(root) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.db");
    let real = real(
        "sqlite",
        json!({ "command": root.join("sqlite/bin/mcp-server-sqlite"), "args": ["--db-path", database] }),
    )
    .await;
    real.is(Era::Legacy, 6);
    done(real.call("create_table", json!({ "query": "CREATE TABLE t (x INTEGER)" })).await);
    done(real.call("write_query", json!({ "query": "INSERT INTO t VALUES (42)" })).await);
    assert!(text(real.call("read_query", json!({ "query": "SELECT x FROM t" })).await).contains("42"));
    real.host.stop().await;
}

#[tokio::test]
async fn g4_fetch_refuses_private_addresses_by_itself() {
    let Some(root) = installed() else { return };
    let real = real(
        "fetch",
        json!({ "command": root.join("python/bin/mcp-server-fetch"), "args": ["--ignore-robots-txt"] }),
    )
    .await;
    real.is(Era::Modern, 1);
    let refused = real.call("fetch", json!({ "url": "http://127.0.0.1:9/" })).await;
    let heard = match refused {
        Outcome::Done(answer) => answer.is_error,
        Outcome::Failed(_) => true,
        other => panic!("{other:?}"),
    };
    assert!(heard);
    real.host.stop().await;
}
