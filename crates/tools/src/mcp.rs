//! Tools of MCP servers (rows G4, C8 to C10): which ones a run gets, and their
//! calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use toolyard_mcp::{
    Answer, Call, Catalogue, Host, Launch, McpTool, Missing, Outcome, Owner, Paused, ServerSettings, Ticket,
};
use toolyard_protocol::agent::McpServer;
use toolyard_protocol::agent::execution::{Execution, McpCall};
use toolyard_protocol::tool::{IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::{AgentName, CallId, EntityId, Hash, RunId, TenantId};
use toolyard_store::{Store, failpoint};

use crate::files;
use crate::line::Line;
use crate::mcp_ask;
use crate::secrets::Secrets;
use crate::{Asking, CallContext, ToolFailure};

/// How long a step waits for a server that is not ready yet.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions that a task may ask before it is given up.
const TASK_ROUNDS: usize = 32;
/// Characters of base64 from which on a block becomes a file.
const FILE_CHARS: usize = 1024;

/// The gateway's connections, and what an agent may use of them.
#[derive(Debug, Clone)]
pub struct McpTools {
    pub host: Host,
    /// The servers that the operator configured.
    pub operator: Arc<[ServerSettings]>,
    pub secrets: Secrets,
    pub store: Arc<Store>,
}

/// The tools that a run gets now.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    pub tools: Vec<ToolSpec>,
    pub missing: Vec<Missing>,
}

/// What a call brings along from before: what an answerer gave, what the server
/// wants back with it, what the server works on; and the line to its run.
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    pub provided: Option<Arc<Value>>,
    pub state: Option<Arc<Value>>,
    pub ticket: Option<Arc<Value>>,
    pub line: Option<Line>,
}

impl McpTools {
    /// The tools of an agent's servers for one user, outside of a run.
    pub async fn offer_to(
        &self,
        tenant: &TenantId,
        entity: Option<&EntityId>,
        agent: &AgentName,
        servers: &[McpServer],
    ) -> Offer {
        let (Ok(run), Ok(call)) = (RunId::parse("run_none"), CallId::parse("call_none")) else {
            return Offer::default();
        };
        let context = CallContext {
            tenant: tenant.clone(),
            run,
            space: None,
            agent_entity: None,
            agent: agent.clone(),
            trigger: entity.cloned(),
            call,
            trace: None,
        };
        self.offer(&context, servers).await
    }

    /// The tools of an agent's servers for one user, as they are now.
    pub async fn offer(&self, context: &CallContext, servers: &[McpServer]) -> Offer {
        let mut known = Vec::with_capacity(servers.len());
        let mut missing = Vec::new();
        for server in servers {
            match self.settings(&context.tenant, server).await {
                Ok(settings) => known.push(settings),
                Err(why) => missing.extend(unusable(server, why)),
            }
        }
        let catalogue = self.host.catalogue(&owner(context), &known, PATIENCE).await;
        let of =
            |tool: &McpTool| known.iter().find(|s| s.name == tool.server).map(|s| spec(tool, pin(tool, s)));
        let mut tools: Vec<ToolSpec> = catalogue.tools.iter().filter_map(of).collect();
        // What a user can open by a login is offered as that: a way to log in.
        let doors = catalogue.missing.iter().filter(|m| m.needs_login && context.trigger.is_some());
        tools.extend(doors.filter_map(|missing| door(missing.server.as_str())));
        missing.extend(catalogue.missing);
        Offer { tools, missing }
    }

    /// Calls a tool, or goes on with a call that had asked.
    pub(crate) async fn call(
        &self,
        call: &McpCall,
        spec: &ToolSpec,
        args: &Value,
        context: &CallContext,
        servers: &[McpServer],
        resumed: Resumed,
    ) -> Result<Value, ToolFailure> {
        let server = servers.iter().find(|server| server.name == call.server);
        let server = server.ok_or_else(|| tell(format!("The agent has no MCP server {}", call.server)))?;
        let settings = self.settings(&context.tenant, server).await.map_err(tell)?;
        // What was allowed is the tool as it was seen, not one that came in its place.
        let owner = owner(context);
        let now = self.host.catalogue(&owner, std::slice::from_ref(&settings), PATIENCE).await;
        if call.is_login() {
            return self.enter(context, &owner, server, &settings, now).await;
        }
        let known = now.tools.iter().find(|tool| tool.tool.raw == call.tool);
        if known.is_some_and(|tool| pin(tool, &settings) != call.pin) {
            return Err(tell(format!(
                "Tool {} has changed since it was offered. Call it again if it still fits",
                spec.name
            )));
        }
        let arguments = args.as_object().cloned().unwrap_or_default();
        let mut asked = Call::new(&call.tool, arguments);
        asked.repeats_safely = spec.idempotent;
        if let Some(line) = &resumed.line {
            mcp_ask::connect(&mut asked, &call.server, line);
        }
        let paused =
            resumed.state.as_deref().and_then(|state| serde_json::from_value::<Paused>(state.clone()).ok());
        let ticket = resumed.ticket.as_deref().and_then(|t| serde_json::from_value::<Ticket>(t.clone()).ok());
        failpoint!("mcp.before_call");
        let mut outcome = match (ticket, paused, resumed.provided) {
            // It was called before: only its end is asked for.
            (Some(ticket), _, _) => Outcome::Task(ticket),
            (None, Some(paused), Some(provided)) => {
                let replies = replies(&paused, &provided);
                self.host.resume(&owner, &settings, asked.clone(), paused, replies).await
            }
            _ => self.host.call(&owner, &settings, asked.clone()).await,
        };
        for _ in 0..TASK_ROUNDS {
            let Outcome::Task(ticket) = outcome else { break };
            if let Some(line) = &resumed.line {
                line.keep(json!(ticket)).await;
            }
            outcome = self.host.follow(&owner, &settings, ticket, asked.clone()).await;
        }
        // The server has done what it does, and nothing of its answer is kept yet.
        failpoint!("mcp.after_answer");
        match outcome {
            Outcome::Done(answer) if answer.is_error => Err(tell(answer.for_model())),
            Outcome::Done(answer) => Ok(self.value(answer, context).await),
            Outcome::Failed(why) => Err(tell(why)),
            Outcome::NotSent { needs_login: true, why } => {
                let asking = self.ask_login(&owner, &context.agent, server, &settings, &why).await;
                Err(asking.map_or_else(|| tell(why), |asking| ToolFailure::Ask(Box::new(asking))))
            }
            Outcome::NotSent { why, .. } => Err(tell(why)),
            Outcome::Unknown(why) => Err(ToolFailure::Uncertain(why)),
            Outcome::Canceled => Err(ToolFailure::Uncertain("The call was canceled on its way".to_owned())),
            Outcome::Task(_) => {
                Err(ToolFailure::Uncertain("The server's task does not come to an end".to_owned()))
            }
            Outcome::Paused(paused) => Err(ToolFailure::Ask(Box::new(question(&call.server, &paused)))),
        }
    }

    /// The way in of a server that wants a login: asks the user for one, and
    /// says which tools are there once it is done.
    async fn enter(
        &self,
        context: &CallContext,
        owner: &Owner,
        server: &McpServer,
        settings: &ServerSettings,
        now: Catalogue,
    ) -> Result<Value, ToolFailure> {
        let Some(missing) = now.missing.first() else {
            let tools: Vec<&str> = now.tools.iter().map(|tool| tool.name.as_str()).collect();
            return Ok(json!({ "success": true, "server": server.name, "tools": tools }));
        };
        let asking = match missing.needs_login {
            true => self.ask_login(owner, &context.agent, server, settings, &missing.why).await,
            false => None,
        };
        Err(asking.map_or_else(|| tell(&missing.why), |asking| ToolFailure::Ask(Box::new(asking))))
    }

    /// The settings of one server, with the values that its headers refer to.
    pub async fn settings(&self, tenant: &TenantId, server: &McpServer) -> Result<ServerSettings, String> {
        // The operator's servers act with the operator's means: others must be let in.
        let operators = self.operator.iter().find(|known| known.name.as_str() == server.name);
        if server.url.is_none() && operators.is_some_and(|known| !known.tenants.has(tenant)) {
            return Err(format!("{}: this MCP server of the operator is not for this tenant", server.name));
        }
        let mut values: HashMap<String, SecretString> = HashMap::new();
        for text in server.headers.iter().flat_map(|headers| headers.values()).filter_map(Value::as_str) {
            let value = self.secrets.resolve(tenant, text).await.map_err(|e| e.to_string())?;
            values.insert(text.to_owned(), value);
        }
        let reveal = |text: &str| {
            let known = values.get(text).map(|value| SecretString::from(value.expose_secret().to_owned()));
            known.ok_or_else(|| "is not known".to_owned())
        };
        ServerSettings::of_agent(server, &self.operator, &reveal).map_err(|e| e.to_string())
    }

    /// The result as the log keeps it: plain text if it is nothing else, else
    /// all of it, with pictures and sounds as files.
    async fn value(&self, answer: Answer, context: &CallContext) -> Value {
        let plain = answer.structured.is_none()
            && answer.blocks.iter().all(|block| matches!(block, toolyard_mcp::Block::Text { .. }));
        if plain {
            return Value::String(answer.for_model());
        }
        let mut raw = answer.raw;
        let blocks = raw.get_mut("content").and_then(Value::as_array_mut);
        for (n, block) in blocks.into_iter().flatten().enumerate() {
            let inner = match block.get("resource") {
                Some(_) => &mut block["resource"],
                None => block,
            };
            for field in ["data", "blob"] {
                let Some(text) = inner.get(field).and_then(Value::as_str).filter(|t| t.len() > FILE_CHARS)
                else {
                    continue;
                };
                let Ok(bytes) = BASE64_STANDARD.decode(text) else { continue };
                let media =
                    inner.get("mimeType").and_then(Value::as_str).unwrap_or("application/octet-stream");
                let media = media.to_owned();
                if let Ok(id) = files::keep(&self.store, context, n, media, bytes).await {
                    inner[field] = Value::Null;
                    inner["fileId"] = json!(id);
                    inner["url"] = json!(format!("/api/files/{id}"));
                }
            }
        }
        raw
    }
}

fn owner(context: &CallContext) -> Owner {
    Owner { tenant: context.tenant.clone(), entity: context.trigger.clone() }
}

/// An agent that names a server wrongly hears of it as of one that is down.
fn unusable(server: &McpServer, why: String) -> Option<Missing> {
    let name = toolyard_mcp::ServerName::parse(&server.name).ok()?;
    Some(Missing { server: name, why, required: server.required.unwrap_or(false), needs_login: false })
}

/// The tool as its server describes it, and which server that is: a name alone
/// may stand for another one elsewhere.
fn pin(tool: &McpTool, settings: &ServerSettings) -> Hash {
    let place = match &settings.launch {
        Launch::Http(remote) => json!(["http", remote.target.exposed().split(['?', '#']).next()]),
        Launch::Stdio(program) => json!(["stdio", program.command, program.args]),
    };
    Hash::of_json(&json!([tool.tool.fingerprint, place]))
}

/// The tool that stands for all tools of a server until the user has logged in.
fn door(server: &str) -> Option<ToolSpec> {
    let name = format!("mcp_{server}_login");
    let call = McpCall::login(server);
    Some(ToolSpec {
        name: toolyard_protocol::ToolName::parse(&name).ok()?,
        description: format!(
            "Asks the user to log in at the MCP server {server}. Its tools are available after that; call this first if the task needs them."
        ),
        input_schema: json!({ "type": "object", "properties": {} }),
        service_id: Some(server.to_owned()),
        execution: Execution::Mcp(call),
        place: Place::Mcp,
        risk: toolyard_protocol::risk::Risk::Low,
        visibility: Visibility::Private,
        approval: None,
        answerers: None,
        timeout_ms: None,
        expires_ms: None,
        if_absent: IfAbsent::default(),
        idempotent: true,
        // Its result is the gateway's own.
        trusted: true,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    })
}

/// A server's tool in the words of a run.
fn spec(tool: &McpTool, pin: Hash) -> ToolSpec {
    let call = McpCall { server: tool.server.as_str().to_owned(), tool: tool.tool.raw.clone(), pin };
    ToolSpec {
        name: tool.name.clone(),
        description: tool.tool.description.clone(),
        input_schema: tool.tool.input_schema.clone(),
        service_id: Some(call.server.clone()),
        execution: Execution::Mcp(call),
        place: Place::Mcp,
        risk: tool.risk,
        visibility: Visibility::Private,
        approval: None,
        answerers: None,
        timeout_ms: None,
        expires_ms: None,
        if_absent: IfAbsent::default(),
        idempotent: tool.repeats_safely(),
        trusted: tool.trusted,
        deprecated: None,
        category: None,
        version: None,
        brought: None,
    }
}

/// What people are shown of a server's questions. Its own note stays secret.
fn question(server: &str, paused: &Paused) -> Asking {
    let questions: Map<String, Value> =
        paused.questions().map(|(key, question)| (key.to_owned(), json!(question))).collect();
    Asking::Input {
        payload: json!({ "server": server, "message": format!("{server} asks"), "questions": questions }),
        state: json!(paused),
    }
}

/// `{key: answer}` for several questions; for one, the answer itself will do.
/// An answer is `{action, content}`, or the content.
fn replies(paused: &Paused, provided: &Value) -> Map<String, Value> {
    let keys: Vec<&String> = paused.requests.keys().collect();
    let reply = |value: &Value| match value.get("action").and_then(Value::as_str) {
        Some("accept" | "decline" | "cancel") => value.clone(),
        _ => json!({ "action": "accept", "content": value }),
    };
    let by_key = provided.as_object().filter(|given| keys.iter().all(|key| given.contains_key(key.as_str())));
    match (by_key, keys.as_slice()) {
        (Some(given), _) => keys.iter().map(|key| ((*key).clone(), reply(&given[key.as_str()]))).collect(),
        (None, [only]) => [((*only).clone(), reply(provided))].into_iter().collect(),
        (None, _) => keys.iter().map(|key| ((*key).clone(), json!({ "action": "cancel" }))).collect(),
    }
}

fn tell(text: impl Into<String>) -> ToolFailure {
    ToolFailure::TellModel(text.into())
}
