//! One server-sent event, written once into one buffer.

use std::io::Write as _;
use std::ops::Range;

use serde::Serialize;
use toolyard_protocol::{RunId, SpaceId, Timestamp};

use super::delta::PartId;

/// A frame as it goes over the wire. The text is already encoded: a frame of
/// the hot path costs one allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    id: Option<i64>,
    name: &'static str,
    text: String,
    data: Range<usize>,
}

/// What every payload starts with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'a> {
    pub(super) run: Option<&'a RunId>,
    pub(super) seq: Option<i64>,
    pub(super) ts: Option<Timestamp>,
    pub(super) space: Option<&'a SpaceId>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Beginning<'a> {
    #[serde(rename = "type")]
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smart_space_id: Option<&'a SpaceId>,
}

/// The fields of the beginning, then those of the body, as one object. By hand:
/// serde's `flatten` takes several times as long, and every event pays it.
fn write_payload(text: &mut Vec<u8>, beginning: &Beginning<'_>, body: &impl Serialize) -> Result<(), Broken> {
    serde_json::to_writer(&mut *text, beginning).map_err(|_| Broken)?;
    text.pop();
    let joint = text.len();
    serde_json::to_writer(&mut *text, body).map_err(|_| Broken)?;
    match text.get_mut(joint..) {
        Some([b'{', b'}']) => {
            text.truncate(joint);
            text.push(b'}');
        }
        Some([open @ b'{', ..]) => *open = b',',
        Some(_) | None => return Err(Broken),
    }
    Ok(())
}

/// A body that is no object.
struct Broken;

/// Room for the field names and ids of a payload.
const OVERHEAD: usize = 320;

impl Frame {
    /// Writes a frame. `room` is the length of the texts in `body`, as a hint.
    pub(super) fn write<B: Serialize>(
        id: Option<i64>,
        name: &'static str,
        head: Head<'_>,
        body: &B,
        room: usize,
    ) -> Self {
        let mut text = Vec::with_capacity(OVERHEAD + room + room / 8);
        if let Some(id) = id {
            // Writing into memory cannot fail.
            let _ = writeln!(text, "id: {id}");
        }
        text.extend_from_slice(b"event: ");
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b"\ndata: ");
        let start = text.len();
        let Head { run, seq, ts, space } = head;
        let beginning = Beginning { name, run_id: run, seq, ts, smart_space_id: space };
        if write_payload(&mut text, &beginning, body).is_err() {
            // Plain structs with string keys cannot fail to serialize. If one
            // ever does, a reader gets an empty object and not half of one.
            text.truncate(start);
            text.extend_from_slice(b"{}");
        }
        let data = start..text.len();
        text.extend_from_slice(b"\n\n");
        // JSON is UTF-8: nothing is ever replaced.
        let text = String::from_utf8(text).unwrap_or_default();
        Self { id, name, text, data }
    }

    /// As `write`, for a piece of text or its edges, where every instruction counts.
    /// Ids and names need no escaping, so only the text is looked at.
    pub(super) fn piece(
        name: &'static str,
        space: Option<&SpaceId>,
        id: PartId<'_>,
        delta: Option<&str>,
    ) -> Self {
        let mut text = Vec::with_capacity(OVERHEAD + delta.map_or(0, |delta| delta.len() + delta.len() / 8));
        let mut add = |words: &[&str]| words.iter().for_each(|word| text.extend_from_slice(word.as_bytes()));
        add(&["event: ", name, "\ndata: {\"type\":\"", name, "\",\"runId\":\"", id.run.as_str()]);
        if let Some(space) = space {
            add(&["\",\"smartSpaceId\":\"", space.as_str()]);
        }
        let (mut step, mut part) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (step, part) = (step.format(id.step), part.format(id.part));
        add(&["\",\"step\":", step, ",\"id\":\"part_", id.run.bare(), "_", step, "_", part, "\""]);
        if let Some(delta) = delta {
            add(&[",\"delta\":"]);
            // A text cannot fail, and neither can memory.
            let _ = serde_json::to_writer(&mut text, delta);
        }
        text.push(b'}');
        let data = "event: \ndata: ".len() + name.len()..text.len();
        text.extend_from_slice(b"\n\n");
        let text = String::from_utf8(text).unwrap_or_default();
        Self { id: None, name, text, data }
    }

    /// The SSE id: the seq of a run's event, the place in a space. None for
    /// what is not in the log.
    pub fn id(&self) -> Option<i64> {
        self.id
    }
    /// The event name, also the payload's `type`.
    pub fn name(&self) -> &'static str {
        self.name
    }
    /// The payload: one line of JSON.
    pub fn data(&self) -> &str {
        self.text.get(self.data.clone()).unwrap_or_default()
    }
    /// The frame as SSE text, with its closing blank line. Costs nothing.
    pub fn encode(self) -> String {
        self.text
    }
    pub fn as_str(&self) -> &str {
        &self.text
    }
    pub(super) fn into_data(self) -> String {
        let Self { mut text, data, .. } = self;
        text.truncate(data.end);
        text.drain(..data.start);
        text
    }
}
