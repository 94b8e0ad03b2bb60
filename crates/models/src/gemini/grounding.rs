//! Where a reply's statements come from.
//!
//! The vendor points into its text by bytes; our spans count characters. Its
//! offsets are believed only if the text there is the text that it quotes.

use serde_json::{Map, Value};

use crate::chunk::Chunk;

/// Spans of one reply that are told. Each costs a walk through the text.
const SPANS: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Grounding {
    pages: Vec<Page>,
    claims: Vec<Claim>,
    queries: Vec<Value>,
    entry_point: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
struct Page {
    url: String,
    title: Option<String>,
}

#[derive(Debug, PartialEq)]
struct Claim {
    page: Page,
    start: usize,
    end: usize,
    quoted: Option<String>,
}

impl Grounding {
    /// Takes what one event says. Later events may repeat it or add to it.
    pub(super) fn take(&mut self, told: &Value) {
        let list = |name: &str| told[name].as_array().map_or(&[][..], Vec::as_slice);
        let pages: Vec<Option<Page>> = list("groundingChunks").iter().map(page).collect();
        for page in pages.iter().flatten() {
            if !self.pages.contains(page) {
                self.pages.push(page.clone());
            }
        }
        for support in list("groundingSupports") {
            let indices = support["groundingChunkIndices"].as_array().into_iter().flatten();
            for index in indices.filter_map(|index| usize::try_from(index.as_u64()?).ok()) {
                // An event without pages of its own points at those before.
                let page = if pages.is_empty() {
                    self.pages.get(index)
                } else {
                    pages.get(index).and_then(Option::as_ref)
                };
                if let Some(claim) = page.and_then(|page| claim(page, &support["segment"]))
                    && self.claims.len() < SPANS
                    && !self.claims.contains(&claim)
                {
                    self.claims.push(claim);
                }
            }
        }
        for query in list("webSearchQueries") {
            if !self.queries.contains(query) {
                self.queries.push(query.clone());
            }
        }
        if let Some(rendered) = told["searchEntryPoint"].get("renderedContent") {
            self.entry_point = Some(rendered.clone());
        }
    }

    /// Tells the sources: first those of a statement, then the others.
    pub(super) fn tell(&mut self, text: &str, facts: &mut Map<String, Value>, out: &mut Vec<Chunk>) {
        let claims = std::mem::take(&mut self.claims);
        let mut pages = std::mem::take(&mut self.pages);
        pages.retain(|page| !claims.iter().any(|claim| claim.page == *page));
        for Claim { page, start, end, quoted } in claims {
            let (start, end) = span(text, start, end, quoted.as_deref()).unzip();
            out.push(Chunk::Source { url: page.url, title: page.title, start, end });
        }
        for Page { url, title } in pages {
            out.push(Chunk::Source { url, title, start: None, end: None });
        }
        if !self.queries.is_empty() {
            facts.insert("webSearchQueries".to_owned(), Value::from(std::mem::take(&mut self.queries)));
        }
        // The vendor's terms want this shown beside the answer.
        if let Some(rendered) = self.entry_point.take() {
            facts.insert("searchEntryPoint".to_owned(), rendered);
        }
    }
}

fn page(chunk: &Value) -> Option<Page> {
    let place = ["web", "retrievedContext", "maps"].iter().find_map(|kind| chunk.get(kind))?;
    let url = place["uri"].as_str().filter(|url| !url.is_empty())?.to_owned();
    Some(Page { url, title: place["title"].as_str().map(str::to_owned) })
}

fn claim(page: &Page, segment: &Value) -> Option<Claim> {
    let offset = |name: &str| segment[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let quoted = segment["text"].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    // A start of zero is left out on this wire.
    Some(Claim {
        page: page.clone(),
        start: offset("startIndex").unwrap_or(0),
        end: offset("endIndex")?,
        quoted,
    })
}

/// The span in characters, if the text bears it out.
fn span(text: &str, start: usize, end: usize, quoted: Option<&str>) -> Option<(u32, u32)> {
    let there = text.get(start..end);
    let (start, end) = match quoted {
        Some(quoted) if there != Some(quoted) => {
            let found = text.find(quoted)?;
            (found, found + quoted.len())
        }
        Some(_) | None => there.map(|_| (start, end))?,
    };
    let before = text.get(..start)?.chars().count();
    let within = text.get(start..end)?.chars().count();
    Some((u32::try_from(before).ok()?, u32::try_from(before + within).ok()?))
}
