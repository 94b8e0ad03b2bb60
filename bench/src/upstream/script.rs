//! One answer of the mock, written piece by piece.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::Sleep;

use crate::clock::now_ns;
use crate::marker::Marker;

const HEAD: &str = "data: {\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[{\"index\":0,\"delta\":";
const USAGE: &str = "data: {\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"mock\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":20,\"total_tokens\":40}}\n\ndata: [DONE]\n\n";

/// What comes next.
#[derive(Debug)]
enum Next {
    Role,
    Call(String),
    Arguments,
    Text,
    Finish(&'static str),
    Usage,
    Over,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Script {
    next: Next,
    left: u32,
    last_stamp: u64,
    /// When the next piece of text is due, if the text has a pace. Deadlines do
    /// not drift.
    due: Option<Pin<Box<Sleep>>>,
    pause: Duration,
}

impl Script {
    pub(super) fn new(marker: Marker, called: bool) -> Self {
        let Marker { chunks, first_ms, delay_ms, tool } = marker;
        let next = match tool {
            Some(tool) if !called => Next::Call(tool),
            _ => Next::Role,
        };
        let (first, pause) = (Duration::from_millis(first_ms), Duration::from_millis(delay_ms));
        let due = (first_ms + delay_ms > 0).then(|| Box::pin(tokio::time::sleep(first)));
        Self { next, left: chunks, last_stamp: 0, due, pause }
    }

    /// The text of a piece: its time, larger than that of the piece before.
    fn stamp(&mut self) -> u64 {
        self.last_stamp = now_ns().max(self.last_stamp + 1);
        self.last_stamp
    }

    fn write(&mut self) -> Option<String> {
        let (text, next) = match std::mem::replace(&mut self.next, Next::Over) {
            Next::Over => return None,
            Next::Role => (piece("{\"role\":\"assistant\",\"content\":\"\"}", "null"), Next::Text),
            Next::Call(tool) => {
                let delta = format!(
                    "{{\"role\":\"assistant\",\"tool_calls\":[{{\"index\":0,\"id\":\"call_{}\",\"type\":\"function\",\"function\":{{\"name\":\"{tool}\",\"arguments\":\"\"}}}}]}}",
                    self.stamp()
                );
                (piece(&delta, "null"), Next::Arguments)
            }
            Next::Arguments => {
                let delta = "{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}";
                (piece(delta, "null"), Next::Finish("\"tool_calls\""))
            }
            Next::Text if self.left == 0 => (piece("{}", "\"stop\""), Next::Usage),
            Next::Text => {
                self.left -= 1;
                let mut text = String::with_capacity(256);
                // Writing into a text cannot fail.
                let _ = write!(
                    text,
                    "{HEAD}{{\"content\":\"~{} \"}},\"finish_reason\":null}}]}}\n\n",
                    self.stamp()
                );
                (text, Next::Text)
            }
            Next::Finish(why) => (piece("{}", why), Next::Usage),
            Next::Usage => (USAGE.to_owned(), Next::Over),
        };
        self.next = next;
        Some(text)
    }
}

fn piece(delta: &str, finish: &str) -> String {
    format!("{HEAD}{delta},\"finish_reason\":{finish}}}]}}\n\n")
}

impl Body for Script {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let waits = matches!(self.next, Next::Text) && self.left > 0;
        let pause = self.pause;
        if let Some(due) = self.due.as_mut().filter(|_| waits) {
            ready!(due.as_mut().poll(context));
            if pause.is_zero() {
                self.due = None;
            } else {
                let deadline = due.deadline() + pause;
                due.as_mut().reset(deadline);
            }
        }
        Poll::Ready(self.write().map(|text| Ok(Frame::data(Bytes::from(text)))))
    }
}
