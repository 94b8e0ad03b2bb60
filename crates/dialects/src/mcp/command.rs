//! Requests of MCP clients, read once.

use serde_json::{Map, Value};
use toolyard_protocol::{DocumentId, RunId};

/// An error of the protocol: code and sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub code: i32,
    pub message: String,
}

impl Fault {
    pub fn params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }
    fn method(method: &str) -> Self {
        Self { code: -32601, message: format!("Method not found: {method}") }
    }
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    ListTools,
    ListPrompts,
    GetPrompt {
        name: String,
        arguments: Map<String, Value>,
    },
    ListResources {
        after: Option<DocumentId>,
    },
    ReadResource {
        uri: String,
    },
    /// A list that an agent has nothing for: some clients ask whatever a server
    /// says that it has.
    ListNothing {
        of: &'static str,
    },
    Call(ToolUse),
    GetTask {
        run: RunId,
    },
    UpdateTask {
        run: RunId,
        replies: Map<String, Value>,
    },
    CancelTask {
        run: RunId,
    },
}

/// One `tools/call`, the first time or with answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    pub name: String,
    pub arguments: Map<String, Value>,
    /// Answers to what an earlier result asked, by its keys.
    pub replies: Map<String, Value>,
    /// The run that an earlier result was about.
    pub run: Option<RunId>,
}

/// Reads a request.
pub fn command(method: &str, params: &Value) -> Result<Command, Fault> {
    match method {
        "tools/list" => one_page(params, Command::ListTools),
        "prompts/list" => one_page(params, Command::ListPrompts),
        "prompts/get" => {
            Ok(Command::GetPrompt { name: text(params, "name")?, arguments: object(params, "arguments")? })
        }
        "resources/list" => match &params["cursor"] {
            Value::Null => Ok(Command::ListResources { after: None }),
            Value::String(cursor) => {
                let after = DocumentId::parse(cursor);
                let after = after.map_err(|_| Fault::params("cursor: is not one that this server gave"))?;
                Ok(Command::ListResources { after: Some(after) })
            }
            _ => Err(Fault::params("cursor: must be text")),
        },
        "resources/read" => Ok(Command::ReadResource { uri: text(params, "uri")? }),
        "resources/templates/list" => Ok(Command::ListNothing { of: "resourceTemplates" }),
        "tools/call" => Ok(Command::Call(tool_use(params)?)),
        "tasks/get" => Ok(Command::GetTask { run: task(params)? }),
        "tasks/update" => {
            let replies = object(params, "inputResponses")?;
            Ok(Command::UpdateTask { run: task(params)?, replies })
        }
        "tasks/cancel" => Ok(Command::CancelTask { run: task(params)? }),
        other => Err(Fault::method(other)),
    }
}

fn one_page(params: &Value, command: Command) -> Result<Command, Fault> {
    match params.get("cursor").filter(|cursor| !cursor.is_null()) {
        None => Ok(command),
        Some(_) => Err(Fault::params("cursor: there is one page")),
    }
}

fn text(params: &Value, field: &str) -> Result<String, Fault> {
    let text = params[field].as_str().ok_or_else(|| Fault::params(format!("{field}: must be text")))?;
    Ok(text.to_owned())
}

fn tool_use(params: &Value) -> Result<ToolUse, Fault> {
    let state = match &params["requestState"] {
        Value::Null => None,
        Value::String(state) => {
            let unknown = || Fault::params("requestState: is not one that this server gave");
            Some(RunId::parse(state).map_err(|_| unknown())?)
        }
        _ => return Err(Fault::params("requestState: must be text")),
    };
    Ok(ToolUse {
        name: text(params, "name")?,
        arguments: object(params, "arguments")?,
        replies: object(params, "inputResponses")?,
        run: state,
    })
}

fn object(params: &Value, field: &str) -> Result<Map<String, Value>, Fault> {
    match params.get(field) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(_) => Err(Fault::params(format!("{field}: must be an object"))),
    }
}

fn task(params: &Value) -> Result<RunId, Fault> {
    let text = params["taskId"].as_str().ok_or_else(|| Fault::params("taskId: must be text"))?;
    RunId::parse(text).map_err(|_| Fault::params("taskId: there is no such task"))
}

/// The arguments of the tool that asks the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    pub message: Option<String>,
    /// The conversation to go on with.
    pub session: Option<String>,
    /// A run to come back to.
    pub run: Option<RunId>,
}

impl Asking {
    /// A sentence for the model if the arguments do not fit.
    pub fn read(arguments: &Map<String, Value>) -> Result<Self, String> {
        let text = |field: &str| match arguments.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(format!("{field}: must be text that is not empty")),
        };
        if let Some(other) =
            arguments.keys().find(|key| !["message", "session", "run"].contains(&key.as_str()))
        {
            return Err(format!("{other}: there is no such argument; use message, session and run"));
        }
        let run =
            text("run")?.map(|id| RunId::parse(&id).map_err(|_| "run: is not the id of a run".to_owned()));
        let asking = Self { message: text("message")?, session: text("session")?, run: run.transpose()? };
        match (&asking.message, &asking.run) {
            (None, None) => Err("message: say something to the agent".to_owned()),
            (Some(_), Some(_)) => Err("message and run: give one of them".to_owned()),
            _ => Ok(asking),
        }
    }
}
