//! Streaming pieces that are never logged. Losing one loses nothing: the
//! whole step follows as an event.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, RunId};
use crate::name::ToolName;
use crate::tool::Visibility;

/// A piece of a step, in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    pub run: RunId,
    pub step: u32,
    pub attempt: u32,
    /// Counts the pieces of this attempt from zero, without gaps.
    pub offset: u32,
    pub piece: Piece,
}

/// What is new. Nodes tell each other in this form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Piece {
    TextStart { part: u32 },
    TextDelta { part: u32, text: Arc<str> },
    TextEnd { part: u32 },
    ReasoningStart { part: u32, public: bool },
    ReasoningDelta { part: u32, public: bool, text: Arc<str> },
    ReasoningEnd { part: u32, public: bool },
    ToolInputStart { call: CallId, tool: ToolName, visibility: Visibility },
    ToolInputDelta { call: CallId, tool: ToolName, visibility: Visibility, text: Arc<str> },
}
