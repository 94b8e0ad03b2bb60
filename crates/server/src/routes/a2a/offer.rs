//! The tools that a client offers, checked before anything is stored.

use serde_json::Value;
use toolyard_dialects::a2a::{Fault, FaultKind, Violation};
use toolyard_protocol::agent::execution::{Basic, Execution};
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::{IfAbsent, Place, ToolSpec, Visibility};
use toolyard_protocol::{KeyKind, ToolName};
use toolyard_schema::{DefinitionError, Limits, NameRule, validate_definitions};

/// Tools of one request with a secret key.
const SECRET_TOOLS: usize = 128;

pub(super) fn tools(given: &[Value], kind: KeyKind) -> Result<Vec<ToolSpec>, Fault> {
    let limits = match kind {
        KeyKind::Public => Limits::request(),
        KeyKind::Secret => Limits::request().with_max_tools(SECRET_TOOLS),
    };
    let found = validate_definitions(given, &limits, NameRule::Config).map_err(|errors| Fault {
        kind: FaultKind::BadParams,
        message: errors.to_string(),
        violations: errors.errors().iter().map(violation).collect(),
    })?;
    found
        .into_iter()
        .zip(given)
        .map(|(definition, raw)| {
            let name = ToolName::parse(&definition.name).map_err(|e| Fault::field("tools", e.to_string()))?;
            let extra = raw.get("function").unwrap_or(raw);
            let risk = extra.get("risk").cloned().and_then(|risk| serde_json::from_value::<Risk>(risk).ok());
            Ok(ToolSpec {
                risk: risk.unwrap_or_else(|| Risk::of_name(name.as_str())),
                name,
                description: definition.description,
                input_schema: definition.schema,
                execution: Execution::Basic(Basic::default()),
                place: Place::Client,
                visibility: Visibility::Public,
                approval: None,
                answerers: None,
                timeout_ms: None,
                expires_ms: extra.get("timeoutMs").and_then(Value::as_u64).filter(|ms| *ms > 0),
                if_absent: IfAbsent::Wait,
                idempotent: false,
                trusted: false,
                service_id: None,
                deprecated: None,
                category: None,
            })
        })
        .collect()
}

fn violation(error: &DefinitionError) -> Violation {
    let field = match error {
        DefinitionError::Tool { index, .. } => format!("tools[{index}]"),
        _ => "tools".to_owned(),
    };
    Violation { field, description: error.to_string() }
}
