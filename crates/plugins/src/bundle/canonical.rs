//! The bytes that are signed: a type prefix, then RFC 8785 of everything but
//! the signatures themselves.

use serde_json::Value;
use toolyard_protocol::Hash;

/// Inside the signed bytes, so that a signature over anything else never fits.
const PREFIX: &str = "toolyard-plugin-v1\n";
/// What cannot be signed: the signatures, what is computed, a browser's note.
const UNSIGNED: [&str; 4] = ["signature", "signatures", "contentHash", "installedAt"];

/// RFC 8785. Fails only for what [`super::strict`] refuses.
fn canonical(value: &Value) -> Result<String, String> {
    serde_json_canonicalizer::to_string(value).map_err(|e| e.to_string())
}

/// What a curator signs.
pub(super) fn signed_bytes(document: &Value) -> Result<Vec<u8>, String> {
    let mut document = document.clone();
    if let Some(fields) = document.as_object_mut() {
        for name in UNSIGNED {
            fields.remove(name);
        }
    }
    Ok([PREFIX.as_bytes(), canonical(&document)?.as_bytes()].concat())
}

/// SHA-256 of the canonical JSON of the tools (row H56).
pub(super) fn content_hash(document: &Value) -> Result<Hash, String> {
    let none = Value::Array(Vec::new());
    let tools = document.get("tools").unwrap_or(&none);
    Ok(Hash::of(canonical(tools)?.as_bytes()))
}
