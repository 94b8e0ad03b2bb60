//! Thoughts that a server wants back while its model still works on the turn.
//!
//! A router streams them in pieces, as a list of details; other servers want
//! the plain text back in the field it came in.

use serde_json::{Map, Value, json};

/// Texts of a detail that go on from piece to piece.
const GROWING: [&str; 3] = ["text", "summary", "data"];

#[derive(Debug, Default)]
pub(super) struct Thoughts {
    details: Vec<Map<String, Value>>,
    /// The field in which plain thoughts came.
    field: Option<&'static str>,
}

impl Thoughts {
    pub(super) fn came_in(&mut self, field: &'static str) {
        self.field.get_or_insert(field);
    }

    /// Takes pieces of details and gives the text that they show.
    pub(super) fn take(&mut self, details: Vec<Value>) -> String {
        let mut shown = String::new();
        for detail in details {
            let Value::Object(detail) = detail else { continue };
            for name in ["text", "summary"] {
                shown.push_str(detail.get(name).and_then(Value::as_str).unwrap_or_default());
            }
            match self.details.last_mut() {
                Some(last) if goes_on(last, &detail) => grow(last, detail),
                _ => self.details.push(detail),
            }
        }
        shown
    }

    /// What goes back, if anything. Plain thoughts matter only beside calls.
    pub(super) fn finish(&mut self, has_calls: bool) -> Option<Value> {
        let mut kept = Map::new();
        if !self.details.is_empty() {
            let details: Vec<Value> = self.details.drain(..).map(Value::Object).collect();
            kept.insert("reasoning_details".to_owned(), Value::from(details));
        } else if let Some(field) = self.field.filter(|_| has_calls) {
            kept.insert("field".to_owned(), Value::from(field));
        }
        (!kept.is_empty()).then(|| json!({ "openai": kept }))
    }
}

/// The same thought: same kind and number, and nobody signed it yet.
fn goes_on(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    same("type") && same("index") && last.get("signature").is_none_or(Value::is_null)
}

fn grow(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (name, value) in next {
        match (last.get_mut(&name), value) {
            (Some(Value::String(whole)), Value::String(more)) if GROWING.contains(&name.as_str()) => {
                whole.push_str(&more);
            }
            (Some(_), Value::Null) => {}
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}
