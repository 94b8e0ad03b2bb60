//! SHA-256 of a value, in hexadecimal. Agent versions, toolsets, blobs and
//! request bodies are known by it.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A content hash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, TS)]
#[serde(transparent)]
#[ts(type = "string")]
pub struct Hash(#[schemars(with = "String")] Arc<str>);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
        Self(Arc::from(hex(digest.as_ref())))
    }
    /// The hash of a JSON value: keys sorted, no spaces, so that two texts of
    /// the same value hash alike. `serde_json` keeps maps sorted here.
    pub fn of_json(value: &serde_json::Value) -> Self {
        // Not by `to_string`: a formatter takes several times as long. A value cannot fail.
        Self::of(&serde_json::to_vec(value).unwrap_or_default())
    }
    /// Takes a hash back from the store.
    pub fn from_hex(text: &str) -> Option<Self> {
        let fine = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        fine.then(|| Self(Arc::from(text)))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(DIGITS[usize::from(n & 15)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(*b)]).collect()
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.0.get(..12).unwrap_or(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored hashes and signatures rest on these bytes.
    #[test]
    fn the_hash_of_a_value_is_that_of_its_compact_text() {
        let value = serde_json::json!({"c": [true, null, -3], "b": "ä\u{1}\"\\\n", "a": 1.5});
        let pinned = "ccec383b49a5a3d84ec547516128043385306085170aca51a5f4ebb46a451edb";
        assert_eq!(Hash::of_json(&value).as_str(), pinned);
        assert_eq!(Hash::of(value.to_string().as_bytes()).as_str(), pinned);
    }
}
