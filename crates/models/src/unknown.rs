//! Events of a vendor that this code does not know. They tell nothing to
//! anybody yet, so they are kept among the facts of the reply: the log has
//! them when somebody wants to know what came.

use serde_json::{Map, Value, json};

/// Events of one reply that are kept.
const EVENTS: usize = 32;
/// Bytes of them. A vendor's new stream of large pieces must not fill the log.
const BYTES: usize = 16 << 10;
/// Their name among the facts.
pub const UNKNOWN: &str = "unknownEvents";

#[derive(Debug, Default)]
pub(crate) struct Unknown {
    kept: Vec<Value>,
    bytes: usize,
    /// Those for which there was no room.
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

    /// Adds them to the facts of the reply.
    pub(crate) fn tell(&mut self, facts: &mut Map<String, Value>) {
        if self.kept.is_empty() && self.more == 0 {
            return;
        }
        let mut kept = std::mem::take(&mut self.kept);
        if self.more > 0 {
            kept.push(json!({ "more": self.more }));
        }
        facts.insert(UNKNOWN.to_owned(), Value::from(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut unknown = Unknown::default();
        (0..40).for_each(|n| unknown.keep(Some("new"), &n.to_string()));
        unknown.keep(None, &"x".repeat(BYTES));
        let mut facts = Map::new();
        unknown.tell(&mut facts);
        let kept = facts[UNKNOWN].as_array().map_or(0, Vec::len);
        assert_eq!(kept, EVENTS + 1);
        assert_eq!(facts[UNKNOWN][EVENTS], json!({ "more": 9 }));
        assert_eq!(facts[UNKNOWN][3], json!({ "event": "new", "data": 3 }));
    }
}
