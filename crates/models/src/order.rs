//! Puts the calls of a past reply back between its parts.
//!
//! A turn keeps parts and calls apart. Some vendors sign the order in which
//! they wrote them, so their metadata says where each thing stood.

use serde_json::Value;

/// Something for the wire, and its place in the reply if that is known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub(crate) at: Option<u64>,
    pub(crate) value: Value,
}

/// Each call goes before the first part that stood behind it, or to the end.
pub(crate) fn interleave(parts: Vec<Placed>, calls: Vec<Placed>) -> Vec<Value> {
    let mut all = parts;
    for call in calls {
        let behind = |other: &Placed| call.at.is_some_and(|at| other.at.is_some_and(|theirs| theirs > at));
        let index = all.iter().position(behind).unwrap_or(all.len());
        all.insert(index, call);
    }
    all.into_iter().map(|placed| placed.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(list: &[(Option<u64>, &str)]) -> Vec<Placed> {
        list.iter().map(|(at, name)| Placed { at: *at, value: Value::from(*name) }).collect()
    }

    #[test]
    fn calls_return_to_their_places_and_unplaced_ones_go_last() {
        let parts = placed(&[(Some(0), "thought"), (None, "text"), (Some(3), "second thought")]);
        let calls = placed(&[(Some(1), "a"), (Some(2), "b"), (Some(4), "c"), (None, "d")]);
        let all = interleave(parts, calls);
        assert_eq!(all, ["thought", "text", "a", "b", "second thought", "c", "d"]);
    }
}
