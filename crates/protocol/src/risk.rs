//! How dangerous a tool looks. A name's words decide unless its owner says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The level that asks for a permission.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS, Default,
)]
#[serde(rename_all = "camelCase")]
pub enum Risk {
    #[default]
    Low,
    Medium,
    High,
}

const HIGH: [&str; 4] = ["delete", "create", "update", "modify"];
const MEDIUM: [&str; 4] = ["write", "send", "execute", "run"];

impl Risk {
    /// Words of the name, split at case changes, digits and separators, so
    /// that `get_created_at` and `truncate` stay low.
    pub fn of_name(name: &str) -> Self {
        let words = words(name);
        let has = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
        if has(&HIGH) {
            Self::High
        } else if has(&MEDIUM) {
            Self::Medium
        } else {
            Self::Low
        }
    }
}

fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let starts = c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if !c.is_ascii_alphabetic() || starts {
            words.push(String::new());
        }
        if c.is_ascii_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c14_words_decide_and_parts_of_words_do_not() {
        let of = |n: &str| Risk::of_name(n);
        assert_eq!(of("delete_file"), Risk::High);
        assert_eq!(of("deleteFile"), Risk::High);
        assert_eq!(of("file-update"), Risk::High);
        assert_eq!(of("sendMail"), Risk::Medium);
        assert_eq!(of("run2"), Risk::Medium);
        assert_eq!(of("get_created_at"), Risk::Low);
        assert_eq!(of("truncate"), Risk::Low);
        assert_eq!(of("prune"), Risk::Low);
    }
}
