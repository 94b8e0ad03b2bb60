//! A server over standard input and output that is another one over HTTP: each
//! line goes out as a request, and what comes back is written as lines.
//!
//! It is one for both eras. Of the older one it keeps the session, opens its
//! stream, and starts a new session by itself if the far side has lost it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use sse_stream::SseStream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use toolyard_egress::{Answer, Door, Header, Letter, Patience, Target, Verb};
use toolyard_protocol::limits;

use crate::wire::line::{Line, Lines};

/// A call may take as long as its caller waits; the far side speaks now and then.
const PATIENCE: Patience =
    Patience { head: Duration::from_secs(24 * 3600), idle: Duration::from_secs(60), bytes: 1 << 40 };
/// Before a stream that ended is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long requests may still take when the input has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Lines that wait to be written. When they are full, answers wait.
const BACKLOG: usize = 64;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The program between a desktop and a gateway.
#[derive(Debug, Clone)]
pub struct Relay {
    far: Arc<Far>,
}

#[derive(Debug)]
struct Far {
    door: Door,
    target: Target,
    headers: Vec<Header>,
    session: Mutex<Session>,
}

/// What is known of a session of the older era.
#[derive(Debug, Default, Clone)]
struct Session {
    id: Option<String>,
    version: Option<String>,
    /// What opened it, to open it again.
    opening: Option<Value>,
}

impl Relay {
    pub fn new(door: Door, target: Target, headers: Vec<Header>) -> Self {
        Self { far: Arc::new(Far { door, target, headers, session: Mutex::default() }) }
    }

    /// Works until the input ends.
    pub async fn run<R, W>(&self, from: R, to: W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (say, mut said) = mpsc::channel::<String>(BACKLOG);
        let writing = async {
            let mut to = to;
            while let Some(line) = said.recv().await {
                let written = to.write_all(format!("{line}\n").as_bytes()).await;
                if written.is_err() || to.flush().await.is_err() {
                    return;
                }
            }
        };
        let mut writing = std::pin::pin!(writing);
        tokio::select! {
            // Nobody speaks any more: what was said is written to its end.
            () = self.read(from, say) => writing.await,
            () = &mut writing => {}
        }
        self.far.close().await;
    }

    async fn read<R: AsyncRead + Unpin>(&self, from: R, say: mpsc::Sender<String>) {
        let mut lines = Lines::new(from, limits::MCP_SERVER_BODY_BYTES);
        let mut tasks = JoinSet::new();
        let mut flying: HashMap<String, AbortHandle> = HashMap::new();
        while let Some(line) = lines.next().await {
            let message = match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Line::Whole(line) => serde_json::from_slice::<Value>(&line),
                Line::TooLong(id) => {
                    let most = limits::MCP_SERVER_BODY_BYTES;
                    let _ = say.send(failed(&json!(id), -32600, &format!("The limit is {most} bytes"))).await;
                    continue;
                }
            };
            let Ok(message) = message else {
                let _ = say.send(failed(&Value::Null, -32700, "This line is not JSON")).await;
                continue;
            };
            while tasks.try_join_next().is_some() {}
            flying.retain(|_, task| !task.is_finished());
            let far = self.far.clone();
            match (message.get("id"), message["method"].as_str()) {
                (Some(_), Some("initialize")) => far.initialize(message, &say).await,
                (Some(id), Some(_)) => {
                    let (id, say) = (id.to_string(), say.clone());
                    flying.insert(id, tasks.spawn(async move { far.request(message, &say).await }));
                }
                (None, Some("notifications/cancelled")) if !far.has_session() => {
                    // Without sessions, hanging up is what takes a request back.
                    let id = message["params"]["requestId"].to_string();
                    if let Some(task) = flying.remove(&id) {
                        task.abort();
                    }
                }
                (None, Some("notifications/initialized")) => {
                    far.notify(message).await;
                    let say = say.clone();
                    tasks.spawn(async move { far.listen(&say).await });
                }
                // Notifications, and answers to what the far side asked.
                (_, _) => far.notify(message).await,
            }
        }
        // What was asked before the input ended is answered, if that does not take long.
        let rest = async {
            while flying.values().any(|task| !task.is_finished()) && tasks.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
        tasks.shutdown().await;
    }
}

fn failed(id: &Value, code: i32, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

impl Far {
    fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_session(&self) -> bool {
        self.session().id.is_some()
    }

    /// The headers that repeat what a message says, for those on the way.
    fn headers(&self, message: &Value) -> Vec<Header> {
        let mut headers = self.headers.clone();
        let session = self.session();
        let own = message["params"]["_meta"][VERSION].as_str().map(str::to_owned);
        let modern = own.is_some();
        if let Some(version) = own.or(session.version) {
            headers.push(Header::plain("mcp-protocol-version", version));
        }
        if !modern {
            headers.extend(session.id.map(|id| Header::plain("mcp-session-id", id)));
            return headers;
        }
        let method = message["method"].as_str().unwrap_or_default();
        headers.push(Header::plain("mcp-method", method.to_owned()));
        let field = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return headers,
        };
        if let Some(name) = message["params"][field].as_str() {
            headers.push(Header::plain("mcp-name", name.to_owned()));
        }
        headers
    }

    async fn send(&self, verb: Verb, message: Option<&Value>) -> Result<Answer, String> {
        let headers = self.headers(message.unwrap_or(&Value::Null));
        let letter = Letter {
            verb,
            target: &self.target,
            headers: &headers,
            accept: if verb == Verb::Get {
                "text/event-stream"
            } else {
                "application/json, text/event-stream"
            },
            body: message.map(|message| Bytes::from(message.to_string())),
            patience: PATIENCE,
        };
        self.door.send(letter).await.map_err(|e| format!("{}: {}", self.target.origin(), e.causes()))
    }

    async fn initialize(&self, message: Value, say: &mpsc::Sender<String>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Session::default();
        let id = message["id"].clone();
        match self.send(Verb::Post, Some(&message)).await {
            Ok(answer) => {
                let session = answer.header("mcp-session-id").map(str::to_owned);
                let mut version = None;
                pass(answer, &id, |line| {
                    version = version
                        .take()
                        .or_else(|| line["result"]["protocolVersion"].as_str().map(str::to_owned));
                    let (say, text) = (say.clone(), line.to_string());
                    async move { say.send(text).await.is_ok() }
                })
                .await;
                let mut held = self.session.lock().unwrap_or_else(PoisonError::into_inner);
                *held = Session { id: session, version, opening: Some(message) };
            }
            Err(why) => {
                let held = Session { opening: Some(message), ..Session::default() };
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = held;
                drop(say.send(failed(&id, -32603, &why)).await);
            }
        }
    }

    /// Opens a session again that the far side has lost.
    async fn reopen(&self) -> bool {
        let Some(opening) = self.session().opening else { return false };
        // The client has had this answer.
        let (silent, _unheard) = mpsc::channel(BACKLOG);
        self.initialize(opening, &silent).await;
        if self.has_session() {
            self.notify(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        self.has_session()
    }

    async fn request(&self, message: Value, say: &mpsc::Sender<String>) {
        let id = message["id"].clone();
        let session = self.session();
        if session.opening.is_some() && session.id.is_none() {
            self.reopen().await;
        }
        let mut answer = self.send(Verb::Post, Some(&message)).await;
        if answer.as_ref().is_ok_and(|answer| answer.status == 404)
            && self.has_session()
            && self.reopen().await
        {
            answer = self.send(Verb::Post, Some(&message)).await;
        }
        match answer {
            Ok(answer) => {
                pass(answer, &id, |line| {
                    let (say, text) = (say.clone(), line.to_string());
                    async move { say.send(text).await.is_ok() }
                })
                .await;
            }
            Err(why) => drop(say.send(failed(&id, -32603, &why)).await),
        }
    }

    async fn notify(&self, message: Value) {
        // Nobody waits for an answer, and there is nobody to tell.
        let _ = self.send(Verb::Post, Some(&message)).await;
    }

    /// What the far side says by itself.
    async fn listen(&self, say: &mpsc::Sender<String>) {
        while self.has_session() {
            let opened = self.session().id;
            if let Ok(answer) = self.send(Verb::Get, None).await {
                if answer.status == 405 {
                    return;
                }
                if answer.is_success() {
                    pass(answer, &Value::Null, |line| {
                        let (say, text) = (say.clone(), line.to_string());
                        async move { say.send(text).await.is_ok() }
                    })
                    .await;
                }
            }
            // Another session has a stream of its own.
            if self.session().id != opened {
                continue;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn close(&self) {
        if self.has_session() {
            let _ = tokio::time::timeout(PAUSE, self.send(Verb::Delete, None)).await;
        }
    }
}

/// Passes the messages of an answer on. A request without an answer gets one.
async fn pass<F, R>(mut answer: Answer, id: &Value, mut each: F)
where
    F: FnMut(&Value) -> R,
    R: Future<Output = bool>,
{
    let mut answered = id.is_null();
    let mut why = format!("The gateway answered {}", answer.status);
    if answer.is_success() && answer.media_type().as_deref() == Some("text/event-stream") {
        why = "The gateway closed the connection before it answered".to_owned();
        let pieces = futures::stream::unfold(answer.body, |mut body| async move {
            let piece = body.next().await.transpose()?;
            Some((piece, body))
        });
        let mut events = std::pin::pin!(SseStream::from_bytes_stream(pieces.boxed()));
        while let Some(Ok(event)) = events.next().await {
            let message = event.data.as_deref().and_then(|data| serde_json::from_str::<Value>(data).ok());
            let Some(message) = message else { continue };
            answered |= message.get("method").is_none() && message.get("id") == Some(id);
            if !each(&message).await {
                return;
            }
        }
    } else if let Ok(bytes) = answer.body.read_all().await
        && let Ok(mut message) = serde_json::from_slice::<Value>(&bytes)
    {
        if message.get("jsonrpc").is_some() {
            // A refusal that names no request is about this one.
            if message["id"].is_null() {
                message["id"] = id.clone();
            }
            answered = true;
            each(&message).await;
        } else if let Some(text) = message.pointer("/error/message").and_then(Value::as_str) {
            why = text.to_owned();
        }
    }
    if !answered {
        let text = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": why } });
        each(&text).await;
    }
}
