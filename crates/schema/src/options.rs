//! What a tool definition may say beside its contract. All of it is optional, and fields that
//! nobody knows are passed over: an older gateway must not refuse a newer program's tools.
//!
//! A request cannot lower what protects people: there is no field that gives permission, and a
//! risk that it names only counts if it is higher than what the tool's name suggests.

use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_protocol::limits;
use toolyard_protocol::risk::Risk;
use toolyard_protocol::tool::IfAbsent;

/// The optional fields of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOptions {
    /// The version of the schema (row L29).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Set if the tool should not be used any more: what to use instead, or nothing (row L30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The MCP service behind it: such a tool is judged as a tool of an MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// How long its program may work on one call (row L32).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a run waits for its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_absent: Option<IfAbsent>,
}

/// An optional field that says nothing usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    #[error("`{field}` must be {expected}")]
    Form { field: &'static str, expected: &'static str },
    #[error("`{field}` must have 1 to {limit} bytes")]
    Length { field: &'static str, limit: usize },
    #[error("`{field}` must be a whole number of milliseconds from 1 to {limit}")]
    Time { field: &'static str, limit: u64 },
    #[error("`{field}` has the hidden character U+{character:04X}", character = u32::from(*.character))]
    HiddenCharacter { field: &'static str, character: char },
}

impl BadOption {
    pub(crate) const fn limit(&self) -> Option<u64> {
        match self {
            Self::Length { limit, .. } => Some(*limit as u64),
            Self::Time { limit, .. } => Some(*limit),
            Self::Form { .. } | Self::HiddenCharacter { .. } => None,
        }
    }
}

impl ToolOptions {
    pub(crate) fn parse(fields: &Map<String, Value>) -> Result<Self, BadOption> {
        Ok(Self {
            version: text(fields, "version", limits::TOOL_VERSION)?,
            deprecated: deprecated(fields)?,
            category: text(fields, "category", limits::TOOL_LABEL)?,
            service_id: text(fields, "serviceId", limits::TOOL_LABEL)?,
            risk: word(fields, "risk", "\"low\", \"medium\" or \"high\"", |word| match word {
                "low" => Some(Risk::Low),
                "medium" => Some(Risk::Medium),
                "high" => Some(Risk::High),
                _ => None,
            })?,
            timeout_ms: time(fields, "timeoutMs", limits::CLIENT_EXPIRES_MS)?,
            expires_ms: time(fields, "expiresMs", limits::WAITING_MAX_MS)?,
            if_absent: word(fields, "ifAbsent", "\"wait\" or \"fail\"", |word| match word {
                "wait" => Some(IfAbsent::Wait),
                "fail" => Some(IfAbsent::Fail),
                _ => None,
            })?,
        })
    }
}

fn given<'f>(fields: &'f Map<String, Value>, field: &str) -> Option<&'f Value> {
    fields.get(field).filter(|value| !value.is_null())
}

fn text(fields: &Map<String, Value>, field: &'static str, limit: usize) -> Result<Option<String>, BadOption> {
    let Some(value) = given(fields, field) else { return Ok(None) };
    let Value::String(text) = value else { return Err(BadOption::Form { field, expected: "a string" }) };
    if text.is_empty() || text.len() > limit {
        return Err(BadOption::Length { field, limit });
    }
    visible(field, text)?;
    Ok(Some(text.clone()))
}

/// `true`, or what to use instead.
fn deprecated(fields: &Map<String, Value>) -> Result<Option<String>, BadOption> {
    match given(fields, "deprecated") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(String::new())),
        Some(Value::String(_)) => text(fields, "deprecated", limits::TOOL_ADVICE),
        Some(_) => Err(BadOption::Form { field: "deprecated", expected: "true, false or a text" }),
    }
}

fn word<T>(
    fields: &Map<String, Value>,
    field: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, BadOption> {
    let Some(value) = given(fields, field) else { return Ok(None) };
    let read = value.as_str().and_then(read);
    read.map(Some).ok_or(BadOption::Form { field, expected })
}

fn time(fields: &Map<String, Value>, field: &'static str, limit: u64) -> Result<Option<u64>, BadOption> {
    let Some(value) = given(fields, field) else { return Ok(None) };
    match value.as_u64().filter(|time| (1..=limit).contains(time)) {
        Some(time) => Ok(Some(time)),
        None => Err(BadOption::Time { field, limit }),
    }
}

fn visible(field: &'static str, text: &str) -> Result<(), BadOption> {
    match crate::text::find_hidden(text) {
        None => Ok(()),
        Some(hidden) => Err(BadOption::HiddenCharacter { field, character: hidden.character }),
    }
}
