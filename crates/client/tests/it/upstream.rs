//! Servers of the outside world, made by hand: a model that follows a script,
//! and a gateway whose streams break where a test wants it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let wanted = format!("{name}:");
        let line = self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&wanted))?;
        Some(line[wanted.len()..].trim().to_owned())
    }
}

/// Answers each request with the bytes that `answer` makes for it, then hangs up.
pub(crate) async fn serve<F>(answer: F) -> (String, Arc<Mutex<Vec<Heard>>>)
where
    F: Fn(usize, &Heard) -> Vec<u8> + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = heard.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let Some(request) = read(&mut socket).await else { continue };
            let count = {
                let mut kept = kept.lock().unwrap();
                kept.push(request.clone());
                kept.len() - 1
            };
            let _ = socket.write_all(&answer(count, &request)).await;
            let _ = socket.shutdown().await;
        }
    });
    (url, heard)
}

async fn read(socket: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        let read = socket.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let request = Heard { head, body: Value::Null };
    let length: usize = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        let read = socket.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
    let body = serde_json::from_slice(&bytes[end..]).unwrap_or_default();
    Some(Heard { body, ..request })
}

pub(crate) fn answer(kind: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// A model that calls `tool` with `{"n": i}` in its first `calls` answers, then
/// says `done`. Answers the configuration of its provider `fake`.
pub(crate) async fn caller(tool: &'static str, calls: usize) -> (String, Arc<Mutex<Vec<Heard>>>) {
    let (url, heard) = serve(move |_, request| {
        let results = request.body["messages"]
            .as_array()
            .map_or(0, |all| all.iter().filter(|message| message["role"] == "tool").count());
        let delta = if results < calls {
            let args = json!({ "n": results }).to_string();
            json!({"tool_calls": [{"index": 0, "id": format!("c{results}"), "type": "function",
                   "function": {"name": tool, "arguments": args}}]})
        } else {
            json!({"content": "done"})
        };
        let finish = if results < calls { "tool_calls" } else { "stop" };
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": delta, "finish_reason": null}]});
        let last = json!({"id": "x", "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": {}, "finish_reason": finish}]});
        answer("text/event-stream", &format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n"))
    })
    .await;
    (format!("[providers.fake]\nkind = \"openai\"\nbase_url = \"{url}\"\n"), heard)
}
