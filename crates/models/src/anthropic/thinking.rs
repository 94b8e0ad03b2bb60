//! How the model is asked to think. Older models get a budget of tokens,
//! newer ones decide themselves and are told how hard to try.

use serde_json::{Value, json};
use toolyard_protocol::agent::{Reasoning, ReasoningEffort};

/// The least that the vendor takes.
const BUDGET_MIN: u32 = 1024;
/// From here on a model can decide itself how long it thinks.
const ADAPTIVE: (u32, u32) = (4, 6);
/// From here on it wants to.
const ADAPTIVE_ONLY: (u32, u32) = (4, 7);

/// What the request says about thinking.
#[derive(Debug, Default)]
pub(crate) struct Thinking {
    pub(crate) config: Option<Value>,
    /// Tokens of a fixed budget.
    pub(crate) budget: Option<u32>,
    /// A word of `output_config`.
    pub(crate) effort: Option<&'static str>,
}

impl Thinking {
    pub(crate) fn is_on(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config["type"] != "disabled")
    }

    pub(crate) fn of(model: &str, reasoning: Option<&Reasoning>) -> Self {
        let Some(reasoning) = reasoning.filter(|r| r.enabled) else { return Self::default() };
        if reasoning.effort == Some(ReasoningEffort::None) {
            return Self { config: Some(json!({ "type": "disabled" })), ..Self::default() };
        }
        // An unknown name is a newer model than this code.
        let version = version(model).unwrap_or(ADAPTIVE_ONLY);
        let fixed = version < ADAPTIVE || (version < ADAPTIVE_ONLY && reasoning.budget_tokens.is_some());
        let shown = if reasoning.include_thoughts == Some(false) { "omitted" } else { "summarized" };
        if !fixed {
            let config = json!({ "type": "adaptive", "display": shown });
            return Self { config: Some(config), budget: None, effort: reasoning.effort.and_then(word) };
        }
        let budget = reasoning.budget_tokens.unwrap_or_else(|| tokens(reasoning.effort)).max(BUDGET_MIN);
        let mut config = json!({ "type": "enabled", "budget_tokens": budget });
        if shown == "omitted" {
            config["display"] = json!(shown);
        }
        Self { config: Some(config), budget: Some(budget), effort: None }
    }
}

/// From here on the vendor holds a model to the form of an answer.
pub(crate) const FORMS_SINCE: (u32, u32) = (4, 1);

/// An unknown name is a newer model than this code.
pub(crate) fn takes_form(model: &str, since: (u32, u32)) -> bool {
    version(model).is_none_or(|version| version >= since)
}

/// Newer models refuse every temperature, their own too.
pub(crate) fn takes_temperature(model: &str) -> bool {
    version(model).is_some_and(|version| version < ADAPTIVE_ONLY)
}

fn word(effort: ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
        ReasoningEffort::Medium => Some("medium"),
        ReasoningEffort::High => Some("high"),
        ReasoningEffort::XHigh => Some("xhigh"),
    }
}

fn tokens(effort: Option<ReasoningEffort>) -> u32 {
    match effort {
        Some(ReasoningEffort::None | ReasoningEffort::Minimal) => BUDGET_MIN,
        Some(ReasoningEffort::Low) => 2048,
        Some(ReasoningEffort::Medium) | None => 8192,
        Some(ReasoningEffort::High) => 16_384,
        Some(ReasoningEffort::XHigh) => 32_768,
    }
}

/// The numbers in a model's name: `claude-opus-4-6` is 4.6. A date is none.
pub(crate) fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.split("claude-").nth(1)?;
    let mut numbers = name
        .split(['-', '.', '@', ':'])
        .skip_while(|word| !is_number(word))
        .take_while(|word| is_number(word))
        .filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

fn is_number(word: &str) -> bool {
    (1..=2).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}
