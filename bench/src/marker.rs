//! What the mock model shall answer, written into the prompt.
//!
//! The mark travels through any server as plain text, so the same mock serves
//! every server and every scenario.

use std::fmt;

const OPEN: &str = "[[answer ";
const CLOSE: &str = "]]";

/// An order to the mock model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Text pieces of the answer.
    pub chunks: u32,
    /// Pause before the first piece.
    pub first_ms: u64,
    /// Pause before each further piece; 0 means as fast as possible.
    pub delay_ms: u64,
    /// The tool to call first. The text follows when its result is there.
    pub tool: Option<String>,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chunks, first_ms, delay_ms, tool } = self;
        let tool = tool.as_deref().unwrap_or("-");
        write!(f, "{OPEN}chunks={chunks} first={first_ms} delay={delay_ms} tool={tool}{CLOSE}")
    }
}

impl Marker {
    /// The last mark of a request, and what follows it.
    pub fn last(request: &str) -> Option<(Self, &str)> {
        let start = request.rfind(OPEN)? + OPEN.len();
        let (fields, rest) = request.get(start..)?.split_once(CLOSE)?;
        let mut marker = Self { chunks: 0, first_ms: 0, delay_ms: 0, tool: None };
        for field in fields.split(' ') {
            match field.split_once('=')? {
                ("chunks", n) => marker.chunks = n.parse().ok()?,
                ("first", n) => marker.first_ms = n.parse().ok()?,
                ("delay", n) => marker.delay_ms = n.parse().ok()?,
                ("tool", "-") => marker.tool = None,
                ("tool", name) => marker.tool = Some(name.to_owned()),
                _ => return None,
            }
        }
        Some((marker, rest))
    }
}
