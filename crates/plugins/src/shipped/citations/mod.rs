//! Citations: which sources an answer rests on, as an event and as marks in the
//! text. Vendors name sources in their own ways; the models crate has already
//! brought them to one form, with positions in characters.

mod extract;
mod marks;
pub mod rag;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Answer, Hook, Nature, Points, Stage, Step};

pub use extract::Extractor;
pub use marks::{Marks, marked};

pub const ID: &str = "citations";

/// A source with its number in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Citation {
    pub id: String,
    pub number: u32,
    #[serde(flatten)]
    pub of: Of,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_index: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_index: Option<u32>,
}

/// What is cited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Of {
    Url {
        url: String,
    },
    /// A document of the gateway, or one that a tool found.
    Document {
        document_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snippet: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// Which vendors are understood. All of them if missing.
    pub extractors: Vec<Extractor>,
    pub inline_markers: bool,
    pub markers: Marks,
    pub event_name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            extractors: Extractor::ALL.into(),
            inline_markers: true,
            markers: Marks::Numbers,
            event_name: "citation".to_owned(),
        }
    }
}

/// The plugin that every agent has unless its configuration says otherwise.
#[derive(Debug)]
pub struct Citations(Options);

impl Citations {
    pub fn new(options: Options) -> Self {
        Self(options)
    }
}

impl Default for Citations {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Hook for Citations {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        Nature {
            rewrites: self.0.inline_markers,
            points: Points::of(&[HookName::OnAgentResponse]),
            ..Nature::default()
        }
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        self.cite(stage, answer);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Citations {
    fn cite(&self, stage: &mut Stage<'_>, answer: &mut Answer) {
        let provider = stage.scene.provider.clone();
        let vendor = self.0.extractors.iter().find(|e| e.reads(&provider));
        if vendor.is_none() && !answer.sources.is_empty() {
            tracing::debug!(provider, "no extractor for this provider: its sources are not numbered");
        }
        let found = extract::citations(vendor.copied(), &self.0.extractors, answer);
        if found.is_empty() {
            return;
        }
        if self.0.inline_markers && vendor.is_some_and(|e| e.marks_text()) {
            answer.text = marked(&answer.text, &found, self.0.markers);
        }
        let citations = json!(found);
        // An older plugin may have named another message.
        let message = stage.state.get("messageId").and_then(Value::as_str).unwrap_or(&stage.scene.message);
        let value = json!({ "messageId": message, "citations": citations });
        stage.state.insert("citations".to_owned(), citations);
        stage.emit(&self.0.event_name, value);
    }
}
