//! The loop: ask the model, stream its text, run the gateway's tool, stop at the
//! client's. The run goes on when its client has left.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::mpsc;

use super::disk::{Entry, NotStored};
use super::reply::{Call, Reply};
use super::yard::Yard;
use crate::http::HttpError;

/// The one tool that the server runs itself.
const SERVER_TOOL: &str = "get_time";
const SERVER_RESULT: &str = "{\"success\":true,\"time\":\"12:00\"}";

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the model answered {0}")]
    Refused(hyper::StatusCode),
    #[error("the model's stream is not readable: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the model's stream was cut")]
    Cut,
    #[error(transparent)]
    NotStored(#[from] NotStored),
}

/// Works on a thread until its run ends or waits.
pub(super) async fn advance(yard: Arc<Yard>, thread: String, out: mpsc::Sender<Bytes>) {
    if let Err(broken) = steps(&yard, &thread, &out).await {
        let _ = out.send(frame("failed", &json!({"error": broken.to_string()}).to_string())).await;
    }
}

async fn steps(yard: &Yard, thread: &str, out: &mpsc::Sender<Bytes>) -> Result<(), Broken> {
    loop {
        let reply = ask(yard, thread, out).await?;
        let Some(call) = reply.call else {
            let message = json!({"role": "assistant", "content": reply.text}).to_string();
            keep(yard, vec![Entry { thread: thread.to_owned(), waits_for: None, message }]).await?;
            let _ = out.send(frame("done", "{}")).await;
            return Ok(());
        };
        let Call { id, name, arguments } = call;
        let function = json!({"name": name, "arguments": arguments});
        let message = json!({
            "role": "assistant",
            "content": reply.text,
            "tool_calls": [{"id": id, "type": "function", "function": function}],
        })
        .to_string();
        if name == SERVER_TOOL {
            let asked = Entry { thread: thread.to_owned(), waits_for: None, message };
            let told = result(thread, &id, SERVER_RESULT);
            keep(yard, vec![asked, told]).await?;
            let _ = out.send(frame("result", &json!({"callId": id}).to_string())).await;
            continue;
        }
        let waits_for = Some(id.clone());
        keep(yard, vec![Entry { thread: thread.to_owned(), waits_for, message }]).await?;
        let call = json!({"runId": thread, "callId": id, "name": name, "arguments": arguments});
        let _ = out.send(frame("call", &call.to_string())).await;
        return Ok(());
    }
}

/// One model call; its text goes out piece by piece.
async fn ask(yard: &Yard, thread: &str, out: &mpsc::Sender<Bytes>) -> Result<Reply, Broken> {
    let mut answer = yard.upstream.post("/v1/chat/completions", yard.request(thread)).await?;
    if !answer.status.is_success() {
        return Err(Broken::Refused(answer.status));
    }
    let mut reply = Reply::default();
    while let Some(bytes) = answer.next().await? {
        reply.push(&bytes);
        while let Some(text) = reply.next_text()? {
            let _ = out.send(delta(text)).await;
        }
    }
    if reply.done { Ok(reply) } else { Err(Broken::Cut) }
}

/// A tool's result as the model reads it.
pub(super) fn result(thread: &str, call: &str, content: &str) -> Entry {
    let message = json!({"role": "tool", "tool_call_id": call, "content": content}).to_string();
    Entry { thread: thread.to_owned(), waits_for: None, message }
}

/// Stores, then remembers.
pub(super) async fn keep(yard: &Yard, entries: Vec<Entry>) -> Result<(), NotStored> {
    yard.disk.commit(&entries).await?;
    for entry in &entries {
        yard.remember(entry);
    }
    Ok(())
}

fn delta(text: &str) -> Bytes {
    let mut frame = Vec::with_capacity(48 + text.len());
    frame.extend_from_slice(b"event: delta\ndata: {\"text\":");
    // Writing a text into memory cannot fail.
    let _ = serde_json::to_writer(&mut frame, text);
    frame.extend_from_slice(b"}\n\n");
    Bytes::from(frame)
}

fn frame(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
