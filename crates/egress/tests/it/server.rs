//! A server that answers from a list and keeps what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Each connection gets the next answer and is closed.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(answers: Vec<String>) -> Self {
        Self::on("127.0.0.1:0", answers).await
    }

    pub(crate) async fn on(address: &str, answers: Vec<String>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        let kept = seen.clone();
        task.spawn(async move {
            let mut answers = answers.into_iter();
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !complete(&request) {
                    if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                kept.lock().unwrap().push(String::from_utf8_lossy(&request).to_ascii_lowercase());
                let answer = answers.next().unwrap_or_else(|| ok("done"));
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        Self { port, seen, _task: task }
    }

    /// The requests so far, in lower case.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |n| n.parse().unwrap())
}

pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

pub(crate) fn redirect(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}
