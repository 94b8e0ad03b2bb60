//! From JSON text to a checked configuration and its tools.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::execution::{Basic, BasicMode, Execution, Waiting};
use super::{AgentConfig, ClientTarget, ExecutionType, ToolConfig};
use crate::limits;
use crate::name::ToolName;
use crate::risk::Risk;
use crate::tool::{Place, ToolSpec, Toolset, Visibility};

/// Why a configuration is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadConfig {
    pub path: String,
    pub why: String,
}

impl BadConfig {
    pub(super) fn at(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
    }
}

/// Parses a configuration and the static tools in it.
pub fn parse(value: &Value) -> Result<(AgentConfig, Toolset), BadConfig> {
    let config: AgentConfig = typed(value, "")?;
    check(&config)?;
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(config.tools.len());
    for (i, tool) in config.tools.iter().enumerate() {
        let spec = tool_spec(tool, &format!("tools[{i}]"))?;
        if !names.insert(spec.name.clone()) {
            return Err(BadConfig::at(
                format!("tools[{i}].name"),
                format!("tool {} is defined twice", spec.name),
            ));
        }
        tools.push(spec);
    }
    Ok((config, Toolset(tools)))
}

/// Deserializes with the path to the fault.
fn typed<T: DeserializeOwned>(value: &Value, under: &str) -> Result<T, BadConfig> {
    serde_path_to_error::deserialize(value).map_err(|e| {
        let inner = e.path().to_string();
        let path = match (under.is_empty(), inner.as_str()) {
            (true, ".") => "config".to_owned(),
            (true, _) => inner,
            (false, ".") => under.to_owned(),
            (false, _) => format!("{under}.{inner}"),
        };
        BadConfig::at(path, e.into_inner().to_string())
    })
}

fn check(config: &AgentConfig) -> Result<(), BadConfig> {
    if let Some(t) = config.model.temperature
        && !(0.0..=2.0).contains(&t)
    {
        return Err(BadConfig::at("model.temperature", format!("must be between 0 and 2, got {t}")));
    }
    if config.model.max_output_tokens == Some(0) {
        return Err(BadConfig::at("model.maxOutputTokens", "must be at least 1"));
    }
    let named =
        [("model.provider", config.model.provider.as_deref()), ("model.name", Some(&*config.model.name))];
    for (path, text) in named {
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(BadConfig::at(path, "must not be empty"));
        }
    }
    check_uses(config)?;
    config.mcp.as_ref().map_or(Ok(()), super::mcp::check)?;
    config.mcp_server.as_ref().map_or(Ok(()), super::serving::check)?;
    super::plugin::check(config.plugins.as_deref().unwrap_or_default())?;
    check_provider_tools(&config.provider_tools)?;
    let most = limits::RunLimits::default().run_steps;
    if !(1..=most).contains(&config.loop_.max_steps) {
        return Err(BadConfig::at("loop.maxSteps", format!("must be between 1 and {most}")));
    }
    if config.loop_.max_tool_failures == 0 {
        return Err(BadConfig::at("loop.maxToolFailures", "must be at least 1"));
    }
    Ok(())
}

/// The context, the budgets and the form of replies.
fn check_uses(config: &AgentConfig) -> Result<(), BadConfig> {
    let least = limits::CONTEXT_TOKENS_MIN;
    if config.context.max_input_tokens.is_some_and(|most| most < least) {
        return Err(BadConfig::at("context.maxInputTokens", format!("must be at least {least}")));
    }
    let agent = config.budget.agent.as_ref();
    let tokens = [
        ("budget.maxTokens", config.budget.max_tokens),
        ("budget.agent.maxTokens", agent.and_then(|a| a.max_tokens)),
    ];
    if let Some((path, _)) = tokens.into_iter().find(|(_, most)| *most == Some(0)) {
        return Err(BadConfig::at(path, "must be at least 1"));
    }
    let costs = [
        ("budget.maxCostUsd", config.budget.max_cost_usd),
        ("budget.agent.maxCostUsd", agent.and_then(|a| a.max_cost_usd)),
    ];
    let bad = |usd: f64| !usd.is_finite() || usd <= 0.0;
    if let Some((path, _)) = costs.into_iter().find(|(_, most)| most.is_some_and(bad)) {
        return Err(BadConfig::at(path, "must be more than 0"));
    }
    if config.output.as_ref().is_some_and(|output| !output.schema.is_object()) {
        return Err(BadConfig::at("output.schema", "must be an object"));
    }
    Ok(())
}

fn tool_spec(tool: &ToolConfig, path: &str) -> Result<ToolSpec, BadConfig> {
    let execution = execution(tool, path)?;
    let name = match (&tool.name, &execution) {
        (Some(name), _) => name.as_str(),
        (None, Execution::Prebuilt(p)) => p.action.as_str(),
        (None, _) => return Err(BadConfig::at(format!("{path}.name"), "is required")),
    };
    let name = ToolName::parse(name).map_err(|e| BadConfig::at(format!("{path}.name"), e.to_string()))?;
    let place = place(tool, &execution, path)?;
    if matches!((tool.timeout_ms, tool.expires_ms), (Some(0), _) | (_, Some(0))) {
        return Err(BadConfig::at(path, "timeoutMs and expiresMs must be at least 1"));
    }
    if tool.version.as_ref().is_some_and(|v| v.is_empty() || v.len() > limits::TOOL_VERSION) {
        let most = limits::TOOL_VERSION;
        return Err(BadConfig::at(format!("{path}.version"), format!("must have 1 to {most} characters")));
    }
    let visibility = tool.visibility.unwrap_or(match place {
        Place::Client | Place::External => Visibility::Public,
        Place::Gateway | Place::Mcp | Place::Agent => Visibility::Private,
    });
    Ok(ToolSpec {
        description: tool.description.clone().unwrap_or_default(),
        input_schema: input_schema(tool, &execution, path)?,
        risk: tool.risk.unwrap_or_else(|| Risk::of_name(name.as_str())),
        name,
        execution,
        place,
        visibility,
        approval: tool.approval,
        answerers: tool.answerers,
        timeout_ms: tool.timeout_ms,
        expires_ms: tool.expires_ms,
        if_absent: tool.if_absent.unwrap_or_default(),
        idempotent: tool.idempotent.unwrap_or(false),
        trusted: tool.trusted.unwrap_or(false),
        service_id: None,
        deprecated: tool.deprecated.clone(),
        category: tool.category.clone(),
        version: tool.version.clone(),
        brought: None,
    })
}

fn execution(tool: &ToolConfig, path: &str) -> Result<Execution, BadConfig> {
    let kind = tool.execution_type.unwrap_or_default();
    let empty = Value::Object(Map::new());
    // `execution: null` means the same as none (row G9).
    let given = tool.execution.as_ref().filter(|v| !v.is_null()).unwrap_or(&empty);
    let at = format!("{path}.execution");
    Ok(match kind {
        ExecutionType::Basic => Execution::Basic(typed(given, &at)?),
        ExecutionType::Request => Execution::Request(typed(given, &at)?),
        ExecutionType::ImageGenerator => Execution::ImageGenerator(typed(given, &at)?),
        ExecutionType::AiAgent => Execution::AiAgent(typed(given, &at)?),
        ExecutionType::Waiting => {
            let waiting: Waiting = typed(given, &at)?;
            if waiting.duration.is_some_and(|d| d > limits::WAITING_MAX_MS) {
                let most = limits::WAITING_MAX_MS;
                return Err(BadConfig::at(format!("{at}.duration"), format!("must be at most {most} ms")));
            }
            Execution::Waiting(waiting)
        }
        ExecutionType::Compute => Execution::Compute(typed(given, &at)?),
        ExecutionType::Prebuilt => Execution::Prebuilt(typed(given, &at)?),
        ExecutionType::RemoteAgent => Execution::RemoteAgent(typed(given, &at)?),
        ExecutionType::Recorder => Execution::Recorder(typed(given, &at)?),
    })
}

fn place(tool: &ToolConfig, execution: &Execution, path: &str) -> Result<Place, BadConfig> {
    let client = matches!(execution, Execution::Basic(Basic { mode: BasicMode::NoExecution, .. }));
    match (client, tool.execution_target, execution) {
        (true, Some(ClientTarget::External), _) => Ok(Place::External),
        (true, _, _) => Ok(Place::Client),
        (false, Some(_), _) => Err(BadConfig::at(
            format!("{path}.executionTarget"),
            "only tools without execution run on a client",
        )),
        (false, None, Execution::AiAgent(_) | Execution::RemoteAgent(_)) => Ok(Place::Agent),
        (false, None, _) => Ok(Place::Gateway),
    }
}

fn input_schema(tool: &ToolConfig, execution: &Execution, path: &str) -> Result<Value, BadConfig> {
    let given = tool.input_schema.clone().filter(|v| !v.is_null());
    if let Some(schema) = given {
        if !schema.is_object() {
            return Err(BadConfig::at(format!("{path}.inputSchema"), "must be a JSON Schema object"));
        }
        return Ok(schema);
    }
    let prompt =
        json!({"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]});
    Ok(match execution {
        Execution::ImageGenerator(_) | Execution::AiAgent(_) | Execution::RemoteAgent(_) => prompt,
        Execution::Waiting(_) => json!({"type": "object", "properties": {
            "duration": {"type": "number", "minimum": 0, "description": "Milliseconds to wait."},
            "seconds": {"type": "number", "minimum": 0, "description": "Seconds to wait."},
            "reason": {"type": "string"}}}),
        Execution::Basic(_)
        | Execution::Request(_)
        | Execution::Compute(_)
        | Execution::Prebuilt(_)
        | Execution::Recorder(_)
        | Execution::Mcp(_)
        | Execution::Plugin(_) => json!({"type": "object", "properties": {}}),
    })
}

/// What they mean is the vendor's business; that they are lists of objects is ours.
fn check_provider_tools(tools: &serde_json::Map<String, Value>) -> Result<(), BadConfig> {
    const VENDORS: [&str; 4] = ["openai", "anthropic", "gemini", "bedrock"];
    let most = limits::PROVIDER_TOOLS;
    for (vendor, list) in tools {
        let at = format!("providerTools.{vendor}");
        if !VENDORS.contains(&vendor.as_str()) {
            return Err(BadConfig::at(at, format!("no such vendor; they are {}", VENDORS.join(", "))));
        }
        let Some(list) = list.as_array().filter(|list| list.iter().all(Value::is_object)) else {
            return Err(BadConfig::at(at, "must be a list of objects"));
        };
        if list.len() > most {
            return Err(BadConfig::at(at, format!("at most {most}")));
        }
    }
    Ok(())
}
