//! How a model is asked to think. The families behind this vendor have a way
//! each; a model without a known way is not asked.

use serde_json::{Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort};

use crate::anthropic::thinking::{Thinking as Claude, takes_temperature};

/// Tokens for the answer beside the thinking, if the agent sets no limit.
const ANSWER_TOKENS: u32 = 8192;

/// What the request says about thinking.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    /// For `additionalModelRequestFields`.
    pub(super) fields: Option<Value>,
    /// A word of `outputConfig`.
    pub(super) effort: Option<&'static str>,
    /// Tokens of a fixed budget; they count as output.
    budget: Option<u32>,
}

impl Thinking {
    pub(super) fn of(model: &str, wish: Option<&Reasoning>) -> Self {
        let Some(wish) = wish.filter(|wish| wish.enabled && wish.effort != Some(ReasoningEffort::None))
        else {
            return Self::default();
        };
        if is_claude(model) {
            let Claude { config, budget, effort } = Claude::of(model, Some(wish));
            let fields = config.map(|config| json!({ "thinking": config }));
            return Self { fields, effort, budget };
        }
        let word = match wish.effort.unwrap_or(ReasoningEffort::Medium) {
            ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High | ReasoningEffort::XHigh => "high",
        };
        let fields = match model {
            _ if model.contains("amazon.nova-2") => {
                Some(json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": word } }))
            }
            _ if model.contains("openai.") => Some(json!({ "reasoning_effort": word })),
            _ => None,
        };
        Self { fields, ..Self::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.fields.is_some()
    }

    /// With a fixed budget the vendor wants the thoughts of a turn that goes
    /// on after its calls. A turn of another model has none that it takes.
    pub(super) fn fits(&self, messages: &[Value]) -> bool {
        let last = messages.iter().rfind(|message| message["role"] == "assistant");
        let blocks = last.and_then(|message| message["content"].as_array()).map_or(&[][..], Vec::as_slice);
        let goes_on = blocks.iter().any(|block| block.get("toolUse").is_some());
        let thought = blocks.first().is_some_and(|block| block.get("reasoningContent").is_some());
        self.budget.is_none() || !goes_on || thought
    }

    /// The limit of output tokens: one below the budget leaves no answer.
    pub(super) fn room(&self, wanted: Option<u32>) -> Option<u32> {
        match (self.budget, wanted) {
            (None, wanted) => wanted,
            (Some(budget), Some(wanted)) if wanted > budget => Some(wanted),
            (Some(budget), wanted) => Some(budget.saturating_add(wanted.unwrap_or(ANSWER_TOKENS))),
        }
    }

    /// Models that think refuse any other temperature than their own, and
    /// some refuse every one.
    pub(super) fn allows_temperature(&self, model: &str) -> bool {
        !self.is_on() && (!is_claude(model) || takes_temperature(model))
    }
}

fn is_claude(model: &str) -> bool {
    model.contains("anthropic.claude")
}
