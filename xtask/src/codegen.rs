//! Generated files: written by `codegen`, committed, and compared by
//! `codegen --check`, so that a changed type cannot leave a stale file behind.
//!
//! To add a file, write a function that returns its whole text and add a line to
//! [`OUTPUTS`]. The text must depend on the code alone: no clock, no machine.

mod layout;
mod schemas;
mod typescript;

use std::fs;
use std::io;
use std::path::Path;

use crate::workspace::{Workspace, WorkspaceError};

/// One generated file.
struct Output {
    /// Relative to the root of the repository.
    path: &'static str,
    text: fn() -> String,
}

/// Every generated file of the repository.
const OUTPUTS: &[Output] = &[
    Output { path: "api/agent-config.schema.json", text: schemas::agent_config },
    Output { path: "api/errors.json", text: schemas::errors },
    Output { path: "api/events.schema.json", text: schemas::events },
    Output { path: "api/frames.schema.json", text: schemas::frames },
    Output { path: "packages/protocol/src/generated/agent-config.ts", text: typescript::agent_config },
    Output { path: "packages/protocol/src/generated/errors.ts", text: typescript::errors },
    Output { path: "packages/protocol/src/generated/events.ts", text: typescript::events },
    Output { path: "packages/protocol/src/generated/frames.ts", text: typescript::frames },
    Output { path: "packages/protocol/src/generated/types.ts", text: typescript::types },
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum CodegenError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("{path}: {source}")]
    NotWritten { path: &'static str, source: io::Error },
    #[error("codegen: stale or missing files, run `make codegen` and commit the result:\n  {}", .0.join("\n  "))]
    Stale(Vec<&'static str>),
}

/// Writes every output that differs from its file.
pub(crate) fn write() -> Result<String, CodegenError> {
    let root = Workspace::read()?.root;
    let written = write_outputs(&root, OUTPUTS)?;
    Ok(report(OUTPUTS, &format!("{written} written")))
}

/// Fails if an output differs from its file.
pub(crate) fn check() -> Result<String, CodegenError> {
    let root = Workspace::read()?.root;
    let stale = stale_outputs(&root, OUTPUTS);
    if stale.is_empty() { Ok(report(OUTPUTS, "all as generated")) } else { Err(CodegenError::Stale(stale)) }
}

fn report(outputs: &[Output], outcome: &str) -> String {
    match outputs.len() {
        0 => "codegen: nothing to generate yet".to_owned(),
        count => format!("codegen: {count} files, {outcome}"),
    }
}

fn write_outputs(root: &Path, outputs: &[Output]) -> Result<usize, CodegenError> {
    let mut written = 0;
    for output in outputs {
        let path = output.path;
        let not_written = |source| CodegenError::NotWritten { path, source };
        let text = (output.text)();
        let file = root.join(path);
        // An equal file keeps its time, so that nothing is rebuilt for it.
        if fs::read_to_string(&file).is_ok_and(|present| present == text) {
            continue;
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(not_written)?;
        }
        fs::write(&file, text).map_err(not_written)?;
        written += 1;
    }
    Ok(written)
}

fn stale_outputs(root: &Path, outputs: &[Output]) -> Vec<&'static str> {
    outputs
        .iter()
        .filter(|output| {
            let present = fs::read_to_string(root.join(output.path));
            !present.is_ok_and(|present| present == (output.text)())
        })
        .map(|output| output.path)
        .collect()
}

#[cfg(test)]
#[path = "codegen_tests.rs"]
mod tests;
