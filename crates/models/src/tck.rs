//! A model for the public compatibility kit of A2A: the client's message id
//! says what it does. It plays its part through the same run engine as every
//! other model, so what the kit judges is what users get.
//!
//! The A2A dialect hands it the id in a data part named [`MARK`]. Only agents
//! of development mode use it.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};
use toolyard_protocol::message::Part;
use toolyard_protocol::run::{FinishReason, Usage};

use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::model::{Model, ModelStream};
use crate::request::{ChatTurn, Request};

/// The data part that holds `{messageId, version}`.
pub const MARK: &str = "a2a";
/// The tool that makes a task wait for its user.
pub const ASK: &str = "ask_user";

/// Long enough for readers to see that the task works.
const MOMENT: Duration = Duration::from_millis(120);
/// How long the kit of 0.3 wants ordinary work to take.
const WORK: Duration = Duration::from_millis(900);
/// Twice the time that both kits wait for a stream.
const LONG: Duration = Duration::from_millis(4_500);

#[derive(Debug, Clone, Default)]
pub struct Tck;

impl Model for Tck {
    fn stream(&self, request: Request) -> ModelStream {
        let (id, version) = mark(&request);
        let beats = beats(&id, &version, request.tools_on());
        stream::iter(beats)
            .then(async |(pause, item)| {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                item
            })
            .boxed()
    }

    fn provider(&self) -> &str {
        "tck"
    }
}

/// The id and the version of the last message.
fn mark(request: &Request) -> (String, String) {
    let last = request.turns.iter().rev().find_map(|turn| match turn {
        ChatTurn::User { parts, .. } => parts.iter().find_map(|part| match part {
            Part::Data { name, value } if name == MARK => Some(value),
            _ => None,
        }),
        ChatTurn::Assistant { .. } | ChatTurn::ToolResults(_) | ChatTurn::System(_) => None,
    });
    let text = |name: &str| last.and_then(|v| v[name].as_str()).unwrap_or_default().to_owned();
    (text("messageId"), text("version"))
}

type Beat = (Duration, Result<Chunk, ModelError>);

fn beats(id: &str, version: &str, tools_on: bool) -> Vec<Beat> {
    let is = |prefix: &str| id.starts_with(prefix);
    let mut play = Play::default();
    if is("test-resubscribe-message-id") {
        play.wait(LONG);
        play.say("Done after a while");
    } else if is("tck-artifact-text") || is("tck-stream-artifact-text") {
        play.say(if is("tck-stream") { "Streamed text content" } else { "Generated text content" });
    } else if is("tck-artifact-file-url") {
        play.part(file("https://example.com/output.txt"));
    } else if is("tck-artifact-file") || is("tck-stream-artifact-file") {
        play.part(file("data:text/plain;base64,dGNr"));
    } else if is("tck-artifact-data") {
        play.part(Part::Data { name: "result".to_owned(), value: json!({ "key": "value", "count": 42 }) });
    } else if is("tck-message-response") {
        play.say("Direct message response");
        play.part(Part::Data { name: "a2a-message".to_owned(), value: Value::Null });
    } else if is("tck-reject-task") {
        play.beats.push((MOMENT, Err(ModelError::Filtered { detail: Detail::new("rejected") })));
        return play.beats;
    } else if is("tck-input-required") && tools_on {
        play.ask();
    } else if is("tck-stream-001") {
        play.say("Stream hello from TCK");
    } else if is("tck-stream-003") {
        play.say("Stream task lifecycle");
    } else if is("tck-stream-ordering-001") {
        play.say("Ordered output");
    } else if is("tck-stream-artifact-chunked") {
        play.say("chunk-1 ");
        play.wait(MOMENT);
        play.say("chunk-2");
        play.wait(MOMENT);
    } else if version == "0.3" && tools_on {
        // The kit of 0.3 goes on with the same task.
        play.wait(WORK);
        play.ask();
    } else {
        play.say("Hello from TCK");
    }
    play.finish()
}

fn file(url: &str) -> Part {
    Part::File {
        media_type: "text/plain".to_owned(),
        file: None,
        url: Some(url.to_owned()),
        name: Some("output.txt".to_owned()),
    }
}

struct Play {
    beats: Vec<Beat>,
    /// The pause before the next chunk.
    rest: Duration,
    calls: usize,
}

impl Default for Play {
    fn default() -> Self {
        Self { beats: Vec::new(), rest: MOMENT, calls: 0 }
    }
}

impl Play {
    fn wait(&mut self, time: Duration) {
        self.rest += time;
    }
    fn push(&mut self, chunk: Chunk) {
        self.beats.push((std::mem::take(&mut self.rest), Ok(chunk)));
    }
    fn say(&mut self, text: &str) {
        self.push(Chunk::text(text));
    }
    fn part(&mut self, part: Part) {
        self.push(Chunk::Part { part });
    }
    fn ask(&mut self) {
        let index = self.calls;
        self.calls += 1;
        self.push(Chunk::ToolCall {
            index,
            name: ASK.to_owned(),
            args_text: json!({ "question": "What next?" }).to_string(),
            vendor_id: None,
            metadata: Value::Null,
        });
    }
    fn finish(mut self) -> Vec<Beat> {
        self.push(Chunk::Usage { usage: Usage { input_tokens: 1, output_tokens: 1, ..Usage::default() } });
        let reason = if self.calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
        self.push(Chunk::Finish { reason });
        self.beats
    }
}
