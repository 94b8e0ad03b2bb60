//! The tools that installed plugins bring into a run. They are looked at
//! before every step: what was revoked meanwhile is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toolyard_engine::{Input, Note};
use toolyard_protocol::event::PluginEmitted;
use toolyard_protocol::tool::ToolSpec;
use toolyard_tools::offer_plugins;

use super::{Stop, Worker};
use crate::agents::LoadedAgent;

/// What the run cannot have of its plugins.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    plugins: BTreeSet<String>,
    /// Tool → the sentence that a call of it hears.
    tools: BTreeMap<String, String>,
}

impl Withdrawn {
    pub(super) fn why(&self, tool: &str) -> Option<&str> {
        self.tools.get(tool).map(String::as_str)
    }
}

impl Worker {
    /// The tools of the agent's plugins, as they are now.
    pub(super) async fn bring_plugins(&mut self, agent: &LoadedAgent) -> Result<Vec<ToolSpec>, Stop> {
        let uses = agent.config.plugins.as_deref().unwrap_or_default();
        let (Some(plugins), false) = (self.rt.toolbox.plugins.clone(), uses.is_empty()) else {
            return Ok(Vec::new());
        };
        let (tenant, uses) = (self.tenant.clone(), uses.to_vec());
        let offer = self
            .patiently(move |tx| {
                let (tenant, uses, rules) = (tenant.clone(), uses.clone(), plugins.rules.clone());
                Box::pin(async move { offer_plugins(tx, &tenant, &rules, &uses).await })
            })
            .await?;
        let now = Withdrawn {
            plugins: offer.missing.iter().map(|one| one.plugin.to_string()).collect(),
            tools: offer
                .missing
                .iter()
                .flat_map(|one| one.tools.iter().map(|tool| (tool.clone(), one.why.clone())))
                .collect(),
        };
        let mut notes = Vec::new();
        for one in &offer.missing {
            if self.withdrawn.plugins.contains(one.plugin.as_str()) {
                continue;
            }
            tracing::warn!(run = %self.id, plugin = %one.plugin, why = %one.why, "a plugin gives no tools");
            notes.push(Note::PluginEmitted(PluginEmitted {
                plugin: one.plugin.to_string(),
                name: "plugin.missing".to_owned(),
                // Why is the operator's to know.
                value: json!({ "plugin": one.plugin }),
            }));
        }
        self.withdrawn = now;
        if !notes.is_empty() {
            self.tell(Input::Noted(notes)).await?;
        }
        Ok(offer.tools)
    }
}
