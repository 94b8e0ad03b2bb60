//! What a chat client hears, before it has a form.

use serde_json::Value;
use toolyard_protocol::run::Usage;
use toolyard_protocol::{CallId, MessageId, ToolName, WaitId};

/// Why a step or a message ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    Error,
    Other,
}

impl Finish {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool-calls",
            Self::Length => "length",
            Self::ContentFilter => "content-filter",
            Self::Error => "error",
            Self::Other => "other",
        }
    }
}

/// One thing to say. Parts have ids that are unique within their message.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk<'a> {
    Start {
        message: &'a MessageId,
        metadata: Option<Value>,
    },
    StartStep {
        message: &'a MessageId,
    },
    FinishStep {
        reason: Finish,
        usage: Usage,
    },
    TextStart {
        id: &'a str,
    },
    Text {
        id: &'a str,
        text: &'a str,
    },
    TextEnd {
        id: &'a str,
    },
    ReasoningStart {
        id: &'a str,
    },
    Reasoning {
        id: &'a str,
        text: &'a str,
    },
    ReasoningEnd {
        id: &'a str,
    },
    InputStart {
        call: &'a CallId,
        tool: &'a ToolName,
    },
    Input {
        call: &'a CallId,
        text: &'a str,
    },
    /// The call may run: clients run theirs as soon as they hear it.
    InputAvailable {
        call: &'a CallId,
        tool: &'a ToolName,
        input: &'a Value,
    },
    /// The call was unusable.
    InputError {
        call: &'a CallId,
        tool: &'a ToolName,
        input: &'a Value,
        error: &'a str,
    },
    Output {
        call: &'a CallId,
        output: &'a Value,
        preliminary: bool,
    },
    OutputError {
        call: &'a CallId,
        error: &'a str,
    },
    OutputDenied {
        call: &'a CallId,
        error: &'a str,
    },
    ApprovalRequest {
        wait: &'a WaitId,
        call: &'a CallId,
    },
    Source {
        id: &'a str,
        url: &'a str,
        title: Option<&'a str>,
    },
    /// A source that has no address.
    Document {
        id: &'a str,
        title: &'a str,
        file: &'a str,
    },
    File {
        url: &'a str,
        media_type: &'a str,
    },
    /// Under its own name; the same id again replaces it. A transient one is
    /// heard and not kept.
    Data {
        name: &'a str,
        id: Option<&'a str>,
        data: Value,
        transient: bool,
    },
    Error {
        text: &'a str,
    },
    Abort,
    Finish {
        reason: Finish,
        usage: Usage,
        metadata: Option<Value>,
    },
    /// Nothing follows.
    Done,
}

/// Writes chunks down in one form.
pub trait Voice: Send + Sync {
    fn begin(&mut self, out: &mut String);
    fn say(&mut self, chunk: &Chunk<'_>, out: &mut String);
    fn keep_alive(&self) -> &'static str;
    /// A result may stand without its whole input before it.
    fn knows_bare_results(&self) -> bool {
        true
    }
}
