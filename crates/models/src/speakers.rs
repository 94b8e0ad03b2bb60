//! Who speaks, on wires that have no field for names.

use crate::request::ChatTurn;

/// More than one person speaks, so that the model must be told who. One
/// speaker needs no name.
pub(crate) fn several_speak(turns: &[ChatTurn]) -> bool {
    let mut names = turns.iter().filter_map(|turn| match turn {
        ChatTurn::User { name, .. } => name.as_deref(),
        ChatTurn::Assistant { .. } | ChatTurn::ToolResults(_) | ChatTurn::System(_) => None,
    });
    names.next().is_some_and(|first| names.any(|other| other != first))
}

/// Stands before what a speaker says.
pub(crate) fn label(name: &str) -> String {
    format!("[{name}]")
}
