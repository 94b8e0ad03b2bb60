//! A model that needs no vendor: the last user message says what it does.
//!
//! It is deterministic, so that README, web app and tests may rely on every
//! word. The commands are in [`grammar`], the words it says in [`HELP`]. It
//! never thinks, never reads earlier messages and never opens a connection.

mod grammar;

use std::collections::VecDeque;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use toolyard_protocol::message::text_of;
use toolyard_protocol::run::{FinishReason, Usage};

use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::model::{Model, ModelStream};
use crate::request::{ChatTurn, PastResult, Request};
use grammar::Command;

pub use grammar::{HELP, SLOW_WORDS_MAX};

/// The pause before each word of `slow`: about 20 words per second.
const SLOW_PAUSE: Duration = Duration::from_millis(50);
/// Characters of a result that the demo repeats.
const RESULT_CHARS: usize = 2000;

/// The demo provider.
#[derive(Debug, Clone)]
pub struct Demo {
    name: String,
}

impl Demo {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

impl Model for Demo {
    fn stream(&self, request: Request) -> ModelStream {
        let reply = Reply::to(&request);
        stream::iter(reply.beats)
            .then(async |beat| {
                if !beat.pause.is_zero() {
                    tokio::time::sleep(beat.pause).await;
                }
                beat.item
            })
            .boxed()
    }

    fn provider(&self) -> &str {
        &self.name
    }
}

/// One item of the stream and the pause before it.
struct Beat {
    pause: Duration,
    item: Result<Chunk, ModelError>,
}

/// A reply while it is written down.
struct Reply {
    beats: VecDeque<Beat>,
    /// All text so far, because citations count its characters.
    text: String,
    calls: usize,
    words: u64,
    failed: bool,
}

impl Reply {
    fn to(request: &Request) -> Self {
        let mut reply =
            Self { beats: VecDeque::new(), text: String::new(), calls: 0, words: 0, failed: false };
        match request.turns.last() {
            Some(ChatTurn::ToolResults(results)) => reply.repeat_results(results),
            _ => reply.obey(&last_user_text(&request.turns), request.tools_on()),
        }
        if !reply.failed {
            reply.finish(words_of_request(request));
        }
        reply
    }

    fn obey(&mut self, text: &str, tools_on: bool) {
        let commands = grammar::parse(text);
        if commands.is_empty() {
            return self.say(HELP);
        }
        for command in commands {
            match command {
                Command::Say(text) => self.say(text),
                Command::Think(text) => self.think(text),
                Command::Slow(words) => self.slow(words),
                Command::Cite(url) => self.cite(url),
                Command::Call { tool, args } if tools_on => self.call(tool, args),
                Command::Call { tool, .. } => {
                    self.say(&format!("Tools are off, so {tool} cannot be called."));
                }
                Command::Broken(why) => self.say(&why),
                Command::Fail => return self.fail(),
            }
        }
    }

    fn push(&mut self, chunk: Chunk) {
        self.push_after(Duration::ZERO, chunk);
    }

    fn push_after(&mut self, pause: Duration, chunk: Chunk) {
        self.beats.push_back(Beat { pause, item: Ok(chunk) });
    }

    /// Each answer of a reply is a line of its own.
    fn new_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
            self.push(Chunk::text("\n"));
        }
    }

    fn say(&mut self, text: &str) {
        self.new_line();
        for word in text.split_inclusive(char::is_whitespace) {
            self.push(Chunk::text(word));
        }
        self.text.push_str(text);
        self.words += count_words(text);
    }

    fn think(&mut self, text: &str) {
        for word in text.split_inclusive(char::is_whitespace) {
            self.push(Chunk::ReasoningDelta { text: word.to_owned() });
        }
        self.words += count_words(text);
    }

    fn slow(&mut self, words: u32) {
        self.new_line();
        for n in 1..=words {
            let word = if n == 1 { "word1".to_owned() } else { format!(" word{n}") };
            self.text.push_str(&word);
            self.push_after(SLOW_PAUSE, Chunk::text(word));
        }
        self.words += u64::from(words);
    }

    fn cite(&mut self, url: &str) {
        const BEFORE: &str = "This answer cites ";
        self.say(&format!("{BEFORE}{url}"));
        let count = |text: &str| u32::try_from(text.chars().count()).ok();
        let end = count(&self.text);
        let start = end.zip(count(url)).map(|(end, url)| end - url);
        let title = Some("Demo source".to_owned());
        self.push(Chunk::Source { url: url.to_owned(), title, start, end });
    }

    fn call(&mut self, tool: &str, args: &str) {
        let index = self.calls;
        self.calls += 1;
        self.words += 1 + count_words(args);
        self.push(Chunk::ToolInputStart { index, name: tool.to_owned() });
        // Two pieces, so that readers meet arguments that are cut.
        let half = args.floor_char_boundary(args.len() / 2);
        for text in [&args[..half], &args[half..]] {
            if !text.is_empty() {
                self.push(Chunk::ToolInputDelta { index, text: text.to_owned() });
            }
        }
        self.push(Chunk::ToolCall {
            index,
            name: tool.to_owned(),
            args_text: args.to_owned(),
            vendor_id: None,
            metadata: serde_json::Value::Null,
        });
    }

    fn repeat_results(&mut self, results: &[PastResult]) {
        for PastResult { name, content, is_error, .. } in results {
            let verb = if *is_error { "failed" } else { "answered" };
            let mut shown: String = content.chars().take(RESULT_CHARS).collect();
            if shown.len() < content.len() {
                shown.push('…');
            }
            self.say(&format!("Tool {name} {verb}: {shown}"));
        }
    }

    fn fail(&mut self) {
        self.failed = true;
        let error = ModelError::RequestRefused {
            status: 400,
            detail: Detail::new("the demo model was asked to fail"),
        };
        let error = if self.beats.is_empty() { error } else { error.after_first_chunk() };
        self.beats.push_back(Beat { pause: Duration::ZERO, item: Err(error) });
    }

    fn finish(&mut self, input_tokens: u64) {
        let usage = Usage { input_tokens, output_tokens: self.words, ..Usage::default() };
        self.push(Chunk::Usage { usage });
        let reason = if self.calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
        self.push(Chunk::Finish { reason });
    }
}

fn last_user_text(turns: &[ChatTurn]) -> String {
    let last = turns.iter().rev().find_map(|turn| match turn {
        ChatTurn::User { parts, .. } => Some(text_of(parts)),
        ChatTurn::Assistant { .. } | ChatTurn::ToolResults(_) | ChatTurn::System(_) => None,
    });
    last.unwrap_or_default()
}

fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn words_of_request(request: &Request) -> u64 {
    let turns = request.turns.iter().map(|turn| match turn {
        ChatTurn::User { parts, .. } | ChatTurn::Assistant { parts, .. } => count_words(&text_of(parts)),
        ChatTurn::ToolResults(results) => results.iter().map(|r| count_words(&r.content)).sum(),
        ChatTurn::System(text) => count_words(text),
    });
    turns.sum::<u64>() + request.system.as_deref().map_or(0, count_words)
}
