//! The models that agents and requests may name.

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use toolyard_protocol::{ErrorCode, KeyKind};
use toolyard_runtime::ModelRecord;

use super::answer;
use super::call::Call;
use crate::http::Refusal;

/// Dollars for a million tokens.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PriceView {
    input: f64,
    output: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelView {
    /// What requests name.
    id: String,
    name: String,
    description: String,
    provider: String,
    /// The vendor's name for it.
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u32>,
    supports_tool_calling: bool,
    supports_reasoning: bool,
    /// What the operator says of the form of answers. Missing: the vendor and
    /// the model's name decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    supports_structured_output: Option<bool>,
    /// Media types of files that it reads; empty means text alone. Missing:
    /// nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<String>>,
    /// The temperature if nobody says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    /// Its provider is configured.
    available: bool,
    /// Models that take over when it is out of order; secret keys only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallback: Vec<String>,
    /// Secret keys only.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<PriceView>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelList {
    models: Vec<ModelView>,
}

/// `GET /api/models`: what is configured, by id.
pub(super) async fn list(call: Call) -> Result<Response, Refusal> {
    let secret = call.principal.kind == KeyKind::Secret;
    let registry = call.app.runtime.registry();
    let models = registry.list().map(|(record, available)| view(record, available, secret)).collect();
    answer::json(200, &ModelList { models })
}

/// The model that a request names. A backend may name any; a user only those
/// of the list, because somebody pays for them.
pub(super) fn named(call: &Call, name: Option<String>) -> Result<Option<String>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    if call.principal.kind == KeyKind::Secret {
        return Ok(Some(name));
    }
    let text = match call.app.runtime.registry().list().find(|(record, _)| record.id == name) {
        Some((_, true)) => return Ok(Some(name)),
        Some((_, false)) => format!("Model {name:?} is not available"),
        None => format!("Model {name:?} is not one of GET /api/models"),
    };
    Err(Refusal::new(ErrorCode::ModelNotFound, text))
}

fn view(record: &ModelRecord, available: bool, secret: bool) -> ModelView {
    let record = record.clone();
    let price = record.price.filter(|_| secret).map(|price| PriceView {
        input: price.input,
        output: price.output,
        cached: price.cached,
        cache_write: price.cache_write,
    });
    ModelView {
        id: record.id,
        name: record.name,
        description: record.description,
        provider: record.provider,
        model: record.model,
        max_tokens: record.max_output_tokens,
        context_tokens: record.context_tokens,
        supports_tool_calling: record.tools,
        supports_reasoning: record.reasoning,
        supports_structured_output: record.structured_output,
        files: record.files,
        temperature: record.temperature,
        available,
        fallback: if secret { record.fallback } else { Vec::new() },
        price,
    }
}
