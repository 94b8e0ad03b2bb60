//! Calls of a reply: each begins, grows and ends as an item of its own.

use serde_json::{Value, json};

use super::WIRE;
use crate::chunk::Chunk;
use crate::error::{Detail, ModelError};

#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    /// The place of its item.
    at: u64,
    item_id: Option<String>,
    name: Option<String>,
    args: String,
    ended: bool,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn starts(&mut self, at: u64, item: &Value, out: &mut Vec<Chunk>) {
        let item_id = item["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        self.calls.push(Call { at, item_id, name: None, args: String::new(), ended: false });
        let index = self.calls.len() - 1;
        self.named(index, item, out);
        // Most items begin empty; one that does not is not repeated in pieces.
        if let Some(args) = item["arguments"].as_str() {
            self.add(index, args, out);
        }
    }

    pub(super) fn grows(&mut self, id: Option<&str>, at: u64, piece: &str, out: &mut Vec<Chunk>) {
        if let Some(index) = self.find(id, at) {
            self.add(index, piece, out);
        }
    }

    /// The arguments are complete: `whole` is news as far as it goes on.
    pub(super) fn completes(&mut self, id: Option<&str>, at: u64, whole: &str, out: &mut Vec<Chunk>) {
        if let Some(index) = self.find(id, at) {
            self.complete(index, whole, out);
        }
    }

    /// A whole item, streamed before or not.
    pub(super) fn ends(&mut self, at: u64, mut item: Value, out: &mut Vec<Chunk>) {
        let known = self.find(item["id"].as_str(), at);
        let index = match known {
            Some(index) => index,
            None => {
                self.starts(at, &item, out);
                self.calls.len() - 1
            }
        };
        self.named(index, &item, out);
        if let Some(whole) = item["arguments"].as_str() {
            self.complete(index, whole, out);
        }
        let vendor_id = item["call_id"].as_str().map(str::to_owned);
        if let Value::Object(item) = &mut item {
            // These are ours to write when the call goes back.
            for name in ["type", "name", "arguments", "call_id"] {
                item.remove(name);
            }
        }
        self.tell(index, vendor_id, json!({ WIRE: { "at": at, "item": item } }), out);
    }

    /// Tells calls whose end never came, though the reply's did.
    pub(super) fn finish(&mut self, out: &mut Vec<Chunk>) -> Result<(), ModelError> {
        for index in 0..self.calls.len() {
            if self.calls[index].name.is_none() {
                return Err(ModelError::Unreadable { detail: Detail::new("a tool call has no name") });
            }
            let at = self.calls[index].at;
            self.tell(index, None, json!({ WIRE: { "at": at } }), out);
        }
        Ok(())
    }

    fn tell(&mut self, index: usize, vendor_id: Option<String>, metadata: Value, out: &mut Vec<Chunk>) {
        let call = &mut self.calls[index];
        if let (false, Some(name)) = (call.ended, &call.name) {
            call.ended = true;
            let blank = call.args.trim().is_empty();
            let args_text = if blank { "{}".to_owned() } else { std::mem::take(&mut call.args) };
            out.push(Chunk::ToolCall { index, name: name.clone(), args_text, vendor_id, metadata });
        }
    }

    fn named(&mut self, index: usize, item: &Value, out: &mut Vec<Chunk>) {
        let call = &mut self.calls[index];
        if call.name.is_none()
            && let Some(name) = item["name"].as_str().filter(|name| !name.is_empty())
        {
            call.name = Some(name.to_owned());
            out.push(Chunk::ToolInputStart { index, name: name.to_owned() });
            // What came before the name is told now.
            if !call.args.is_empty() {
                out.push(Chunk::ToolInputDelta { index, text: call.args.clone() });
            }
        }
    }

    fn add(&mut self, index: usize, piece: &str, out: &mut Vec<Chunk>) {
        let call = &mut self.calls[index];
        call.args.push_str(piece);
        if call.name.is_some() && !piece.is_empty() {
            out.push(Chunk::ToolInputDelta { index, text: piece.to_owned() });
        }
    }

    fn complete(&mut self, index: usize, whole: &str, out: &mut Vec<Chunk>) {
        let args = &mut self.calls[index].args;
        if let Some(rest) = whole.strip_prefix(args.as_str()) {
            let rest = rest.to_owned();
            self.add(index, &rest, out);
        } else {
            // The vendor's last word counts.
            *args = whole.to_owned();
        }
    }

    /// The open call of an item: by its id, else by its place. Servers in
    /// between give the same item another id with every event.
    fn find(&self, id: Option<&str>, at: u64) -> Option<usize> {
        let by_id = |call: &Call| !call.ended && id.is_some() && call.item_id.as_deref() == id;
        let by_place = |call: &Call| !call.ended && call.at == at;
        self.calls.iter().rposition(by_id).or_else(|| self.calls.iter().rposition(by_place))
    }
}
