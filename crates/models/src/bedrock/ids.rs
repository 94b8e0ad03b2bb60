//! Call ids on this wire: at most 64 of the characters that ours have too.

use std::borrow::Cow;

use toolyard_protocol::Hash;

const ID_CHARS: usize = 64;
/// Characters of the hash that tells shortened ids apart.
const MARK_CHARS: usize = 16;

/// The same id gives the same answer in call and result.
pub(super) fn safe(id: &str) -> Cow<'_, str> {
    if id.len() <= ID_CHARS {
        return Cow::Borrowed(id);
    }
    let hash = Hash::of(id.as_bytes()).to_string();
    let mark = hash.get(hash.len().saturating_sub(MARK_CHARS)..).unwrap_or(&hash);
    let start: String = id.chars().take(ID_CHARS - mark.len() - 1).collect();
    Cow::Owned(format!("{start}-{mark}"))
}
