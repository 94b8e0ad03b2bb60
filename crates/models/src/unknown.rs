//! What a vendor says and this code does not know: whole events, and fields of
//! events that it knows. It tells nothing to anybody yet, so it is kept among
//! the facts of the reply: the log has it when somebody wants to know what came.

use serde_json::{Map, Value, json};

use crate::words::Rest;

/// Events of one reply that are kept.
const EVENTS: usize = 32;
/// Fields of one reply that are kept, and values of each.
const FIELDS: usize = 32;
const VALUES: usize = 8;
/// Bytes of them all. A vendor's new stream of large pieces must not fill the log.
const BYTES: usize = 16 << 10;
/// The names among the facts.
pub const UNKNOWN: &str = "unknownEvents";
pub const UNKNOWN_FIELDS: &str = "unknownFields";

#[derive(Debug, Default)]
pub(crate) struct Unknown {
    kept: Vec<Value>,
    fields: Vec<Field>,
    bytes: usize,
    /// Those for which there was no room.
    more: u64,
}

#[derive(Debug)]
struct Field {
    path: String,
    /// Different from their neighbours: many vendors repeat themselves.
    values: Vec<Value>,
    more: u64,
}

impl Unknown {
    /// Keeps an event: as JSON if it is some, else as text.
    pub(crate) fn keep(&mut self, name: Option<&str>, data: &str) {
        // They tell that the connection lives, and no more.
        if matches!(name, Some("ping" | "keepalive" | "heartbeat")) {
            return;
        }
        let size = data.len() + name.map_or(0, str::len);
        if self.kept.len() >= EVENTS || self.bytes + size > BYTES {
            self.more += 1;
            return;
        }
        self.bytes += size;
        let data = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
        self.kept.push(match name {
            Some(name) => json!({ "event": name, "data": data }),
            None => json!({ "data": data }),
        });
    }

    /// Keeps the fields that nobody knows, at their place in the event.
    pub(crate) fn fields(&mut self, place: &str, rest: Rest) {
        if let Some(rest) = rest {
            self.rest_of(place, *rest);
        }
    }

    /// The same of an object whose known fields were taken out.
    #[cold]
    pub(crate) fn rest_of(&mut self, place: &str, rest: Map<String, Value>) {
        for (name, value) in rest {
            let path = if place.is_empty() { name } else { format!("{place}.{name}") };
            self.field(path, value);
        }
    }

    fn field(&mut self, path: String, value: Value) {
        let at = self.fields.iter().position(|field| field.path == path);
        let last = at.and_then(|at| self.fields[at].values.last());
        if value.is_null() || last == Some(&value) {
            return;
        }
        let size = value.to_string().len() + if at.is_none() { path.len() } else { 0 };
        let fits = self.bytes + size <= BYTES;
        match at {
            Some(at) => {
                let field = &mut self.fields[at];
                if fits && field.values.len() < VALUES {
                    field.values.push(value);
                    self.bytes += size;
                } else {
                    field.more += 1;
                }
            }
            None if self.fields.len() >= FIELDS => self.more += 1,
            // The name at least is told.
            None if !fits => self.fields.push(Field { path, values: Vec::new(), more: 1 }),
            None => {
                self.bytes += size;
                self.fields.push(Field { path, values: vec![value], more: 0 });
            }
        }
    }

    /// Adds them to the facts of the reply.
    pub(crate) fn tell(&mut self, facts: &mut Map<String, Value>) {
        let more = std::mem::take(&mut self.more);
        if !self.kept.is_empty() || more > 0 {
            let mut kept = std::mem::take(&mut self.kept);
            if more > 0 {
                kept.push(json!({ "more": more }));
            }
            facts.insert(UNKNOWN.to_owned(), Value::from(kept));
        }
        if !self.fields.is_empty() {
            let told = self.fields.drain(..).map(Field::told).collect();
            facts.insert(UNKNOWN_FIELDS.to_owned(), Value::Object(told));
        }
    }
}

impl Field {
    fn told(mut self) -> (String, Value) {
        if self.more > 0 {
            self.values.push(json!({ "more": self.more }));
        }
        (self.path, Value::from(self.values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(unknown: &mut Unknown) -> Map<String, Value> {
        let mut facts = Map::new();
        unknown.tell(&mut facts);
        facts
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut unknown = Unknown::default();
        (0..40).for_each(|n| unknown.keep(Some("new"), &n.to_string()));
        unknown.keep(None, &"x".repeat(BYTES));
        let facts = told(&mut unknown);
        let kept = facts[UNKNOWN].as_array().map_or(0, Vec::len);
        assert_eq!(kept, EVENTS + 1);
        assert_eq!(facts[UNKNOWN][EVENTS], json!({ "more": 9 }));
        assert_eq!(facts[UNKNOWN][3], json!({ "event": "new", "data": 3 }));
    }

    #[test]
    fn a_field_is_kept_with_its_first_values_and_repeats_cost_nothing() {
        let mut unknown = Unknown::default();
        let mut hear = |name: &str, value: Value| {
            unknown.fields("delta", Some(Box::new(Map::from_iter([(name.to_owned(), value)]))));
        };
        (0..1000).for_each(|_| hear("same", json!("a")));
        (0..12).for_each(|n| hear("new", json!(n)));
        hear("large", json!("x".repeat(BYTES)));
        hear("nothing", Value::Null);
        (0..40).for_each(|n| hear(&format!("f{n}"), json!(n)));
        let facts = told(&mut unknown);
        let fields = &facts[UNKNOWN_FIELDS];
        assert_eq!(fields["delta.same"], json!(["a"]));
        assert_eq!(fields["delta.new"], json!([0, 1, 2, 3, 4, 5, 6, 7, { "more": 4 }]));
        assert_eq!(fields["delta.large"], json!([{ "more": 1 }]));
        assert_eq!(fields.as_object().map(Map::len), Some(FIELDS));
        assert_eq!(facts[UNKNOWN], json!([{ "more": 11 }]));
    }
}
