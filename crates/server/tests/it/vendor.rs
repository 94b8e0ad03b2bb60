//! A vendor of models that keeps what it is asked and calls a tool as long as
//! it has one.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::gateway::Folder;

pub(crate) struct Vendor {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Value>>>,
    _task: tokio::task::JoinSet<()>,
}

impl Vendor {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let mut task = tokio::task::JoinSet::new();
        let kept = asked.clone();
        task.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move { serve(socket, &kept).await });
            }
        });
        Self { address, asked, _task: task }
    }

    /// The requests that came, in order.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// A folder whose gateway has it as the provider `far`.
    pub(crate) fn folder(&self) -> Folder {
        let folder = Folder::new();
        let config =
            format!("[providers.far]\nkind = \"openai\"\nbase_url = \"http://{}/v1\"\n", self.address);
        std::fs::write(folder.path().join("toolyard.toml"), config).unwrap();
        folder
    }
}

async fn serve(mut socket: TcpStream, kept: &Mutex<Vec<Value>>) -> Option<()> {
    let mut bytes = Vec::new();
    let body: Value = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: usize =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                break serde_json::from_slice(&bytes[end + 4..]).ok()?;
            }
        }
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    // Some vendors refuse a choice without tools; this one obeys it.
    let tool = body["tools"][0]["function"]["name"].as_str().filter(|_| body["tool_choice"] != "none");
    let n = kept.lock().unwrap().len();
    let (delta, end) = match tool {
        Some(name) => {
            let function = json!({"name": name, "arguments": "{}"});
            let call = json!({"index": 0, "id": format!("c{n}"), "type": "function", "function": function});
            (json!({"tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"content": "that is all"}), "stop"),
    };
    kept.lock().unwrap().push(body);
    let chunk = |delta: Value, end: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        format!("data: {}\n\n", json!({"id": "c", "model": "m", "choices": [choice]}))
    };
    let text = format!("{}{}data: [DONE]\n\n", chunk(delta, Value::Null), chunk(json!({}), json!(end)));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(format!("{head}{text}").as_bytes()).await.ok()
}
