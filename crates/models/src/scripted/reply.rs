//! One reply of the script: what is sent, in which pieces, and how it ends.

use std::time::Duration;

use serde_json::{Value, json};

/// A reply. Build a stream with [`Reply::stream`] and the methods that add
/// events, or take one of the ready ones.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// Each is one write.
    pub(super) writes: Vec<Vec<u8>>,
    pub(super) pace: Duration,
    pub(super) one_byte: bool,
    pub(super) until_close: bool,
    pub(super) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    /// The socket closes after so many bytes of the body.
    Cut(usize),
    /// Nothing follows after so many bytes of the body.
    Hang(usize),
    /// Not even a head is sent.
    Silent,
}

impl Reply {
    fn new(status: u16, media_type: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), media_type.to_owned())],
            writes: Vec::new(),
            pace: Duration::ZERO,
            one_byte: false,
            until_close: false,
            ending: Ending::Whole,
        }
    }

    /// An empty event stream.
    pub fn stream() -> Self {
        Self::new(200, "text/event-stream")
    }

    /// A whole stream that says this text, word by word.
    pub fn saying(text: &str) -> Self {
        let words = text.split_inclusive(' ').fold(Self::stream(), Self::text);
        words.finish("stop").usage(7, text.split_whitespace().count() as u64).done()
    }

    /// A whole stream that calls these tools, arguments cut in pieces.
    pub fn calling(calls: &[(&str, Value)]) -> Self {
        let mut reply = Self::stream();
        for (index, (name, args)) in calls.iter().enumerate() {
            reply = reply.call(index, &format!("vendor_{index}"), name, &args.to_string());
        }
        reply.finish("tool_calls").usage(11, 5).done()
    }

    /// A body that is not streamed.
    pub fn json(body: &Value) -> Self {
        Self::new(200, "application/json").raw(body.to_string())
    }

    /// A refusal in the vendor's form.
    pub fn refusal(status: u16, message: &str) -> Self {
        let body = json!({ "error": { "message": message, "type": "scripted", "code": null } });
        Self::new(status, "application/json").raw(body.to_string())
    }

    /// A refusal with any body.
    pub fn refusing(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json").raw(body.to_string())
    }

    /// A page where a model should be.
    pub fn html(page: &str) -> Self {
        Self::new(200, "text/html; charset=utf-8").raw(page)
    }

    /// Takes the request and says nothing, not even a head.
    pub fn silent() -> Self {
        Self { ending: Ending::Silent, ..Self::stream() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds bytes as they are, as one write.
    pub fn raw(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.writes.push(bytes.into());
        self
    }

    /// Adds an event with this data.
    pub fn event(self, data: &Value) -> Self {
        self.raw(format!("data: {data}\n\n"))
    }

    /// Adds an event with this delta of the first choice.
    pub fn delta(self, delta: &Value) -> Self {
        self.choice(&json!({ "index": 0, "delta": delta, "finish_reason": null }))
    }

    pub fn text(self, text: &str) -> Self {
        self.delta(&json!({ "content": text }))
    }

    pub fn reasoning(self, text: &str) -> Self {
        self.delta(&json!({ "reasoning_content": text }))
    }

    /// A call whose arguments come in three pieces.
    pub fn call(self, index: usize, id: &str, name: &str, args: &str) -> Self {
        let third = |n: usize| args.floor_char_boundary(args.len() * n / 3);
        let start = json!({ "index": index, "id": id, "type": "function",
            "function": { "name": name, "arguments": "" } });
        (0..3).fold(self.delta(&json!({ "tool_calls": [start] })), |reply, n| {
            let piece = &args[third(n)..third(n + 1)];
            let more = json!({ "index": index, "function": { "arguments": piece } });
            reply.delta(&json!({ "tool_calls": [more] }))
        })
    }

    pub fn finish(self, reason: &str) -> Self {
        self.choice(&json!({ "index": 0, "delta": {}, "finish_reason": reason }))
    }

    pub fn usage(self, input: u64, output: u64) -> Self {
        let usage = json!({ "prompt_tokens": input, "completion_tokens": output,
            "total_tokens": input + output });
        let event = json!({ "id": "chatcmpl-scripted", "object": "chat.completion.chunk",
            "model": "scripted-1", "choices": [], "usage": usage });
        self.event(&event)
    }

    pub fn done(self) -> Self {
        self.raw("data: [DONE]\n\n")
    }

    /// A comment that keeps the connection alive and says nothing.
    pub fn comment(self) -> Self {
        self.raw(": keep-alive\n\n")
    }

    fn choice(self, choice: &Value) -> Self {
        let event = json!({ "id": "chatcmpl-scripted", "object": "chat.completion.chunk",
            "model": "scripted-1", "choices": [choice] });
        self.event(&event)
    }

    /// Waits before every write of the body.
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Sends every byte of the body alone.
    pub fn one_byte_writes(mut self) -> Self {
        self.one_byte = true;
        self
    }

    /// Marks the end of the body by closing, as old servers do: a cut is then
    /// no error of the connection.
    pub fn until_close(mut self) -> Self {
        self.until_close = true;
        self
    }

    /// Closes the connection after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::Cut(bytes);
        self
    }

    /// Sends so many bytes of the body, then nothing.
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::Hang(bytes);
        self
    }

    /// Sends all of the body, then nothing.
    pub fn hang(self) -> Self {
        self.hang_after(usize::MAX)
    }

    /// The body in one piece.
    pub fn body(&self) -> Vec<u8> {
        self.writes.concat()
    }
}
