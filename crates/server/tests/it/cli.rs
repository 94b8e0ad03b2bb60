//! The command line, with and without a running gateway.

use std::process::Output;

use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, toolyard};
use crate::yard::agent;

fn run(folder: &Folder, args: &[&str]) -> Output {
    toolyard(folder.path()).args(args).output().unwrap()
}

fn good(folder: &Folder, args: &[&str]) -> Value {
    let Output { status, stdout, stderr } = run(folder, args);
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&stdout).into()))
}

fn bad(folder: &Folder, args: &[&str]) -> String {
    let Output { status, stderr, .. } = run(folder, args);
    assert!(!status.success(), "{args:?}");
    let text = String::from_utf8_lossy(&stderr).into_owned();
    assert!(text.starts_with("toolyard: ") && text.lines().count() == 1, "{text}");
    text
}

#[tokio::test]
async fn without_a_gateway_the_commands_work_on_the_database() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("a.json"), agent("helper").to_string()).unwrap();
    std::fs::write(folder.path().join("b.json"), "{\"agent\":{}}").unwrap();
    assert_eq!(good(&folder, &["agent", "put", "a.json", "--json"])["created"], true);
    assert_eq!(good(&folder, &["agent", "list", "--json"])["agents"][0]["name"], "helper");
    assert_eq!(good(&folder, &["agent", "show", "helper"])["agent"]["name"], "helper");
    assert!(bad(&folder, &["agent", "put", "b.json"]).contains("b.json"));
    assert!(bad(&folder, &["agent", "show", "nobody"]).contains("Agent not found"));
    good(&folder, &["agent", "delete", "helper"]);
    assert!(bad(&folder, &["agent", "delete", "helper"]).contains("Agent not found"));

    let made = good(&folder, &["key", "create", "--tenant", "acme", "--kind", "secret", "--json"]);
    let key = made["key"].as_str().unwrap();
    let listed = run(&folder, &["key", "list", "--json"]);
    assert!(!String::from_utf8_lossy(&listed.stdout).contains(key), "a key is shown once");
    let gateway = Gateway::start_with(folder, &[]).await;
    let asked = gateway.bare(reqwest::Method::GET, "/api/agents").header("x-secret-key", key);
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let (_, _, folder) = gateway.terminate();
    let id = made["id"].as_str().unwrap();
    good(&folder, &["key", "revoke", id, "--tenant", "acme"]);
    assert!(bad(&folder, &["key", "revoke", id, "--tenant", "acme"]).contains("Key not found"));

    assert_eq!(good(&folder, &["run", "list", "--json"])["runs"], json!([]));
    assert!(bad(&folder, &["run", "show", "run_x"]).contains("Run not found"));
    assert_eq!(good(&folder, &["migrate", "--json"])["schemaVersion"], toolyard_store::known_version());
    assert_eq!(good(&folder, &["doctor", "--json"])["ok"], true);
}

#[tokio::test]
async fn with_a_gateway_the_commands_go_through_it() {
    let gateway = Gateway::start().await;
    let folder = &gateway.folder;
    std::fs::write(folder.path().join("a.json"), agent("helper").to_string()).unwrap();
    assert_eq!(good(folder, &["agent", "put", "a.json", "--json"])["created"], true);
    assert_eq!(gateway.get("/api/agents/helper").await["agent"]["name"], "helper");
    let made = good(folder, &["key", "create", "--tenant", "acme", "--kind", "secret", "--json"]);
    let key = made["key"].as_str().unwrap();
    let asked = gateway.bare(reqwest::Method::GET, "/api/agents").header("x-secret-key", key);
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let elsewhere = Folder::new();
    std::fs::write(elsewhere.path().join("b.json"), agent("other").to_string()).unwrap();
    good(&elsewhere, &["agent", "put", "b.json", "--url", &gateway.url]);
    assert_eq!(gateway.get("/api/agents/other").await["agent"]["name"], "other");
    assert!(bad(folder, &["run", "cancel", "run_x"]).contains("Run not found"));
    assert!(bad(folder, &["run", "replay", "run_x", "--step", "2"]).contains("Run not found"));
    let names: Vec<_> = good(folder, &["agent", "list", "--json"])["agents"].as_array().unwrap().clone();
    assert_eq!(names.len(), 2);
    assert_eq!(good(folder, &["agent", "show", "helper"])["agent"]["name"], "helper");
    good(folder, &["agent", "delete", "other"]);
    assert!(bad(folder, &["agent", "show", "other"]).contains("not found"));
    let id = made["id"].as_str().unwrap();
    assert_eq!(good(folder, &["key", "list", "--tenant", "acme", "--json"])["keys"][0]["id"], id);
    good(folder, &["key", "revoke", id, "--tenant", "acme"]);
    assert_eq!(good(folder, &["run", "list", "--json"])["runs"], json!([]));
    assert!(bad(folder, &["run", "show", "run_x"]).contains("Run not found"));
    // A backup does not need a stop.
    assert!(good(folder, &["backup", "copy.db", "--json"])["bytes"].as_u64().unwrap() > 0);
    assert_eq!(good(folder, &["doctor", "--json"])["ok"], true);
}

#[tokio::test]
async fn a_backup_of_a_killed_gateway_holds_everything() {
    let gateway = Gateway::start().await;
    gateway.post("/api/agents", json!({"config": agent("kept")})).await;
    let folder = gateway.kill();
    good(&folder, &["backup", "copy.db"]);
    assert!(bad(&folder, &["backup", "copy.db"]).contains("exists already"));
    let other = Folder::new();
    std::fs::create_dir(other.path().join("data")).unwrap();
    std::fs::rename(folder.path().join("copy.db"), other.path().join("data/toolyard.db")).unwrap();
    assert_eq!(good(&other, &["agent", "list", "--json"])["agents"][0]["name"], "kept");
}

#[test]
fn the_configuration_can_be_checked_printed_and_described() {
    let folder = Folder::new();
    good(&folder, &["config", "check"]);
    let printed = good(&folder, &["config", "print"]).as_str().unwrap().to_owned();
    assert!(printed.contains("listen = \"127.0.0.1:8787\"") && printed.contains("(hidden)"), "{printed}");
    assert!(!printed.contains(crate::gateway::SECRET));
    let again: toml::Table = printed.parse().unwrap();
    assert_eq!(again["drain_seconds"].as_integer(), Some(8));
    let schema = good(&folder, &["config", "schema"]);
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["properties"]["drain_seconds"].is_object());
    std::fs::write(folder.path().join("toolyard.toml"), "redis_url = \"x\"").unwrap();
    assert!(bad(&folder, &["config", "check"]).contains("redis_url"));
    let provider = |more: &str| format!("[providers.mine]\nkind = \"openai\"\n{more}");
    for (file, named) in [
        ("log.level = \"info,toolyard=loud\"".to_owned(), "log.level"),
        (provider("base_url = \"not an address\""), "providers.mine: base_url"),
        (provider("api_key_env = \"A_VARIABLE_THAT_IS_NOT_SET\""), "A_VARIABLE_THAT_IS_NOT_SET"),
    ] {
        std::fs::write(folder.path().join("toolyard.toml"), &file).unwrap();
        let said = bad(&folder, &["config", "check"]);
        assert!(said.contains(named), "{file}: {said}");
        // What a start needs is no matter of the other commands.
        good(&folder, &["config", "print"]);
    }
    assert!(!folder.path().join("data").exists(), "a check opens nothing");
}
