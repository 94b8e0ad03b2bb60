//! What a client wants from a server, and how it went.

use crate::clock::now_ns;
use crate::marker::Marker;

use super::DriveError;
use super::stamps::Stamps;

/// Who runs the tool of an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    None,
    /// The server answers it from its configuration.
    Server,
    /// The run pauses and the client sends the result.
    Client,
}

impl Tool {
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Server => Some("get_time"),
            Self::Client => Some("read_screen"),
        }
    }
}

/// One run to make.
#[derive(Debug, Clone, Copy)]
pub struct Errand {
    pub chunks: u32,
    pub first_ms: u64,
    pub delay_ms: u64,
    pub tool: Tool,
    /// Leave the run where it waits for its client's tool.
    pub abandon: bool,
}

impl Errand {
    /// As fast as the model can.
    pub fn text(chunks: u32) -> Self {
        Self { chunks, first_ms: 0, delay_ms: 0, tool: Tool::None, abandon: false }
    }

    /// Two model calls with a tool between them.
    pub fn tool(tool: Tool, chunks: u32) -> Self {
        Self { tool, ..Self::text(chunks) }
    }

    /// The prompt that makes the mock play this errand.
    pub fn prompt(&self) -> String {
        let tool = self.tool.name().map(str::to_owned);
        let marker = Marker { chunks: self.chunks, first_ms: self.first_ms, delay_ms: self.delay_ms, tool };
        format!("Please help me with this. {marker}")
    }

    /// Pieces of text that must arrive.
    fn expected(&self) -> u32 {
        if self.abandon { 0 } else { self.chunks }
    }
}

/// How one run went, in nanoseconds since it was asked for.
#[derive(Debug)]
pub struct Watch {
    began: u64,
    stamps: Stamps,
    pub first_text: Option<u64>,
    pub paused: Option<u64>,
    pub ended: Option<u64>,
    /// Pieces that came as events of their own, not inside a summary.
    pub live: u32,
    /// From the mock's sending to the client's reading, per piece.
    pub delays: Vec<u64>,
}

impl Watch {
    pub fn start() -> Self {
        Self {
            began: now_ns(),
            stamps: Stamps::default(),
            first_text: None,
            paused: None,
            ended: None,
            live: 0,
            delays: Vec::new(),
        }
    }

    /// Bytes came: what pieces of text are in them?
    pub fn read(&mut self, bytes: &[u8]) {
        let now = now_ns();
        self.stamps.push(bytes, |stamp| self.delays.push(now.saturating_sub(stamp)));
        if self.first_text.is_none() && self.stamps.count() > 0 {
            self.first_text = Some(now.saturating_sub(self.began));
        }
    }

    pub fn pause(&mut self) {
        self.paused.get_or_insert(now_ns().saturating_sub(self.began));
    }

    /// The run has ended, as its client learns now.
    pub fn finish(&mut self) {
        self.ended.get_or_insert(now_ns().saturating_sub(self.began));
    }

    /// Nothing more comes: was anything lost?
    pub fn end(mut self, errand: &Errand) -> Result<Self, DriveError> {
        self.finish();
        let (got, want) = (self.stamps.count(), errand.expected());
        if got == want { Ok(self) } else { Err(DriveError::Missing { got, want }) }
    }
}
