//! Somebody's API: answers every request and keeps what it was asked.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (n, value) = line.split_once(": ")?;
            n.eq_ignore_ascii_case(name).then_some(value)
        })
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(crate) struct FarSide {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    statuses: Arc<Mutex<Vec<u16>>>,
    _task: tokio::task::JoinSet<()>,
}

impl FarSide {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let statuses: Arc<Mutex<Vec<u16>>> = Arc::default();
        let mut task = tokio::task::JoinSet::new();
        let (kept, next) = (asked.clone(), statuses.clone());
        task.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                serve(socket, &kept, &next).await;
            }
        });
        Self { address, asked, statuses, _task: task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The statuses of the next answers; then 200 again. 0 is no answer at all,
    /// on a connection that stays open.
    pub(crate) fn will_answer(&self, statuses: &[u16]) {
        *self.statuses.lock().unwrap() = statuses.to_vec();
    }
}

/// Answers what it was asked, as a careless API does, secrets and all.
async fn serve(mut socket: TcpStream, kept: &Mutex<Vec<Asked>>, statuses: &Mutex<Vec<u16>>) {
    let mut bytes = Vec::new();
    let asked = loop {
        if let Some(asked) = whole(&bytes) {
            break asked;
        }
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let status = {
        let mut next = statuses.lock().unwrap();
        if next.is_empty() { 200 } else { next.remove(0) }
    };
    let auth = asked.header("authorization").unwrap_or_default().to_owned();
    let answer = json!({"line": asked.line, "state": "sent", "youSent": auth}).to_string();
    kept.lock().unwrap().push(asked);
    if status == 0 {
        std::mem::forget(socket);
        return;
    }
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nset-cookie: sid=canary-cookie\r\nx-echo: {auth}\r\nconnection: close\r\ncontent-length: {}",
        answer.len()
    );
    let _ = socket.write_all(format!("{head}\r\n\r\n{answer}").as_bytes()).await;
}

fn whole(bytes: &[u8]) -> Option<Asked> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let (line, head) = head.split_once("\r\n")?;
    let asked = Asked { line: line.to_owned(), head: head.to_owned(), body: body.to_owned() };
    let length = asked.header("content-length").map_or(0, |n| n.parse().unwrap());
    (asked.body.len() >= length).then_some(asked)
}
