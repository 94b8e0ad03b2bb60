//! Tasks, messages, parts and artifacts, as both versions mean them. The
//! spelling of each version is in `write` and `read`.

use serde_json::{Map, Value};
use toolyard_protocol::Timestamp;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl State {
    pub const ALL: [State; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];
    /// Nothing leaves these.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }
    /// Somebody outside must act.
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    User,
    Agent,
}

/// What a part holds: one thing.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// Bytes, in base64.
    Raw(String),
    Url(String),
    Data(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub content: Content,
    pub media_type: Option<String>,
    pub filename: Option<String>,
    pub metadata: Option<Map<String, Value>>,
}

impl Part {
    pub fn new(content: Content) -> Self {
        Self { content, media_type: None, filename: None, metadata: None }
    }
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }
    pub fn data(value: Value) -> Self {
        Self::new(Content::Data(value))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    pub context: Option<String>,
    pub task: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub extensions: Vec<String>,
    pub references: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub id: String,
    pub name: Option<String>,
    pub parts: Vec<Part>,
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub state: State,
    pub message: Option<Message>,
    pub at: Timestamp,
    /// Calls in the form of seeds/001, for clients that speak it.
    pub literal_calls: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: String,
    pub context: String,
    pub status: Status,
    /// None: left out.
    pub artifacts: Option<Vec<Artifact>>,
    /// None: left out.
    pub history: Option<Vec<Message>>,
    pub metadata: Option<Map<String, Value>>,
}

/// One item of a stream, or the body of a notification.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Task(Task),
    Message(Message),
    Status {
        task: String,
        context: String,
        status: Status,
        /// The stream ends with it (0.3 says so in the event).
        last: bool,
    },
    Artifact {
        task: String,
        context: String,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    },
}
