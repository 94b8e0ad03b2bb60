//! Clients that hang up in the middle of a request.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use serde_json::json;

use crate::gateway::{PATIENCE, SECRET};
use crate::yard::{Yard, new_space};

/// Sends a whole request and goes away without reading the answer.
fn post_and_leave(yard: &Yard, path: &str, body: &str) {
    let mut socket = TcpStream::connect(yard.gateway.address()).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nx-secret-key: {SECRET}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        yard.gateway.address(),
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let _ = socket.shutdown(Shutdown::Both);
}

#[tokio::test]
async fn a_run_goes_on_though_the_client_that_started_it_hangs_up() {
    let yard = Yard::new().await;
    for _ in 0..30 {
        let space = new_space(&yard.gateway).await;
        for entity in [&yard.ann, &yard.agent_entity] {
            let path = format!("/api/smart-spaces/{space}/members");
            yard.gateway.post(&path, json!({"entityId": entity})).await;
        }
        let body = json!({"entityId": yard.ann, "content": "say still here"}).to_string();
        post_and_leave(&yard, &format!("/api/smart-spaces/{space}/messages"), &body);
    }
    let started = Instant::now();
    loop {
        let list = yard.gateway.get("/api/runs?limit=200").await;
        let unfinished = |r: &&serde_json::Value| r["status"] != "completed";
        let open = list["runs"].as_array().unwrap().iter().filter(unfinished).count();
        if open == 0 {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{open} runs have no worker");
        tokio::task::yield_now().await;
    }
}
