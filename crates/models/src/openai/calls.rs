//! Puts the pieces of streamed tool calls together.
//!
//! Vendors disagree about everything here: indices and ids may repeat or be
//! missing, a name may come again with each piece. What is sure: two pieces
//! belong together unless something says that a new call begins.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::wire::CallPiece;
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};
use crate::lenient::filled;

#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The vendor's index.
    key: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    args: String,
    extra: Option<Value>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes one piece and tells what it adds.
    pub(super) fn take(&mut self, piece: CallPiece<'_>, out: &mut Vec<Chunk>) {
        let function = piece.function.unwrap_or_default();
        let id = filled(&piece.id);
        let name = filled(&function.name);
        let args = function.arguments.as_ref().map_or("", |args| args.0.as_ref());

        let known = match piece.index {
            Some(_) => self.slots.iter().rposition(|slot| slot.key == piece.index),
            None => self.slots.len().checked_sub(1),
        };
        let index = match known {
            Some(at) if !self.slots[at].ends_before(piece.index, id, name, args) => at,
            _ => {
                self.slots.push(Slot { key: piece.index, ..Slot::default() });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        if slot.id.is_none() {
            slot.id = id.map(str::to_owned);
        }
        if piece.extra_content.is_some() {
            slot.extra = piece.extra_content;
        }
        slot.args.push_str(args);
        match (&slot.name, name) {
            (None, Some(name)) => {
                slot.name = Some(name.to_owned());
                out.push(Chunk::ToolInputStart { index, name: name.to_owned() });
                // What came before the name is told now.
                if !slot.args.is_empty() {
                    out.push(Chunk::ToolInputDelta { index, text: slot.args.clone() });
                }
            }
            (Some(_), _) if !args.is_empty() => {
                out.push(Chunk::ToolInputDelta { index, text: args.to_owned() });
            }
            (Some(_), _) | (None, None) => {}
        }
    }

    /// Tells the calls whole, in order of appearance.
    pub(super) fn finish(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        for (index, slot) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            let Some(name) = slot.name else {
                let detail = Detail::new("a tool call has no name");
                return Err(ModelError::Unreadable { detail });
            };
            let blank = slot.args.trim().is_empty();
            out.push(Chunk::ToolCall {
                index,
                name,
                args_text: if blank { "{}".to_owned() } else { slot.args },
                vendor_id: slot.id,
                metadata: slot
                    .extra
                    .map_or(Value::Null, |extra| json!({ "openai": { "extra_content": extra } })),
            });
        }
        Ok(())
    }
}

impl Slot {
    /// The next piece begins another call.
    fn ends_before(&self, key: Option<i64>, id: Option<&str>, name: Option<&str>, args: &str) -> bool {
        let other_id = self.id.as_deref().zip(id).is_some_and(|(mine, theirs)| mine != theirs);
        let same_id = id.is_some() && self.id.as_deref() == id;
        let renamed = self.name.is_some() && name.is_some();
        match key {
            // Servers without indices send calls whole, or repeat the id.
            None => other_id || (renamed && !same_id) || (renamed && self.is_whole() && !args.is_empty()),
            // Servers that number every call 0 send another id, or go on
            // after the arguments are complete.
            Some(_) => renamed && (other_id || (self.is_whole() && !args.is_empty())),
        }
    }

    fn is_whole(&self) -> bool {
        self.args.ends_with('}') && serde_json::from_str::<IgnoredAny>(&self.args).is_ok()
    }
}
