//! Tools that a request brings: checked once, then joined to the agent's own.
//!
//! One door for every dialect. What passes it is a [`ToolSpec`] of place
//! `Client` with a compiled schema; a name that the agent has already is a
//! conflict (row H65), because whoever shadows a gateway's tool reads what the
//! model meant for it.

use serde_json::Value;
use toolyard_protocol::agent::OnConflict;
use toolyard_protocol::tool::{ToolSpec, Toolset};
use toolyard_protocol::{ApiError, ErrorCode, KeyKind, Principal, TenantId, ToolName, limits};
use toolyard_schema::{ClientToolSet, DefinitionErrors, Limits, NameRule, ToolSchema};
use toolyard_store::{Tx, plugins};

use crate::agents::{LoadedAgent, LoadedTools, extend_tools};
use crate::refused::Refused;
use crate::runtime::Runtime;
use crate::worker::SEARCH;

/// What stands before a name that is taken.
const PREFIX: &str = "client_";

/// The tools of one request, checked.
#[derive(Debug, Clone, Default)]
pub struct BroughtTools {
    tools: Vec<(ToolSpec, ToolSchema)>,
    warnings: Vec<String>,
}

impl Runtime {
    /// Checks the tools of a request, by the limits of its key and the name
    /// rule of its surface. Selections come before: what is not selected does
    /// not count.
    pub fn accept_client_tools(
        &self,
        by: &Principal,
        names: NameRule,
        definitions: &[Value],
    ) -> Result<BroughtTools, ApiError> {
        if definitions.is_empty() {
            return Ok(BroughtTools::default());
        }
        let rules = &self.settings.client_tools;
        let most = match by.kind {
            KeyKind::Public => rules.public,
            KeyKind::Secret => rules.secret,
        };
        let limits = Limits::request().with_max_tools(most);
        let set = aside(|| ClientToolSet::cached(&self.schemas, definitions, &limits, names));
        let set = set.map_err(refused)?;
        let warnings = set.warnings();
        let tools = set
            .into_parts()
            .map(|(definition, schema)| {
                let spec = definition.client_spec();
                let spec =
                    spec.map_err(|e| invalid(format!("Invalid client tool definitions: {e}"), None))?;
                Ok((spec, schema))
            })
            .collect::<Result<_, ApiError>>()?;
        Ok(BroughtTools { tools, warnings })
    }

    /// The tools that a request brought to an earlier run, under the names that
    /// it gave them.
    pub(crate) fn brought_before(&self, set: &Toolset) -> BroughtTools {
        let again = |spec: &ToolSpec| {
            let name = spec.brought.clone()?;
            let schema = self.schemas.compile(&spec.input_schema, &Limits::request()).ok()?;
            Some((ToolSpec { name, ..spec.clone() }, schema))
        };
        BroughtTools { tools: set.0.iter().filter_map(again).collect(), warnings: Vec::new() }
    }

    /// The agent's tools and those of a request, ready for a run. The run's
    /// toolset is stored by its hash.
    pub(crate) async fn join_client_tools(
        &self,
        tx: &mut Tx<'_>,
        tenant: &TenantId,
        agent: &LoadedAgent,
        brought: &BroughtTools,
    ) -> Result<LoadedTools, Refused> {
        let on_conflict =
            agent.config.client_tools.on_conflict.unwrap_or(self.settings.client_tools.on_conflict);
        let servers = agent.config.mcp.iter().flat_map(|mcp| &mcp.servers);
        let servers = servers.map(|server| format!("mcp_{}_", server.name)).collect();
        let mut later = Later { servers, plugged: Vec::new() };
        for one in agent.config.plugins.iter().flatten() {
            if let Some(installed) = plugins::get(tx, tenant, &one.id).await? {
                let names: Vec<String> = serde_json::from_value(installed.tools).unwrap_or_default();
                later.plugged.extend(names);
            }
        }
        let more = join(&agent.tools.set, &later, on_conflict, &brought.tools)?;
        Ok(extend_tools(&agent.tools, more))
    }
}

impl BroughtTools {
    /// What the caller should hear although its tools are taken.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
    pub fn len(&self) -> usize {
        self.tools.len()
    }
    /// The tools under the names that the request gave them.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|(spec, _)| spec)
    }
}

/// Schemas that nobody has seen before take up to a millisecond each to
/// compile: other requests go on meanwhile.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    let here = tokio::runtime::Handle::try_current();
    match here.map(|handle| handle.runtime_flavor()) {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Names that the agent's tools take while the run goes on.
struct Later {
    /// What stands before the names of servers' tools.
    servers: Vec<String>,
    /// Tools of installed plugins, also of one that is refused just now.
    plugged: Vec<String>,
}

impl Later {
    fn has(&self, name: &str) -> bool {
        self.servers.iter().any(|prefix| name.starts_with(prefix))
            || self.plugged.iter().any(|taken| taken == name)
    }
}

/// The request's tools under the names that the run uses.
fn join(
    own: &Toolset,
    later: &Later,
    on_conflict: OnConflict,
    brought: &[(ToolSpec, ToolSchema)],
) -> Result<Vec<(ToolSpec, ToolSchema)>, ApiError> {
    let taken = |name: &str| name == SEARCH || own.find(name).is_some() || later.has(name);
    let given = |name: &str| brought.iter().any(|(spec, _)| spec.name.as_str() == name);
    let mut joined = Vec::with_capacity(brought.len());
    for (spec, schema) in brought {
        let mut spec = spec.clone();
        if taken(spec.name.as_str()) {
            let other = format!("{PREFIX}{}", spec.name);
            let free = !taken(&other) && !given(&other);
            spec.name = match (on_conflict, ToolName::parse(&other)) {
                (OnConflict::Prefix, Ok(name)) if free => name,
                (OnConflict::Prefix, Ok(_)) => {
                    return Err(conflict(&spec.name, "and client_ before it does not help"));
                }
                (OnConflict::Prefix, Err(_)) => {
                    let most = limits::TOOL_NAME;
                    return Err(conflict(
                        &spec.name,
                        &format!("and with client_ before it has more than {most} characters"),
                    ));
                }
                (OnConflict::Error, _) => return Err(conflict(&spec.name, "choose another one")),
            };
        }
        joined.push((spec, schema.clone()));
    }
    Ok(joined)
}

fn conflict(name: &ToolName, more: &str) -> ApiError {
    let text = format!("The tool name {name} belongs to a tool of the agent: {more}");
    ApiError::new(ErrorCode::ToolNameConflict, text)
}

fn refused(errors: DefinitionErrors) -> ApiError {
    invalid(errors.to_string(), errors.limit())
}

fn invalid(message: String, limit: Option<u64>) -> ApiError {
    ApiError { code: ErrorCode::InvalidToolDefinitions, message, limit }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn brought(names: &[&str]) -> Vec<(ToolSpec, ToolSchema)> {
        let definition = |name: &&str| json!({"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}});
        let definitions: Vec<Value> = names.iter().map(definition).collect();
        let set = ClientToolSet::new(&definitions, &Limits::request(), NameRule::Config).unwrap();
        set.into_parts().map(|(tool, schema)| (tool.client_spec().unwrap(), schema)).collect()
    }

    fn own(names: &[&str]) -> Toolset {
        Toolset(brought(names).into_iter().map(|(spec, _)| spec).collect())
    }

    fn joined(own: &Toolset, on_conflict: OnConflict, names: &[&str]) -> Result<Vec<String>, ApiError> {
        let later = Later { servers: vec!["mcp_files_".to_owned()], plugged: vec!["get_time".to_owned()] };
        let joined = join(own, &later, on_conflict, &brought(names))?;
        Ok(joined.into_iter().map(|(spec, _)| spec.name.to_string()).collect())
    }

    #[test]
    fn h65_row15_a_taken_name_is_a_conflict_or_gets_a_prefix() {
        let own = own(&["weather", "clock"]);
        assert_eq!(joined(&own, OnConflict::Error, &["mine"]).unwrap(), ["mine"]);
        let refused = joined(&own, OnConflict::Error, &["mine", "clock"]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ToolNameConflict);
        assert!(refused.message.contains("clock"), "{}", refused.message);
        assert_eq!(joined(&own, OnConflict::Prefix, &["mine", "clock"]).unwrap(), ["mine", "client_clock"]);
    }

    #[test]
    fn h65_names_of_servers_of_plugins_and_of_the_search_are_kept_free() {
        let own = own(&["weather"]);
        for name in ["mcp_files_read", "get_time", SEARCH] {
            let refused = joined(&own, OnConflict::Error, &[name]).unwrap_err();
            assert_eq!(refused.code, ErrorCode::ToolNameConflict, "{name}");
        }
        assert_eq!(joined(&own, OnConflict::Error, &["mcp_other_read"]).unwrap(), ["mcp_other_read"]);
        assert_eq!(joined(&own, OnConflict::Prefix, &["get_time"]).unwrap(), ["client_get_time"]);
    }

    #[test]
    fn h65_a_prefix_never_takes_a_second_name_or_grows_too_long() {
        let long = "n".repeat(60);
        let own = own(&["weather", "clock", "client_clock", &long]);
        for names in [&["clock"] as &[&str], &["weather", "client_weather"], &[&long]] {
            let refused = joined(&own, OnConflict::Prefix, names).unwrap_err();
            assert_eq!(refused.code, ErrorCode::ToolNameConflict, "{names:?}");
        }
    }
}
