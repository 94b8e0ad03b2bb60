//! Agents as the loop uses them: parsed, their schemas compiled, cached by hash.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use moka::sync::Cache;
use serde_json::Value;
use toolyard_models::{OfferedTool, Wanted};
use toolyard_plugins::hooks::{Crew, Hook};
use toolyard_plugins::shipped::{self, citations::Citations};
use toolyard_protocol::agent::execution::Execution;
use toolyard_protocol::agent::{self, AgentConfig, PrebuiltSwitch};
use toolyard_protocol::limits::{self, RunLimits};
use toolyard_protocol::tool::{IfAbsent, ToolSpec, Toolset};
use toolyard_protocol::{AgentName, ApiError, ErrorCode, Hash, TenantId, ToolName};
use toolyard_schema::{Limits, ToolSchema};
use toolyard_store::{StoreError, Tx, agents};
use toolyard_tools::literal;

/// One immutable version of an agent.
#[derive(Debug)]
pub struct LoadedAgent {
    pub hash: Hash,
    pub config: AgentConfig,
    pub tools: Arc<LoadedTools>,
    /// The agents inside its configuration.
    pub children: Vec<LoadedAgent>,
    /// Its plugins that are compiled in, in their order.
    pub crew: Crew,
}

/// A toolset with its compiled schemas.
#[derive(Debug)]
pub struct LoadedTools {
    pub hash: Hash,
    pub set: Toolset,
    pub schemas: HashMap<ToolName, ToolSchema>,
    /// What the model sees.
    pub offered: Vec<OfferedTool>,
    /// Of tools that were called: dear to make, and it never changes.
    fingerprints: HashMap<ToolName, OnceLock<Hash>>,
}

impl LoadedTools {
    fn new(set: Toolset, schemas: HashMap<ToolName, ToolSchema>, offered: Vec<OfferedTool>) -> Self {
        let fingerprints = set.0.iter().map(|tool| (tool.name.clone(), OnceLock::new())).collect();
        Self { hash: set.hash(), set, schemas, offered, fingerprints }
    }

    /// What a permission for one of these tools is given for.
    pub(crate) fn fingerprint(&self, spec: &ToolSpec) -> Hash {
        match self.fingerprints.get(&spec.name) {
            Some(made) => made.get_or_init(|| spec.fingerprint()).clone(),
            None => spec.fingerprint(),
        }
    }
}

impl LoadedAgent {
    /// The model of its configuration.
    pub(crate) fn model(&self) -> Wanted<'_> {
        let own = &self.config.model;
        Wanted { provider: own.provider.as_deref(), name: &own.name, api: own.api, fallback: &own.fallback }
    }

    /// A budget in dollars counts only what has a price.
    pub(crate) fn needs_price(&self) -> bool {
        let budget = &self.config.budget;
        budget.max_cost_usd.is_some() || budget.agent.as_ref().is_some_and(|a| a.max_cost_usd.is_some())
    }

    /// More tools than this are searched, not read.
    pub(crate) fn search_above(&self) -> usize {
        self.config.loop_.search_tools_above.map_or(limits::SEARCH_TOOLS_ABOVE, |n| n as usize)
    }

    /// What bounds a run of this agent.
    pub fn limits(&self, gateway: &RunLimits) -> RunLimits {
        RunLimits {
            max_steps: self.config.loop_.max_steps.min(gateway.run_steps),
            run_steps: gateway.run_steps,
            tool_failures: self.config.loop_.max_tool_failures,
            max_tokens: self.config.budget.max_tokens,
            max_cost: self.config.budget.max_cost_usd.map(millionths),
        }
    }
}

/// Millionths of a dollar, at least one.
pub(crate) fn millionths(dollars: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let millionths = (dollars * 1e6).round().max(1.0) as u64;
    millionths
}

/// Checks a configuration whole: its form, its schemas, and that this release
/// can run its tools.
pub fn check_agent(config: &Value) -> Result<LoadedAgent, ApiError> {
    let refused =
        |text: String| ApiError::new(ErrorCode::InvalidConfig, format!("Invalid agent config: {text}"));
    let mut children = Vec::new();
    let (parsed, mut set) = agent::parse(config).map_err(|e| refused(e.to_string()))?;
    for (i, tool) in set.0.iter_mut().enumerate() {
        toolyard_tools::available(&tool.execution).map_err(|e| refused(format!("tools[{i}]: {e}")))?;
        let has_schema =
            parsed.tools.get(i).is_some_and(|t| t.input_schema.as_ref().is_some_and(|s| !s.is_null()));
        toolyard_tools::complete(tool, has_schema);
        // An agent inside the agent is checked with it; a named one may come later.
        if let Execution::AiAgent(child) = &tool.execution {
            let at = format!("tools[{i}].execution.agentConfig");
            match &child.agent_config {
                Value::String(name) => {
                    AgentName::parse(name).map_err(|e| refused(format!("{at}: {e}")))?;
                }
                inline => {
                    let inner = check_agent(inline).map_err(|e| refused(format!("{at}: {}", e.message)))?;
                    children.push(inner);
                }
            }
        }
        if tool.if_absent == IfAbsent::Fail && !tool.is_client() {
            return Err(refused(format!(
                "tools[{i}].ifAbsent: only tools that clients run can lack a client"
            )));
        }
    }
    if parsed.prebuilt == Some(PrebuiltSwitch::All) {
        toolyard_tools::prebuilt::add_all(&mut set).map_err(|e| refused(format!("prebuilt: {e}")))?;
    }
    let tools = load_tools(set).map_err(refused)?;
    let crew = crew(&parsed).map_err(refused)?;
    Ok(LoadedAgent { hash: Hash::of_json(config), config: parsed, tools: Arc::new(tools), children, crew })
}

/// The plugins that ship. An agent that names none has citations.
fn crew(config: &AgentConfig) -> Result<Crew, String> {
    let Some(plugins) = &config.plugins else {
        let own: [Arc<dyn Hook>; 1] = [Arc::new(Citations::default())];
        return Ok(Crew::new(own));
    };
    let named = plugins.iter().enumerate().filter_map(|(i, one)| {
        let options = one.options.clone().unwrap_or_default();
        let made = shipped::make(one.id.as_str(), &options)?;
        Some(made.map_err(|e| format!("plugins[{i}].options: {e}")))
    });
    named.collect::<Result<Vec<_>, _>>().map(Crew::new)
}

/// Refuses keys that stand in a configuration as they are. For production.
pub fn check_secret_fields(agent: &LoadedAgent) -> Result<(), ApiError> {
    let tools = agent.tools.set.0.iter().enumerate();
    let mut found = tools.filter_map(|(i, tool)| Some(format!("tools[{i}].{}", literal::in_tool(tool)?)));
    let servers = agent.config.mcp.iter().flat_map(|mcp| mcp.servers.iter().enumerate());
    let mut headers = servers.filter_map(|(i, server)| {
        literal::in_map(server.headers.as_ref()?, &format!("mcp.servers[{i}].headers"))
    });
    let Some(path) = found.next().or_else(|| headers.next()) else {
        return agent.children.iter().try_for_each(check_secret_fields);
    };
    Err(ApiError::new(
        ErrorCode::InvalidConfig,
        format!(
            "Invalid agent config: {path}: in production a secret is ${{secret.NAME}} or ${{env.NAME}}, not the text itself"
        ),
    ))
}

pub(crate) fn load_tools(set: Toolset) -> Result<LoadedTools, String> {
    let mut schemas = HashMap::with_capacity(set.0.len());
    for (i, tool) in set.0.iter().enumerate() {
        let schema = ToolSchema::compile(&tool.input_schema, &Limits::trusted())
            .map_err(|e| format!("tools[{i}].inputSchema: {e}"))?;
        schemas.insert(tool.name.clone(), schema);
    }
    let offered = set.0.iter().map(offered).collect();
    Ok(LoadedTools::new(set, schemas, offered))
}

/// A toolset and more tools, whose schemas are compiled already.
pub(crate) fn extend_tools(base: &LoadedTools, more: Vec<(ToolSpec, ToolSchema)>) -> LoadedTools {
    let (mut set, mut schemas, mut seen) = (base.set.clone(), base.schemas.clone(), base.offered.clone());
    for (spec, schema) in more {
        seen.push(offered(&spec));
        schemas.insert(spec.name.clone(), schema);
        set.0.push(spec);
    }
    LoadedTools::new(set, schemas, seen)
}

fn offered(tool: &ToolSpec) -> OfferedTool {
    OfferedTool {
        name: tool.name.to_string(),
        description: match tool.deprecated.as_deref() {
            None => tool.description.clone(),
            Some("") => format!("{} (Deprecated.)", tool.description),
            Some(advice) => format!("{} (Deprecated: {advice})", tool.description),
        },
        schema: tool.input_schema.clone(),
    }
}

/// Loaded agents by (tenant, hash). A version never changes, so an entry is
/// never stale.
#[derive(Debug, Clone)]
pub(crate) struct Agents {
    versions: Cache<(TenantId, Hash), Arc<LoadedAgent>>,
    /// Toolsets that are not just an agent's own.
    toolsets: Cache<(TenantId, Hash), Arc<LoadedTools>>,
}

impl Agents {
    pub(crate) fn new() -> Self {
        Self { versions: Cache::new(512), toolsets: Cache::new(512) }
    }

    /// The version of this hash, if it is in the cache.
    pub(crate) fn cached(&self, tenant: &TenantId, hash: &Hash) -> Option<Arc<LoadedAgent>> {
        self.versions.get(&(tenant.clone(), hash.clone()))
    }

    pub(crate) fn toolset(&self, tenant: &TenantId, hash: &Hash) -> Option<Arc<LoadedTools>> {
        self.toolsets.get(&(tenant.clone(), hash.clone()))
    }

    pub(crate) fn keep_toolset(&self, tenant: &TenantId, tools: LoadedTools) -> Arc<LoadedTools> {
        let tools = Arc::new(tools);
        self.toolsets.insert((tenant.clone(), tools.hash.clone()), tools.clone());
        tools
    }

    /// The version of this hash, from the cache or the transaction's database.
    pub(crate) async fn load(
        &self,
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        hash: &Hash,
    ) -> Result<Found, StoreError> {
        let key = (tenant.clone(), hash.clone());
        if let Some(found) = self.versions.get(&key) {
            return Ok(Found::Agent(found));
        }
        let Some(config) = agents::version(tx, tenant, hash).await? else { return Ok(Found::Nothing) };
        // It was checked when it was stored, by a release that may have known more.
        let loaded = match check_agent(&config) {
            Ok(loaded) => Arc::new(loaded),
            Err(why) => return Ok(Found::Unusable(why.message)),
        };
        self.versions.insert(key, loaded.clone());
        Ok(Found::Agent(loaded))
    }
}

/// What looking for an agent version brings.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Agent(Arc<LoadedAgent>),
    Nothing,
    /// This release cannot run it.
    Unusable(String),
}
