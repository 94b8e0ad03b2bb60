//! Which of an agent's tools somebody wants to be offered. A pick only takes
//! away: it never gives a tool that the agent has not.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::tool::{ToolSpec, Toolset};

/// Stands for the tools that are not named.
pub const OTHERS: &str = "*";

/// A user's choice of tools, and a request's choice of categories (row H10).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[ts(optional_fields)]
pub struct Picks {
    /// `<service>:<tool>`, or a tool's name. A missing one is as
    /// `category:<name>` says of its category, else as `*` says, else picked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, bool>,
    /// Tools of these categories, and those that have none. Missing means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
}

impl Picks {
    /// Nothing is left out.
    pub fn takes_all(&self) -> bool {
        self.categories.is_none() && self.tools.values().all(|picked| *picked)
    }

    /// A request's own tools are what it asks for: no pick takes them away.
    pub fn takes(&self, spec: &ToolSpec) -> bool {
        if spec.brought.is_some() {
            return true;
        }
        let named = self
            .tools
            .get(&spec.key())
            .or_else(|| self.tools.get(spec.name.as_str()))
            .or_else(|| self.of_category(spec))
            .or_else(|| self.tools.get(OTHERS));
        let in_category = match (&self.categories, &spec.category) {
            (Some(wanted), Some(category)) => wanted.contains(category),
            (Some(_) | None, _) => true,
        };
        in_category && named.copied().unwrap_or(true)
    }

    /// What is said of a whole category, as `category:<name>`.
    fn of_category(&self, spec: &ToolSpec) -> Option<&bool> {
        self.tools.get(&format!("category:{}", spec.category.as_ref()?))
    }

    /// What is left of a toolset.
    pub fn of(&self, set: &Toolset) -> Toolset {
        Toolset(set.0.iter().filter(|spec| self.takes(spec)).cloned().collect())
    }
}
