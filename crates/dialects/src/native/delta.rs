//! Streaming pieces as frames without an id. The hot path: written by hand, no
//! intermediate values.

use std::fmt;

use serde::{Serialize, Serializer};
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::visible::visible_delta;
use toolyard_protocol::{RunId, SpaceId, Viewer};

use super::frame::{Frame, Head};
use super::partial::partial_input;
use super::wire::{ToolInputDelta, ToolInputStart};

/// Names a streamed part by (run, step, part), so that every reader and replay
/// names the same one. Written out only when serialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartId<'a> {
    pub run: &'a RunId,
    pub step: u32,
    pub part: u32,
}

impl fmt::Display for PartId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.run.bare();
        write!(f, "part_{run}_{}_{}", self.step, self.part)
    }
}

impl Serialize for PartId<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// The frame of a piece on its run's stream; none if the viewer may not see it.
///
/// `written` is the whole input text of the call up to and with this piece, as
/// [`super::InputsSoFar`] keeps it; with it a `tool-input-delta` also carries
/// `partialInput` (row G33). Other pieces ignore it.
pub fn delta_frame(delta: &Delta, viewer: &Viewer, written: Option<&str>) -> Option<Frame> {
    render(None, delta, viewer, written)
}

/// As [`delta_frame`], on the stream of the run's space.
pub fn space_delta_frame(
    space: &SpaceId,
    delta: &Delta,
    viewer: &Viewer,
    written: Option<&str>,
) -> Option<Frame> {
    render(Some(space), delta, viewer, written)
}

fn render(space: Option<&SpaceId>, delta: &Delta, viewer: &Viewer, written: Option<&str>) -> Option<Frame> {
    if !visible_delta(viewer, delta) {
        return None;
    }
    let Delta { run, step, attempt: _, offset: _, piece } = delta;
    let step = *step;
    let head = Head { run: Some(run), space, ..Head::default() };
    let id = |part: &u32| PartId { run, step, part: *part };
    let edge = |name, part| Frame::piece(name, space, id(part), None);
    let grown = |name, part, text: &str| Frame::piece(name, space, id(part), Some(text));
    Some(match piece {
        Piece::TextStart { part } => edge("text-start", part),
        Piece::TextDelta { part, text } => grown("text-delta", part, text),
        Piece::TextEnd { part } => edge("text-end", part),
        Piece::ReasoningStart { part, public: _ } => edge("reasoning-start", part),
        Piece::ReasoningDelta { part, public: _, text } => grown("reasoning-delta", part, text),
        Piece::ReasoningEnd { part, public: _ } => edge("reasoning-end", part),
        Piece::ToolInputStart { call, tool, visibility: _ } => Frame::write(
            None,
            "tool-input-start",
            head,
            &ToolInputStart { tool_call_id: call, tool_name: tool },
            0,
        ),
        Piece::ToolInputDelta { call, tool, visibility: _, text } => {
            let body = ToolInputDelta {
                tool_call_id: call,
                tool_name: tool,
                delta: text,
                partial_input: written.and_then(partial_input),
            };
            Frame::write(None, "tool-input-delta", head, &body, text.len() + written.map_or(0, str::len))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::wire::{PartDelta, PartEdge};
    use super::*;

    /// The pieces are written by hand; what they are is said by the types of the wire.
    #[test]
    fn a_piece_is_written_as_its_type_says() {
        let (run, space) = (RunId::mint(), SpaceId::mint());
        for space in [None, Some(&space)] {
            let head = Head { run: Some(&run), space, ..Head::default() };
            let (step, id) = (12, PartId { run: &run, step: 12, part: 3 });
            for text in ["", "plain", "a \"b\" \\ \n\r\t \u{1} \u{7f} ä 🦀 \u{2028} </script>"] {
                let by_type = Frame::write(None, "text-delta", head, &PartDelta { step, id, delta: text }, 0);
                assert_eq!(Frame::piece("text-delta", space, id, Some(text)), by_type);
            }
            let empty = Frame::write(None, "x", head, &super::super::wire::RunStarted {}, 0);
            let fields: serde_json::Value = serde_json::from_str(empty.data()).unwrap_or_default();
            assert_eq!(fields["runId"], run.as_str(), "a body without fields: {}", empty.data());
            assert_eq!(Frame::write(None, "x", head, &[1], 0).data(), "{}", "a body that is no object");
            let by_type = Frame::write(None, "text-end", head, &PartEdge { step, id }, 0);
            assert_eq!(Frame::piece("text-end", space, id, None), by_type);
        }
    }
}
