//! Marks in the text: `[1]` behind what a source supports.

use serde::{Deserialize, Serialize};

use super::Citation;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Marks {
    /// `[1]`
    #[default]
    Numbers,
    /// `[^1]`, as Markdown has it.
    Footnote,
}

/// The text with a mark at the end of each place that is cited. A citation
/// without a place, or with one beyond the text, gets none.
pub fn marked(text: &str, citations: &[Citation], marks: Marks) -> String {
    let mut places: Vec<(usize, u32)> = citations
        .iter()
        .filter_map(|citation| {
            let end = usize::try_from(citation.end_index?).ok()?;
            Some((byte_of(text, end)?, citation.number))
        })
        .collect();
    // One pass from the start: a place that is cited twice keeps the order of numbers.
    places.sort_unstable();
    let mut out = String::with_capacity(text.len() + places.len() * 5);
    let mut from = 0;
    for (at, number) in places {
        out.push_str(&text[from..at]);
        out.push_str(&match marks {
            Marks::Numbers => format!("[{number}]"),
            Marks::Footnote => format!("[^{number}]"),
        });
        from = at;
    }
    out.push_str(&text[from..]);
    out
}

/// Where the n-th character begins; the end of the text counts.
fn byte_of(text: &str, n: usize) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(n)
}
