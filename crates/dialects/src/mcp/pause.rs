//! What a run waits for, as questions to a client's user, and their answers.
//!
//! MCP asks people with forms of simple fields, and with addresses to open.
//! Approvals, inputs and the calls of client tools become forms; a login is an
//! address. Who may not answer a wait is not asked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolyard_protocol::wait::WaitKind;
use toolyard_protocol::{CallId, ToolName, ToolOutcome, WaitId};

use crate::history::result_value;

/// Something that a paused run waits for, as far as its reader may know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Open {
    pub wait: WaitId,
    pub kind: WaitKind,
    pub call: CallId,
    pub tool: ToolName,
    pub payload: Option<Value>,
    pub may_answer: bool,
}

/// Which questions a client can put to its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Able {
    pub form: bool,
    pub url: bool,
    pub tasks: bool,
}

impl Able {
    /// As a client declares it. `elicitation: {}` means forms.
    pub fn read(capabilities: &Value) -> Self {
        let asks = capabilities.get("elicitation").filter(|asks| asks.is_object());
        let has = |kind: &str| asks.is_some_and(|asks| asks.get(kind).is_some_and(Value::is_object));
        Self {
            form: asks.is_some_and(|asks| has("form") || asks.get("url").is_none()),
            url: has("url"),
            tasks: capabilities.pointer("/extensions/io.modelcontextprotocol~1tasks").is_some(),
        }
    }
}

/// What a user said to a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    Allow,
    Deny(Option<String>),
    Provide(Value),
    Outcome(ToolOutcome),
    /// Something else ends the wait, such as a login.
    Nothing,
}

const SAID_NO: &str = "The user said no";

impl Open {
    /// The requests that ask for it: `{key: {method, params}}`.
    pub fn requests(&self, able: Able) -> Map<String, Value> {
        let mut requests = Map::new();
        if !self.may_answer {
            return requests;
        }
        for (name, question) in self.questions() {
            let fits = match &question {
                Question::Form { .. } => able.form,
                Question::Url { .. } => able.url,
            };
            if fits {
                requests.insert(self.key(name.as_deref()), question.request(&self.wait));
            }
        }
        requests
    }

    fn key(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("{}.{name}", self.wait),
            None => self.wait.to_string(),
        }
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.payload.as_ref().and_then(|payload| payload.get(name)).filter(|value| !value.is_null())
    }

    fn questions(&self) -> Vec<(Option<String>, Question)> {
        let tool = &self.tool;
        let message = self.field("message").and_then(Value::as_str).filter(|text| !text.is_empty());
        match self.kind {
            WaitKind::Approval => {
                let args = self.field("args").map(Value::to_string).unwrap_or_default();
                let message = format!("May the tool {tool} run? {args}");
                vec![(None, Question::form(message.trim(), approval_schema()))]
            }
            WaitKind::Client => {
                let args = self.payload.as_ref().map(Value::to_string).unwrap_or_default();
                let message = format!("The agent wants its client to run the tool {tool} with {args}.");
                vec![(None, Question::form(&message, result_schema()))]
            }
            WaitKind::Credential => {
                let url = self.field("loginUrl").and_then(Value::as_str);
                let message = message.unwrap_or("The agent needs a login.").to_owned();
                url.map(|url| (None, Question::Url { message, url: url.to_owned() })).into_iter().collect()
            }
            WaitKind::Input => {
                let nested = self.field("questions").and_then(Value::as_object);
                if let Some(nested) = nested {
                    return nested
                        .iter()
                        .filter_map(|(key, q)| Some((Some(key.clone()), passed(q)?)))
                        .collect();
                }
                let named = format!("The tool {tool} asks for input.");
                let schema = self.form_schema().cloned().unwrap_or_else(|| self.answer_schema());
                vec![(None, Question::form(message.unwrap_or(&named), schema))]
            }
            WaitKind::Child | WaitKind::Timer => Vec::new(),
        }
    }

    /// The asked-for schema, if a form can show it: an object of simple fields.
    fn form_schema(&self) -> Option<&Value> {
        let schema = self.field("schema")?;
        let simple = |field: &Value| {
            matches!(field["type"].as_str(), Some("string" | "number" | "integer" | "boolean"))
        };
        let fields = schema.get("properties").and_then(Value::as_object)?;
        (schema["type"] == "object" && fields.values().all(simple)).then_some(schema)
    }

    /// A form of one field for everything else.
    fn answer_schema(&self) -> Value {
        let asked = self.field("schema").filter(|schema| {
            matches!(schema["type"].as_str(), Some("string" | "number" | "integer" | "boolean"))
        });
        let about = self.field("schema").filter(|_| asked.is_none());
        let field = match (asked, about) {
            (Some(asked), _) => asked.clone(),
            (None, Some(about)) => json!({ "type": "string", "description": format!("JSON of {about}") }),
            (None, None) => json!({ "type": "string" }),
        };
        json!({ "type": "object", "properties": { "answer": field }, "required": ["answer"] })
    }

    /// Reads the answer among a client's replies. None: it is not among them.
    pub fn given(&self, replies: &Map<String, Value>) -> Result<Option<Given>, String> {
        let nested = self.kind == WaitKind::Input && self.field("questions").is_some();
        if nested {
            return Ok(self.nested(replies));
        }
        let Some(reply) = replies.get(self.wait.as_str()) else { return Ok(None) };
        let bad = |why: &str| format!("inputResponses.{}: {why}", self.wait);
        let content = match reply["action"].as_str() {
            Some("accept") => &reply["content"],
            Some("decline" | "cancel") => {
                return Ok(Some(match self.kind {
                    WaitKind::Client => Given::Outcome(ToolOutcome::Failed(SAID_NO.to_owned())),
                    _ => Given::Deny(Some(SAID_NO.to_owned())),
                }));
            }
            _ => return Err(bad("action must be accept, decline or cancel")),
        };
        Ok(Some(match self.kind {
            WaitKind::Approval => match content["decision"].as_str() {
                Some("allow") => Given::Allow,
                Some("deny") => Given::Deny(content["reason"].as_str().map(ToOwned::to_owned)),
                _ => return Err(bad("decision must be allow or deny")),
            },
            WaitKind::Client => match (content["result"].as_str(), content["error"].as_str()) {
                (_, Some(error)) if !error.is_empty() => {
                    Given::Outcome(ToolOutcome::Failed(error.to_owned()))
                }
                (Some(text), _) => Given::Outcome(ToolOutcome::Ok(result_value(text))),
                (None, _) => return Err(bad("must have a result or an error")),
            },
            WaitKind::Input => match self.form_schema() {
                Some(_) => Given::Provide(content.clone()),
                None => {
                    let value = content.get("answer").ok_or_else(|| bad("must have an answer"))?;
                    let read = value.as_str().map(result_value);
                    Given::Provide(read.unwrap_or_else(|| value.clone()))
                }
            },
            WaitKind::Credential | WaitKind::Child | WaitKind::Timer => Given::Nothing,
        }))
    }

    /// Questions of a server behind the agent: all their answers, as they are.
    fn nested(&self, replies: &Map<String, Value>) -> Option<Given> {
        let questions = self.field("questions")?.as_object()?;
        let mut answers = Map::new();
        for key in questions.keys() {
            let reply = replies.get(&self.key(Some(key)))?;
            answers.insert(key.clone(), reply.clone());
        }
        Some(Given::Provide(Value::Object(answers)))
    }

    /// For results of clients that cannot ask.
    pub fn view(&self) -> Value {
        json!({ "wait": self.wait, "kind": self.kind, "tool": self.tool })
    }

    pub fn sentence(&self) -> String {
        let tool = &self.tool;
        match self.kind {
            WaitKind::Client => format!("a client that runs the tool {tool}"),
            WaitKind::Approval => format!("a permission for the tool {tool}"),
            WaitKind::Credential => format!("a login for the tool {tool}"),
            WaitKind::Input | WaitKind::Child | WaitKind::Timer => format!("an answer to the tool {tool}"),
        }
    }
}

enum Question {
    Form { message: String, schema: Value },
    Url { message: String, url: String },
}

impl Question {
    fn form(message: &str, schema: Value) -> Self {
        Self::Form { message: message.to_owned(), schema }
    }

    fn request(self, wait: &WaitId) -> Value {
        let params = match self {
            Self::Form { message, schema } => {
                json!({ "mode": "form", "message": message, "requestedSchema": schema })
            }
            Self::Url { message, url } => {
                json!({ "mode": "url", "message": message, "url": url, "elicitationId": wait })
            }
        };
        json!({ "method": "elicitation/create", "params": params })
    }
}

/// A question that another MCP server asked the gateway.
fn passed(question: &Value) -> Option<Question> {
    let text = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
    match question["kind"].as_str()? {
        "form" => Some(Question::Form { message: text("message"), schema: question["schema"].clone() }),
        "url" => Some(Question::Url { message: text("message"), url: text("url") }),
        _ => None,
    }
}

fn approval_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "decision": { "type": "string", "title": "Decision", "enum": ["allow", "deny"] },
            "reason": { "type": "string", "title": "Why not", "description": "The agent reads it." },
        },
        "required": ["decision"],
    })
}

fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "result": { "type": "string", "title": "Result", "description": "Text, or JSON as text." },
            "error": { "type": "string", "title": "Error", "description": "If it did not work." },
        },
    })
}
