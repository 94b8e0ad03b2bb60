//! The step so far: what a reader that joins in the middle gets first. It
//! replaces whatever the reader had of that step.

use schemars::JsonSchema;
use serde::Serialize;
use toolyard_protocol::delta::{Delta, Piece};
use toolyard_protocol::visible::visible_delta;
use toolyard_protocol::{CallId, RunId, SpaceId, ToolName, Viewer};
use ts_rs::TS;

use super::delta::PartId;
use super::frame::{Frame, Head};
use super::wire::StepSoFar;

/// A streamed part, as far as it has come.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, TS)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[ts(optional_fields)]
pub enum PartSoFar<'a> {
    Text {
        #[ts(type = "string")]
        #[schemars(with = "String")]
        id: PartId<'a>,
        text: String,
        done: bool,
    },
    Reasoning {
        #[ts(type = "string")]
        #[schemars(with = "String")]
        id: PartId<'a>,
        text: String,
        done: bool,
    },
    ToolInput {
        tool_call_id: CallId,
        tool_name: ToolName,
        /// What the model has written of the input. Absent for a private tool
        /// on a public key.
        #[serde(skip_serializing_if = "Option::is_none")]
        input_text: Option<String>,
    },
}

/// The pieces of an attempt in one frame, without an id.
pub fn step_so_far(
    run: &RunId,
    step: u32,
    attempt: u32,
    pieces: impl IntoIterator<Item = Piece>,
    viewer: &Viewer,
) -> Frame {
    render(None, run, step, attempt, pieces, viewer)
}

/// As [`step_so_far`], on the stream of the run's space.
pub fn space_step_so_far(
    space: &SpaceId,
    run: &RunId,
    step: u32,
    attempt: u32,
    pieces: impl IntoIterator<Item = Piece>,
    viewer: &Viewer,
) -> Frame {
    render(Some(space), run, step, attempt, pieces, viewer)
}

fn render(
    space: Option<&SpaceId>,
    run: &RunId,
    step: u32,
    attempt: u32,
    pieces: impl IntoIterator<Item = Piece>,
    viewer: &Viewer,
) -> Frame {
    let mut parts = Vec::new();
    for (offset, piece) in (0..).zip(pieces) {
        let delta = Delta { run: run.clone(), step, attempt, offset, piece };
        if visible_delta(viewer, &delta) {
            let Delta { piece, .. } = delta;
            add(&mut parts, |part| PartId { run, step, part }, piece);
        }
    }
    let room = parts.iter().map(room).sum();
    let head = Head { run: Some(run), space, ..Head::default() };
    Frame::write(None, "step-so-far", head, &StepSoFar { step, attempt, parts }, room)
}

fn room(part: &PartSoFar<'_>) -> usize {
    match part {
        PartSoFar::Text { text, .. } | PartSoFar::Reasoning { text, .. } => text.len() + 128,
        PartSoFar::ToolInput { input_text, .. } => input_text.as_ref().map_or(0, String::len) + 192,
    }
}

fn add<'a>(parts: &mut Vec<PartSoFar<'a>>, id: impl Fn(u32) -> PartId<'a>, piece: Piece) {
    match piece {
        Piece::TextStart { part } => grow_text(parts, id(part), "", false),
        Piece::TextDelta { part, text } => grow_text(parts, id(part), &text, false),
        Piece::TextEnd { part } => grow_text(parts, id(part), "", true),
        Piece::ReasoningStart { part, public: _ } => grow_reasoning(parts, id(part), "", false),
        Piece::ReasoningDelta { part, public: _, text } => grow_reasoning(parts, id(part), &text, false),
        Piece::ReasoningEnd { part, public: _ } => grow_reasoning(parts, id(part), "", true),
        Piece::ToolInputStart { call, tool, visibility: _ } => grow_input(parts, call, tool, None),
        Piece::ToolInputDelta { call, tool, visibility: _, text } => {
            grow_input(parts, call, tool, Some(&text));
        }
    }
}

fn grow_text<'a>(parts: &mut Vec<PartSoFar<'a>>, new: PartId<'a>, more: &str, ends: bool) {
    for part in parts.iter_mut().rev() {
        if let PartSoFar::Text { id, text, done } = part
            && *id == new
        {
            text.push_str(more);
            *done |= ends;
            return;
        }
    }
    parts.push(PartSoFar::Text { id: new, text: more.to_owned(), done: ends });
}

fn grow_reasoning<'a>(parts: &mut Vec<PartSoFar<'a>>, new: PartId<'a>, more: &str, ends: bool) {
    for part in parts.iter_mut().rev() {
        if let PartSoFar::Reasoning { id, text, done } = part
            && *id == new
        {
            text.push_str(more);
            *done |= ends;
            return;
        }
    }
    parts.push(PartSoFar::Reasoning { id: new, text: more.to_owned(), done: ends });
}

fn grow_input(parts: &mut Vec<PartSoFar<'_>>, call: CallId, tool: ToolName, more: Option<&str>) {
    for part in parts.iter_mut().rev() {
        if let PartSoFar::ToolInput { tool_call_id, input_text, .. } = part
            && *tool_call_id == call
        {
            if let Some(more) = more {
                input_text.get_or_insert_default().push_str(more);
            }
            return;
        }
    }
    parts.push(PartSoFar::ToolInput {
        tool_call_id: call,
        tool_name: tool,
        input_text: more.map(str::to_owned),
    });
}
