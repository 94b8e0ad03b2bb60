//! What the operator says of a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model under a name of the operator's.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelEntry {
    /// A configured provider.
    pub(crate) provider: String,
    /// The vendor's name for the model.
    pub(crate) model: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Tokens that it writes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_tokens: Option<u32>,
    /// Tokens that it reads at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u32>,
    /// It can call tools.
    #[serde(default = "yes")]
    pub(crate) tools: bool,
    /// It can show its thinking.
    #[serde(default)]
    pub(crate) reasoning: bool,
    /// Its vendor holds it to the form of an answer (`output.schema`). Without
    /// this, what is known of the vendor and of the model's name decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) structured_output: Option<bool>,
    /// Media types of files that it reads, as `image/*`. An empty list means
    /// text alone; without one it gets all that its provider can carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<Vec<String>>,
    /// The temperature if neither agent nor request says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<ModelPrice>,
    /// Models that take over when this one is busy, out of order or silent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fallback: Vec<String>,
}

fn yes() -> bool {
    true
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelPrice {
    pub(crate) input: f64,
    pub(crate) output: f64,
    /// Input that the vendor had kept. Missing means the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cached: Option<f64>,
    /// Input that the vendor keeps for later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<f64>,
}
