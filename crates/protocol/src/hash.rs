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
