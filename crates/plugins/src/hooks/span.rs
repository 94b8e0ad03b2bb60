//! A piece of time in a trace, as OpenTelemetry means it.

use serde_json::Value;

/// One span. Ids are in hexadecimal, times in nanoseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Span {
    /// 32 signs.
    pub trace: String,
    /// 16 signs.
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub start: u64,
    pub end: u64,
    pub attributes: Vec<(String, Value)>,
    /// What went wrong.
    pub error: Option<String>,
    pub kind: SpanKind,
}

/// Where the work of a span is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// Inside of the gateway.
    #[default]
    Internal,
    /// At somebody whom the gateway asks.
    Client,
}
