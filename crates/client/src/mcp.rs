//! The MCP bridge: tools of MCP servers that this program reaches, as tools
//! of the agent (rows H61–H63).
//!
//! Names are `mcp_<server>_<tool>` by a table that is made when the servers
//! have told their tools; a name is never taken apart. A call goes to its
//! server with the server's own name of the tool.

mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolyard_egress::Door;
use toolyard_mcp::{
    Call, Doors, Entry, Host, LeftOut, McpTool, Outcome, Owner, ServerSettings, read_entries, read_file_form,
};
use toolyard_protocol::TenantId;
use toolyard_schema::Schemas;

use crate::client::Client;
use crate::error::ClientError;
use crate::plugin::Plugin;
use crate::tool::{CallContext, Failure, Tool, ToolDefinition, ToolOptions};

/// One MCP server: a program to start, or an address.
#[derive(Debug, Clone)]
pub struct McpServer {
    name: String,
    entry: Value,
}

impl McpServer {
    /// A program that speaks over its standard input and output.
    pub fn command<A: Into<String>>(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        Self { name: name.into(), entry: json!({ "command": command.into(), "args": args }) }
    }

    /// A server behind an address (streamable HTTP).
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self { name: name.into(), entry: json!({ "url": url.into() }) }
    }

    /// A variable of the program.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.entry["env"][name] = json!(value.into());
        self
    }

    /// A header of every request, for a server behind an address.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.entry["headers"][name] = json!(value.into());
        self
    }

    /// Only these tools, by the server's own names.
    #[must_use]
    pub fn only<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        let tools: Vec<String> = tools.into_iter().map(Into::into).collect();
        self.entry["allowed_tools"] = json!(tools);
        self
    }
}

/// A plugin of these servers. They start when it is registered.
pub fn mcp_plugin(servers: impl IntoIterator<Item = McpServer>) -> Result<McpPlugin, ClientError> {
    let mut entries = BTreeMap::new();
    for server in servers {
        let bad = |e: serde_json::Error| ClientError::settings(format!("{}: {e}", server.name));
        let entry: Entry = serde_json::from_value(server.entry.clone()).map_err(bad)?;
        if entries.insert(server.name.clone(), entry).is_some() {
            return Err(ClientError::settings(format!("two MCP servers are named {}", server.name)));
        }
    }
    let settings = read_entries(&entries, &variable).map_err(|e| ClientError::settings(e.to_string()))?;
    McpPlugin::new(settings)
}

/// The same from a file in the `mcpServers` form, as other hosts read it.
pub fn mcp_plugin_from_file(text: &str) -> Result<McpPlugin, ClientError> {
    let settings = read_file_form(text, &variable).map_err(|e| ClientError::settings(e.to_string()))?;
    McpPlugin::new(settings)
}

/// `${NAME}` in the settings of a server.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The plugin `mcp-bridge`.
pub struct McpPlugin {
    host: Host,
    servers: Vec<ServerSettings>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    tools: Vec<Arc<Bridged>>,
    left_out: Vec<LeftOut>,
}

impl fmt::Debug for McpPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpPlugin").field("servers", &self.servers.len()).finish_non_exhaustive()
    }
}

fn owner() -> Owner {
    Owner { tenant: TenantId::default_tenant(), entity: None }
}

impl McpPlugin {
    fn new(mut servers: Vec<ServerSettings>) -> Result<Self, ClientError> {
        for server in &mut servers {
            // Whoever names a server wants it: a missing one is said.
            server.required = true;
        }
        let door = Door::operator().map_err(|e| ClientError::settings(e.causes()))?;
        // All addresses are the program's own settings.
        let host = Host::new(Doors { operator: door.clone(), guarded: door }, Schemas::new(), None);
        Ok(Self { host, servers, found: Mutex::default() })
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tools that the model does not get, and why.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.found().left_out.clone()
    }

    /// Asks the servers for their tools again. Then call [`Client::renew`].
    pub async fn discover(&self) -> Result<(), Failure> {
        let patience = Duration::from_secs(1);
        let catalogue = self.host.catalogue(&owner(), &self.servers, patience).await;
        if let Some(missing) = catalogue.missing.first() {
            return Err(format!("MCP server {}: {}", missing.server, missing.why).into());
        }
        let mut found = Found::default();
        for status in self.host.status() {
            found.left_out.extend(status.left_out);
        }
        for tool in &catalogue.tools {
            let Some(settings) = self.servers.iter().find(|known| known.name == tool.server) else {
                continue;
            };
            let name = plain_name(tool, &catalogue.tools);
            match schema::narrowed(&tool.tool.input_schema) {
                Ok(schema) => {
                    // Judged by the gateway as what it is: a tool of an MCP server.
                    let options = ToolOptions {
                        service_id: Some(tool.server.as_str().to_owned()),
                        risk: Some(tool.risk),
                        ..ToolOptions::default()
                    };
                    let about = ToolDefinition { name, description: description(tool), schema, options };
                    let bridged = Bridged {
                        about,
                        tool: tool.clone(),
                        settings: settings.clone(),
                        host: self.host.clone(),
                    };
                    found.tools.push(Arc::new(bridged));
                }
                Err(why) => found.left_out.push(LeftOut { name: tool.tool.raw.clone(), why }),
            }
        }
        *self.found() = found;
        Ok(())
    }
}

/// Client tools have no hyphens. A second tool that would get the same name
/// keeps a mark of its own.
fn plain_name(tool: &McpTool, all: &[McpTool]) -> String {
    let plain = |tool: &McpTool| tool.name.as_str().replace('-', "_");
    let name = plain(tool);
    let first = all.iter().find(|other| plain(other) == name);
    if first.is_none_or(|first| first.name == tool.name) {
        return name;
    }
    let mark = tool.tool.fingerprint.as_str().chars().take(8).collect::<String>();
    let kept: String = name.chars().take(55).collect();
    format!("{kept}_{mark}")
}

fn description(tool: &McpTool) -> String {
    let said = tool.tool.description.trim();
    let said = if said.is_empty() { tool.tool.title.as_deref().unwrap_or_default() } else { said };
    if said.is_empty() {
        return format!("Tool {} of the MCP server {}.", tool.tool.raw, tool.server);
    }
    said.chars().take(1024).collect()
}

#[async_trait]
impl Plugin for McpPlugin {
    fn name(&self) -> &'static str {
        "mcp-bridge"
    }
    fn version(&self) -> &'static str {
        "1.0.0"
    }
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.found().tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }
    async fn on_register(&self, _client: &Client) -> Result<(), Failure> {
        let discovered = self.discover().await;
        if discovered.is_err() {
            self.host.stop().await;
        }
        discovered
    }
    async fn on_unregister(&self) {
        self.host.stop().await;
    }
}

/// One tool of one server.
struct Bridged {
    about: ToolDefinition,
    tool: McpTool,
    settings: ServerSettings,
    host: Host,
}

#[async_trait]
impl Tool for Bridged {
    fn definition(&self) -> ToolDefinition {
        self.about.clone()
    }

    fn is_idempotent(&self) -> bool {
        self.tool.repeats_safely()
    }

    async fn execute(&self, args: Value, _cx: CallContext) -> Result<Value, Failure> {
        // What the narrowed schema could not say is checked here.
        if let Err(errors) = self.tool.tool.schema.check(&args) {
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(texts.join("; ").into());
        }
        let arguments: Map<String, Value> = args.as_object().cloned().unwrap_or_default();
        let mut call = Call::new(self.tool.tool.raw.clone(), arguments);
        call.repeats_safely = self.tool.repeats_safely();
        match self.host.call(&owner(), &self.settings, call).await {
            Outcome::Done(answer) if answer.is_error => Err(answer.for_model().into()),
            Outcome::Done(answer) => Ok(match answer.structured {
                Some(structured) => structured,
                None => Value::String(answer.for_model()),
            }),
            Outcome::Failed(why) | Outcome::NotSent { why, .. } => Err(why.into()),
            Outcome::Unknown(why) => Err(format!("Uncertain: {why}").into()),
            Outcome::Paused(_) => Err("the server asks a person something, which the bridge cannot".into()),
            Outcome::Task(_) => Err("the server answers later, which the bridge cannot wait for".into()),
            Outcome::Canceled => Err("canceled".into()),
        }
    }
}
