//! What a server says in the middle of a call: how far it is, and what it
//! wants to know of the user.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use toolyard_mcp::{Ask, Call, Progress, Question, Reply};

use crate::line::Line;

/// The key of the one question that a server asks in the middle of a call.
const QUESTION: &str = "question";

/// Lets a call speak over its line.
pub(crate) fn connect(call: &mut Call, server: &str, line: &Line) {
    let news = line.clone();
    call.progress = Some(Arc::new(move |now: Progress| {
        let share = now.total.filter(|total| *total > 0.0).map(|total| now.progress / total);
        news.progressed(share.map(|share| share.clamp(0.0, 1.0)), now.message);
    }));
    call.ask = Some(Arc::new(Asker { server: server.to_owned(), line: line.clone() }));
    call.leave = line.leaving().clone();
}

/// Puts a server's question to people, while its call is open.
struct Asker {
    server: String,
    line: Line,
}

impl Ask for Asker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        let payload = json!({
            "server": self.server,
            "message": format!("{} asks", self.server),
            "questions": { QUESTION: question },
        });
        async move { self.line.ask(payload).await.map_or(Reply::Decline, |answer| reply(&answer)) }.boxed()
    }
}

/// An answer is `{action, content}`, or the content; perhaps under its key.
fn reply(answer: &Value) -> Reply {
    let answer = answer.get(QUESTION).unwrap_or(answer);
    match answer.get("action").and_then(Value::as_str) {
        Some("decline") => Reply::Decline,
        Some("cancel") => Reply::Cancel,
        Some("accept") => Reply::Accept(answer.get("content").cloned().unwrap_or_default()),
        _ => Reply::Accept(answer.clone()),
    }
}
