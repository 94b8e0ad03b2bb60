//! What a server offers, for one caller. Whoever implements [`Desk`] speaks
//! MCP's words as JSON; which era asks, and over which wire, is not its matter.

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::visit::Visit;

/// How a server introduces itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    pub name: String,
    pub title: Option<String>,
    pub version: String,
    pub instructions: Option<String>,
    /// As `initialize` writes them: `{"tools": {}, …}`.
    pub capabilities: Value,
}

/// An answer that is an error of the protocol. What a model should read is no
/// fault: it is a result with `isError`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl Fault {
    pub const INVALID_PARAMS: i32 = -32602;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INTERNAL: i32 = -32603;
    pub const MISSING_CAPABILITY: i32 = -32021;

    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }
    pub fn method(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, method)
    }
    /// The caller would have to be able to do something that it did not declare.
    pub fn needs(capability: &str) -> Self {
        let message = format!("This needs the client capability {capability}");
        let data = json!({ "requiredCapabilities": { capability: {} } });
        Self { code: Self::MISSING_CAPABILITY, message, data: Some(data) }
    }
}

/// What of a server has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

/// A server's side of a conversation with one caller.
pub trait Desk: Send + Sync + 'static {
    fn card(&self) -> Card;

    /// Answers one request. `params` is what the request carried, and the value
    /// is its result; a `tools/call` may answer with `resultType`
    /// `input_required` or `task`.
    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        visit: Visit,
    ) -> BoxFuture<'a, Result<Value, Fault>>;

    /// A tool whose arguments travel in headers too, as it is listed.
    fn tool(&self, _name: &str) -> Option<Value> {
        None
    }

    /// News of its lists. None: they hold as long as their `ttlMs` says.
    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        None
    }
}
