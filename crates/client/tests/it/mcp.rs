//! The MCP bridge, with servers that other people wrote and with our own that
//! misbehaves.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toolyard_client::{CallId, Client, McpServer, Outcome, ToolCall, mcp_plugin, mcp_plugin_from_file};

use crate::gateway::{Yard, eventually};

fn client() -> Client {
    Client::builder().base_url("http://127.0.0.1:9").build().unwrap()
}

async fn run(client: &Client, tool: &str, args: Value) -> Outcome {
    client.execute(&ToolCall::new(CallId::mint(), tool, args)).await.unwrap()
}

/// The folder of installed servers, or `None` with a word about it.
fn installed() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers");
    if root.join("node/done").exists() && root.join("python/requirements.txt").exists() {
        return Some(root.canonicalize().unwrap());
    }
    eprintln!("not tested: the MCP servers are not installed; run scripts/setup-mcp-servers");
    None
}

fn script(root: &Path, package: &str) -> String {
    let script = root.join("node/node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    script.to_string_lossy().into_owned()
}

/// Our server with faults, in one of its modes.
fn faulty(name: &str, mode: &str, log: &Path) -> McpServer {
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(python.stdout).unwrap().trim().to_owned();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/fixtures/fault_server.py");
    McpServer::command(
        name,
        python,
        ["-u".to_owned(), script.to_string_lossy().into_owned(), mode.to_owned()],
    )
    .env("FAULT_LOG", log.to_string_lossy())
}

fn calls(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("[\"call\"")).count()
}

#[tokio::test]
async fn h61_h62_tools_get_names_by_a_table_and_calls_reach_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let client = client();
    let bridge =
        mcp_plugin([faulty("one", "plain", &one), faulty("two", "modern", &two).only(["echo"])]).unwrap();
    client.register(bridge).await.unwrap();
    assert_eq!(client.plugin_names(), ["mcp-bridge"]);
    let names: Vec<String> = client.tool_definitions().into_iter().map(|tool| tool.name).collect();
    assert!(
        names.contains(&"mcp_one_echo".to_owned()) && names.contains(&"mcp_two_echo".to_owned()),
        "{names:?}"
    );
    assert_eq!(names.iter().filter(|name| name.starts_with("mcp_two_")).count(), 1);
    let answered = run(&client, "mcp_two_echo", json!({"message": "hello"})).await.unwrap();
    assert!(answered.to_string().contains("hello"), "{answered}");
    assert_eq!((calls(&one), calls(&two)), (0, 1));
    // What does not fit never leaves, and foreign names are nobody's.
    assert!(run(&client, "mcp_one_echo", json!({"message": 7})).await.is_err());
    assert_eq!(calls(&one), 0);
    let foreign = ToolCall::new(CallId::mint(), "mcp_three_echo", json!({}));
    assert_eq!(
        client.execute(&foreign).await.unwrap_err().to_string(),
        "No executor for tool: mcp_three_echo"
    );
    client.unregister("mcp-bridge").await.unwrap();
    assert!(client.tool_definitions().is_empty());
}

#[tokio::test]
async fn h61_settings_that_cannot_be_are_refused_and_a_server_that_is_not_there_is_said() {
    assert!(mcp_plugin([McpServer::command("a b", "x", [""; 0])]).is_err());
    assert!(mcp_plugin([McpServer::url("a", "ftp://x")]).is_err());
    let twice = mcp_plugin([McpServer::url("a", "http://x"), McpServer::url("a", "http://y")]).unwrap_err();
    assert_eq!(twice.to_string(), "two MCP servers are named a");
    assert!(mcp_plugin_from_file("{}").is_err());
    let client = client();
    let text = r#"{"mcpServers": {"gone": {"command": "no-such-program", "startup_timeout_sec": 2}}}"#;
    let refused = client.register(mcp_plugin_from_file(text).unwrap()).await.unwrap_err().to_string();
    assert!(refused.starts_with("Plugin \"mcp-bridge\": onRegister failed: MCP server gone: "), "{refused}");
    assert!(!client.has_plugin("mcp-bridge"));
}

#[tokio::test]
async fn h63_real_servers_over_stdio_connect_on_register_and_are_gone_after_unregister() {
    let Some(root) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "content of a").unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let database = folder.path().join("a.db").to_string_lossy().into_owned();
    let client = client();
    let sqlite = root.join("sqlite/bin/mcp-server-sqlite").to_string_lossy().into_owned();
    let bridge = mcp_plugin([
        McpServer::command("files", "node", [script(&root, "server-filesystem"), path.clone()]),
        McpServer::command("everything", "node", [script(&root, "server-everything"), "stdio".to_owned()]),
        McpServer::command("sqlite", sqlite, ["--db-path".to_owned(), database]),
    ])
    .unwrap();
    client.register(bridge).await.unwrap();
    let names: Vec<String> = client.tool_definitions().into_iter().map(|tool| tool.name).collect();
    assert!(names.iter().all(|name| !name.contains('-')), "{names:?}");
    let read =
        run(&client, "mcp_files_read_text_file", json!({"path": format!("{path}/a.txt")})).await.unwrap();
    assert!(read.to_string().contains("content of a"), "{read}");
    let refused = run(&client, "mcp_files_read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(refused.is_err(), "{refused:?}");
    let echo = run(&client, "mcp_everything_echo", json!({"message": "hi"})).await.unwrap();
    assert!(echo.to_string().contains("Echo: hi"), "{echo}");
    assert!(client.has_executor("mcp_everything_get_tiny_image"), "a hyphen became an underscore: {names:?}");
    run(&client, "mcp_sqlite_create_table", json!({"query": "CREATE TABLE t (x INTEGER)"})).await.unwrap();
    run(&client, "mcp_sqlite_write_query", json!({"query": "INSERT INTO t VALUES (42)"})).await.unwrap();
    let rows = run(&client, "mcp_sqlite_read_query", json!({"query": "SELECT x FROM t"})).await.unwrap();
    assert!(rows.to_string().contains("42"), "{rows}");
    let ours = || children_with(&path);
    assert!(ours() > 0);
    client.unregister("mcp-bridge").await.unwrap();
    eventually("the programs end", || async { (ours() == 0).then_some(()) }).await;
}

/// Processes that have this text in their command line.
fn children_with(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(text)).count()
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn h61_h63_a_real_server_over_http() {
    let Some(root) = installed() else { return };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new("node");
    command
        .args([script(&root, "server-everything").as_str(), "streamableHttp"])
        .env("PORT", port.to_string());
    let _server = Ends(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    eventually("the server listens", || async { std::net::TcpStream::connect(("127.0.0.1", port)).ok() })
        .await;
    let client = client();
    let bridge = mcp_plugin([McpServer::url("far", format!("http://127.0.0.1:{port}/mcp"))]).unwrap();
    client.register(bridge).await.unwrap();
    let echo = run(&client, "mcp_far_echo", json!({"message": "hi"})).await.unwrap();
    assert!(echo.to_string().contains("Echo: hi"), "{echo}");
    client.unregister("mcp-bridge").await.unwrap();
}

#[tokio::test]
async fn h62_an_agent_uses_the_tools_of_a_bridged_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let yard = Yard::new(json!([])).await;
    yard.client.register(mcp_plugin([faulty("far", "plain", &log).only(["echo"])]).unwrap()).await.unwrap();
    let chat = yard.client.chat(&yard.space, "call mcp_far_echo {\"message\": \"from the agent\"}");
    let response = chat.from(&yard.person).response().await.unwrap();
    assert!(response.text.contains("from the agent"), "{response:?}");
    assert_eq!(calls(&log), 1);
    yard.client.unregister_all().await;
}
