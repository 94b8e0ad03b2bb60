//! The official clients of A2A, unchanged, against the real binary. They are
//! installed by `scripts/setup-a2a-clients`; without them these tests fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::foreign::is_there;
use crate::gateway::{Folder, Gateway, SECRET};
use crate::yard::agent;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where the clients are, if they are there.
fn place() -> Option<PathBuf> {
    let place = std::env::var_os("TOOLYARD_A2A_CLIENTS")
        .map_or_else(|| root().join("target/a2a-clients"), PathBuf::from);
    is_there(&place.join("done"), "scripts/setup-a2a-clients").then_some(place)
}

async fn judge(program: &str, script: &str, base: &str) {
    let Some(place) = place() else { return };
    let gateway = Gateway::start_with(Folder::new(), &[]).await;
    gateway.post("/api/agents", json!({ "config": agent("assistant") })).await;
    let url = format!("{}{base}", gateway.url);
    let script = root().join("tests/a2a-clients").join(script);
    let mut command = Command::new(if program == "node" { "node".into() } else { place.join(program) });
    command.arg(&script).arg(&url).arg(SECRET).env("TOOLYARD_A2A_CLIENTS", &place);
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}\n{err}");
    assert!(out.trim_end().ends_with("all well"), "{out}\n{err}");
}

#[tokio::test]
async fn the_python_client_of_1_0() {
    judge("python-1.0/bin/python", "client_10.py", "/a2a/assistant").await;
}

#[tokio::test]
async fn the_python_client_of_1_0_reads_the_hybrid_card_at_the_root() {
    judge("python-1.0/bin/python", "client_10.py", "").await;
}

#[tokio::test]
async fn the_python_client_of_0_3() {
    judge("python-0.3/bin/python", "client_03.py", "/a2a/assistant").await;
}

#[tokio::test]
async fn the_javascript_client_of_1_0() {
    judge("node", "client_10.mjs", "/a2a/assistant").await;
}

#[tokio::test]
async fn the_javascript_client_of_0_3() {
    judge("node", "client_03.mjs", "/a2a/assistant").await;
}
