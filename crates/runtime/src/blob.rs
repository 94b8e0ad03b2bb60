//! Large values lie beside the log: the event holds a preview and the hash.

use serde_json::Value;
use toolyard_protocol::event::BlobRef;
use toolyard_protocol::{Hash, ToolOutcome, limits};

/// An outcome that fits into its event, and the bytes that do not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) outcome: ToolOutcome,
    pub(crate) blob: Option<(BlobRef, Vec<u8>)>,
}

impl Fitted {
    pub(crate) fn blob_ref(&self) -> Option<BlobRef> {
        self.blob.as_ref().map(|(blob, _)| blob.clone())
    }
}

/// Moves a value over the limit into a blob.
pub(crate) fn fit(outcome: ToolOutcome) -> Fitted {
    let ToolOutcome::Ok(value) = &outcome else {
        return Fitted { outcome: shorten(outcome), blob: None };
    };
    let text = value.to_string();
    if text.len() <= limits::INLINE_VALUE_BYTES {
        return Fitted { outcome, blob: None };
    }
    let preview: String = text.chars().take(limits::BLOB_PREVIEW_CHARS).collect();
    let shown = format!("{preview}… [{} bytes in all]", text.len());
    let blob =
        BlobRef { blob: Hash::of(text.as_bytes()), bytes: u64::try_from(text.len()).unwrap_or(u64::MAX) };
    Fitted { outcome: ToolOutcome::Ok(Value::String(shown)), blob: Some((blob, text.into_bytes())) }
}

/// An error text is for reading: its end may go.
fn shorten(outcome: ToolOutcome) -> ToolOutcome {
    let cut = |text: String| match text.char_indices().nth(limits::INLINE_VALUE_BYTES / 4) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match outcome {
        ToolOutcome::Ok(value) => ToolOutcome::Ok(value),
        ToolOutcome::Failed(t) => ToolOutcome::Failed(cut(t)),
        ToolOutcome::Denied(t) => ToolOutcome::Denied(cut(t)),
        ToolOutcome::Expired(t) => ToolOutcome::Expired(cut(t)),
        ToolOutcome::Canceled(t) => ToolOutcome::Canceled(cut(t)),
        ToolOutcome::Uncertain(t) => ToolOutcome::Uncertain(cut(t)),
    }
}
