//! Reads the model's stream: every event is parsed, as any server must.

use std::borrow::Cow;

use serde::Deserialize;

use crate::frames::Frames;

/// What the model has said.
#[derive(Debug, Default)]
pub(super) struct Reply {
    frames: Frames,
    pub(super) text: String,
    pub(super) call: Option<Call>,
    pub(super) done: bool,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Vec<CallPiece<'a>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: FunctionPiece<'a>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
}

impl Reply {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
    }

    /// The next piece of text that came whole.
    pub(super) fn next_text(&mut self) -> Result<Option<&str>, serde_json::Error> {
        while let Some(event) = self.frames.next_event() {
            if event.data == "[DONE]" {
                self.done = true;
                continue;
            }
            let piece: Piece<'_> = serde_json::from_str(event.data)?;
            let Some(choice) = piece.choices.into_iter().next() else { continue };
            for part in choice.delta.tool_calls {
                let call = self.call.get_or_insert_default();
                call.id.push_str(part.id.as_deref().unwrap_or_default());
                call.name.push_str(part.function.name.as_deref().unwrap_or_default());
                call.arguments.push_str(part.function.arguments.as_deref().unwrap_or_default());
            }
            if let Some(text) = choice.delta.content.filter(|text| !text.is_empty()) {
                let start = self.text.len();
                self.text.push_str(&text);
                return Ok(self.text.get(start..));
            }
        }
        Ok(None)
    }
}
