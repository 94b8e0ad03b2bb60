//! How an event becomes a frame, and the form of the body that a client asks for.

use super::wire::WireEvent;

/// The form of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    #[default]
    Sse,
    /// Frames of [`super::Recoder`].
    Protobuf,
}

/// The media type of the binary form.
pub const PROTOBUF: &str = "application/vnd.ag-ui.event+proto";

impl Encoding {
    /// Text, unless the client names the binary form and not text before it.
    pub fn of_accept(accept: Option<&str>) -> Self {
        let named = |part: &str| {
            let mut words = part.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default().to_ascii_lowercase();
            let refused = words.any(|w| matches!(w.replace(' ', "").as_str(), "q=0" | "q=0.0"));
            (!refused).then_some(kind)
        };
        for kind in accept.unwrap_or_default().split(',').filter_map(named) {
            match kind.as_str() {
                PROTOBUF => return Self::Protobuf,
                "text/event-stream" => return Self::Sse,
                _ => {}
            }
        }
        Self::Sse
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Protobuf => PROTOBUF,
        }
    }
}

/// Adds one event. A frame ends with two line feeds: clients do not know
/// carriage returns.
pub(super) fn write(event: &WireEvent<'_>, out: &mut String) {
    // Plain structs with text keys cannot fail to serialize. If one ever does,
    // nothing is said instead of half of it.
    if let Ok(json) = serde_json::to_string(event) {
        out.reserve(json.len() + 8);
        out.push_str("data: ");
        out.push_str(&json);
        out.push_str("\n\n");
    }
}
