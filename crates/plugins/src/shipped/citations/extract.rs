//! From what a vendor or a tool says to numbered citations.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_protocol::OutcomeKind;

use super::{Citation, Of};
use crate::hooks::{Answer, Ended};

/// One way of naming sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extractor {
    /// `url_citation` annotations with positions; `openai` and `azure-openai`.
    OpenAi,
    /// Sources without positions: the text stays as it is.
    Anthropic,
    /// Grounding with positions.
    Gemini,
    /// `cite <url>` of the demo model.
    Demo,
    /// Documents that tools found: `searchKnowledge` and whatever answers in its form.
    Documents,
}

impl Extractor {
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Demo, Self::Documents];

    /// Whether the provider's sources are of this kind. Names come as
    /// `openai`, `openai.responses` or `azure-openai`.
    pub fn reads(self, provider: &str) -> bool {
        let names: &[&str] = match self {
            Self::OpenAi => &["openai", "azure-openai", "openai-responses"],
            Self::Anthropic => &["anthropic", "bedrock"],
            Self::Gemini => &["gemini", "google"],
            Self::Demo => &["demo"],
            Self::Documents => &[],
        };
        let family = provider.split('.').next().unwrap_or(provider);
        names.contains(&family)
    }

    /// Its positions are those of the text.
    pub fn marks_text(self) -> bool {
        matches!(self, Self::OpenAi | Self::Gemini | Self::Demo)
    }
}

/// Numbers from 1: the vendor's sources in their order, then documents. A URL
/// that is cited twice has two numbers.
pub(super) fn citations(
    vendor: Option<Extractor>,
    extractors: &[Extractor],
    answer: &Answer,
) -> Vec<Citation> {
    let mut found: Vec<Citation> = Vec::new();
    let plain =
        |of, title| Citation { id: String::new(), number: 0, of, title, start_index: None, end_index: None };
    if let Some(vendor) = vendor {
        let placed = vendor.marks_text();
        found.extend(answer.sources.iter().map(|source| Citation {
            start_index: source.start_index.filter(|_| placed),
            end_index: source.end_index.filter(|_| placed),
            ..plain(Of::Url { url: source.url.clone() }, source.title.clone())
        }));
    }
    if extractors.contains(&Extractor::Documents) {
        let documents = answer.tool_results.iter().flat_map(documents);
        found.extend(documents.map(|(of, title)| plain(of, title)));
    }
    for (number, citation) in (1..).zip(&mut found) {
        citation.number = number;
        citation.id = format!("cite-{number}");
    }
    found
}

/// Documents of a result: a list of objects with a `documentId`, by itself or
/// under `results`, `documents` or `citations`.
fn documents(ended: &Ended) -> Vec<(Of, Option<String>)> {
    if ended.outcome != OutcomeKind::Ok {
        return Vec::new();
    }
    let list = ["results", "documents", "citations"].iter().find_map(|key| ended.result.get(key));
    let Some(list) = list.unwrap_or(&ended.result).as_array() else { return Vec::new() };
    let text = |item: &Value, keys: &[&str]| {
        keys.iter().find_map(|key| item.get(key).and_then(Value::as_str)).map(str::to_owned)
    };
    list.iter()
        .filter_map(|item| {
            let title = text(item, &["title", "name"]);
            if let Some(document_id) = text(item, &["documentId", "document_id"]) {
                let snippet = text(item, &["snippet", "text"]).map(|s| s.chars().take(300).collect());
                return Some((
                    Of::Document { document_id, snippet, tool_name: Some(ended.name.clone()) },
                    title,
                ));
            }
            text(item, &["url"]).map(|url| (Of::Url { url }, title))
        })
        .collect()
}
