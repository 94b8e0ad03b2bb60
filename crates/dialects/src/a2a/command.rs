//! What a request asks for, whatever its binding and version.

use serde_json::Value;
use toolyard_protocol::{RunId, Timestamp, limits};

use super::client_tools::{self, Answer, Offer};
use super::fault::{Fault, FaultKind};
use super::fields::Fields;
use super::literal;
use super::model::{Message, Role, State};
use super::push::{self, PushConfig};
use super::read::{self, Strictness};
use super::version::Version;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Send(Box<Send>),
    Get {
        task: RunId,
        history: Option<u32>,
    },
    List(List),
    Cancel {
        task: RunId,
    },
    Subscribe {
        task: RunId,
    },
    SetPush {
        task: RunId,
        config: PushConfig,
    },
    GetPush {
        task: RunId,
        config: Option<String>,
    },
    ListPush {
        task: RunId,
    },
    DeletePush {
        task: RunId,
        config: String,
    },
    ExtendedCard,
    /// `tasks/resume` of seeds/001.
    Resume {
        task: RunId,
        answers: Vec<Answer>,
    },
}

/// A message to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Send {
    /// Without the parts that are answers.
    pub message: Message,
    pub task: Option<RunId>,
    pub answers: Vec<Answer>,
    pub offer: Option<Offer>,
    /// The caller wants a stream.
    pub stream: bool,
    /// The caller wants the task as it stands at once.
    pub at_once: bool,
    pub history: Option<u32>,
    pub push: Option<PushConfig>,
}

/// Which tasks are listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List {
    pub context: Option<String>,
    pub state: Option<State>,
    pub page_size: u32,
    pub page_token: Option<String>,
    pub history: Option<u32>,
    pub after: Option<Timestamp>,
    pub artifacts: bool,
}

/// Tasks of one page when the caller does not say, and at most.
pub const TASK_PAGE: u32 = limits::PAGE;
pub const TASK_PAGE_MAX: u32 = 100;

/// Methods by their names, in either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
    Resume,
}

impl Method {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "SendMessage" | "message/send" => Self::Send,
            "SendStreamingMessage" | "message/stream" => Self::Stream,
            "GetTask" | "tasks/get" => Self::Get,
            "ListTasks" | "tasks/list" => Self::List,
            "CancelTask" | "tasks/cancel" => Self::Cancel,
            "SubscribeToTask" | "tasks/resubscribe" => Self::Subscribe,
            "CreateTaskPushNotificationConfig" | "tasks/pushNotificationConfig/set" => Self::SetPush,
            "GetTaskPushNotificationConfig" | "tasks/pushNotificationConfig/get" => Self::GetPush,
            "ListTaskPushNotificationConfigs" | "tasks/pushNotificationConfig/list" => Self::ListPush,
            "DeleteTaskPushNotificationConfig" | "tasks/pushNotificationConfig/delete" => Self::DeletePush,
            "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard" => Self::ExtendedCard,
            "tasks/resume" => Self::Resume,
            _ => return None,
        })
    }
}

/// Reads the parameters of a method. Nothing is looked up yet.
pub(super) fn command(method: Method, version: Version, params: &Value) -> Result<Command, Fault> {
    if method == Method::ExtendedCard {
        return Ok(Command::ExtendedCard);
    }
    let fields = Fields::of("", params).map_err(|_| Fault::field("params", "must be an object"))?;
    Ok(match method {
        Method::Send => Command::Send(Box::new(send(&fields, version, false)?)),
        Method::Stream => Command::Send(Box::new(send(&fields, version, true)?)),
        Method::Get => Command::Get { task: task(&fields, "id")?, history: fields.count("historyLength")? },
        Method::List => Command::List(list(&fields)?),
        Method::Cancel => Command::Cancel { task: task(&fields, "id")? },
        Method::Subscribe => Command::Subscribe { task: task(&fields, "id")? },
        Method::SetPush => {
            let task = task(&fields, "taskId")?;
            Command::SetPush { config: push::read(&fields, version, &task)?, task }
        }
        Method::GetPush => {
            let (task, config) = push_names(&fields, version)?;
            if version == Version::V10 && config.is_none() {
                return Err(fields.wrong("id", "is required"));
            }
            Command::GetPush { task, config }
        }
        Method::ListPush => Command::ListPush { task: push_names(&fields, version)?.0 },
        Method::DeletePush => {
            let (task, config) = push_names(&fields, version)?;
            let config = config.ok_or_else(|| match version {
                Version::V10 => fields.wrong("id", "is required"),
                Version::V03 => fields.wrong("pushNotificationConfigId", "is required"),
            })?;
            Command::DeletePush { task, config }
        }
        Method::ExtendedCard => Command::ExtendedCard,
        Method::Resume => {
            Command::Resume { task: task(&fields, "taskId")?, answers: literal::results(&fields)? }
        }
    })
}

/// An id that cannot be one of ours names no task.
fn task(fields: &Fields<'_>, name: &str) -> Result<RunId, Fault> {
    RunId::parse(fields.need_text(name)?).map_err(|_| Fault::task_not_found())
}

/// The task and the configuration: 1.0 calls them `taskId` and `id`, 0.3 `id`
/// and `pushNotificationConfigId`.
fn push_names(fields: &Fields<'_>, version: Version) -> Result<(RunId, Option<String>), Fault> {
    let (owner, own) = match version {
        Version::V10 => ("taskId", "id"),
        Version::V03 => ("id", "pushNotificationConfigId"),
    };
    Ok((task(fields, owner)?, fields.some_text(own)?.map(str::to_owned)))
}

fn send(fields: &Fields<'_>, version: Version, stream: bool) -> Result<Send, Fault> {
    let written = fields.object("message")?.ok_or_else(|| fields.wrong("message", "is required"))?;
    let literal = literal::offer(fields, version)?;
    let how = if literal.is_some() { Strictness::Literal } else { Strictness::Whole };
    let mut message = read::message(&written, version, how)?;
    if message.role == Role::Agent {
        return Err(written.wrong("role", "must be the user's: agents answer here"));
    }
    let around = fields.map("metadata")?;
    let offer = match literal {
        Some(offer) => Some(offer),
        None => Offer::read(&message, around.as_ref())?,
    };
    let (answers, left) = client_tools::answers(std::mem::take(&mut message.parts))?;
    message.parts = left;
    let task = message.task.as_deref().map(RunId::parse).transpose().map_err(|_| Fault::task_not_found())?;
    if !answers.is_empty() && task.is_none() {
        return Err(written.wrong("taskId", "is required with the results of a task"));
    }
    if message.context.as_ref().is_some_and(|c| c.chars().count() > limits::LABEL_CHARS) {
        let most = limits::LABEL_CHARS;
        return Err(written.wrong("contextId", format!("must have at most {most} characters")));
    }
    let settings = fields.object("configuration")?;
    let mut send = Send { message, task, answers, offer, stream, at_once: false, history: None, push: None };
    if let Some(settings) = settings {
        send.history = settings.count("historyLength")?;
        let (at_once, push) = match version {
            Version::V10 => (settings.flag("returnImmediately")?, "taskPushNotificationConfig"),
            Version::V03 => (settings.flag("blocking")?.map(|blocking| !blocking), "pushNotificationConfig"),
        };
        send.at_once = at_once.unwrap_or(false);
        send.push = settings.object(push)?.map(|given| push::read_flat(&given)).transpose()?;
    }
    Ok(send)
}

fn list(fields: &Fields<'_>) -> Result<List, Fault> {
    let state = match fields.some_text("status")? {
        None | Some("TASK_STATE_UNSPECIFIED") => None,
        Some(word) => {
            Some(read::state(word).ok_or_else(|| fields.wrong("status", "must be a state of a task"))?)
        }
    };
    let page_size = match fields.count("pageSize")? {
        None => TASK_PAGE,
        Some(size) if (1..=TASK_PAGE_MAX).contains(&size) => size,
        Some(_) => return Err(fields.wrong("pageSize", format!("must be 1 to {TASK_PAGE_MAX}"))),
    };
    let after = match fields.some_text("statusTimestampAfter")? {
        None => None,
        Some(text) => Some(serde_json::from_value(Value::from(text)).map_err(|_| {
            fields.wrong("statusTimestampAfter", "must be a moment such as 2026-01-31T12:00:00Z")
        })?),
    };
    Ok(List {
        context: fields.some_text("contextId")?.map(str::to_owned),
        state,
        page_size,
        page_token: fields.some_text("pageToken")?.map(str::to_owned),
        history: fields.count("historyLength")?,
        after,
        artifacts: fields.flag("includeArtifacts")?.unwrap_or(false),
    })
}

/// The method is not known in this version.
pub(super) fn no_method(name: &str) -> Fault {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    Fault::new(FaultKind::NoMethod, format!("Method {shown:?} is not known"))
}
