//! Citations of search tools whose results have a form of their own. The agent
//! says where in a result the hits stand and what their fields are called.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::OutcomeKind;
use toolyard_protocol::manifest::HookName;

use super::{Citation, Of};
use crate::hooks::{Answer, Ended, Hook, Nature, Points, Stage, Step};

pub const ID: &str = "rag-citations";
/// Letters of a snippet.
const SNIPPET: usize = 300;

/// Places are JSON pointers: `/hits` in a result, `/meta/title` in a hit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// Whose results are read. All tools if empty.
    pub tools: Vec<String>,
    pub list: String,
    pub document_id: String,
    pub url: String,
    pub title: String,
    pub snippet: String,
    pub event_name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            list: "/results".to_owned(),
            document_id: "/documentId".to_owned(),
            url: "/url".to_owned(),
            title: "/title".to_owned(),
            snippet: "/snippet".to_owned(),
            event_name: "rag-citation".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub struct RagCitations(Options);

impl RagCitations {
    pub fn new(options: Options) -> Self {
        Self(options)
    }

    /// The hits of a turn. One that was found twice is cited once.
    fn cited(&self, ended: &[Ended]) -> Vec<Citation> {
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        let wanted = |one: &&Ended| {
            one.outcome == OutcomeKind::Ok && (self.0.tools.is_empty() || self.0.tools.contains(&one.name))
        };
        for one in ended.iter().filter(wanted) {
            for hit in one.result.pointer(&self.0.list).and_then(Value::as_array).into_iter().flatten() {
                let Some((of, title)) = self.hit(hit, &one.name) else { continue };
                let key = match &of {
                    Of::Url { url } => url.clone(),
                    Of::Document { document_id, .. } => document_id.clone(),
                };
                if seen.insert(key) {
                    found.push(Citation {
                        id: String::new(),
                        number: 0,
                        of,
                        title,
                        start_index: None,
                        end_index: None,
                    });
                }
            }
        }
        found
    }

    /// A hit without an address and without an id is none.
    fn hit(&self, hit: &Value, tool: &str) -> Option<(Of, Option<String>)> {
        let text = |place: &str| hit.pointer(place).and_then(Value::as_str).map(str::to_owned);
        let title = text(&self.0.title);
        if let Some(document_id) = text(&self.0.document_id) {
            let snippet = text(&self.0.snippet).map(|text| text.chars().take(SNIPPET).collect());
            return Some((Of::Document { document_id, snippet, tool_name: Some(tool.to_owned()) }, title));
        }
        text(&self.0.url).map(|url| (Of::Url { url }, title))
    }
}

impl Hook for RagCitations {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        Nature { points: Points::of(&[HookName::OnAgentResponse]), ..Nature::default() }
    }

    fn on_agent_response<'a>(&'a self, stage: &'a mut Stage<'_>, answer: &'a mut Answer) -> Step<'a> {
        let mut found = self.cited(&answer.tool_results);
        // Numbers go on where the citation plugin stopped.
        let before = stage.state.get("citations").and_then(Value::as_array).map_or(0, Vec::len);
        for (number, citation) in (1..).zip(&mut found) {
            citation.number = u32::try_from(before).unwrap_or(0).saturating_add(number);
            citation.id = format!("rag-{number}");
        }
        if !found.is_empty() {
            let value = json!({ "messageId": stage.scene.message, "citations": found });
            stage.emit(&self.0.event_name, value);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
