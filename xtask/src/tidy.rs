//! The rules of the house that a compiler does not know. Each rule is a module
//! with one check and a test that feeds it a sample that must fail.
//!
//! `run` reads the repository once and gives every rule what it asks for. It
//! changes nothing. To add a rule, write its module and a line in `judge`.

mod arrows;
mod crate_folders;
mod finding;
mod http_clients;
mod length;
mod lexer;
mod licence;
mod names;
mod places;
mod reserved_deps;
mod source;
mod spawn;
mod sql;
mod supply;
mod unfinished;

use finding::Finding;
use source::{RustFile, TextFile};

use crate::graph::Graph;
use crate::workspace::{Workspace, WorkspaceError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum TidyError {
    #[error("tidy: {0}")]
    Workspace(#[from] WorkspaceError),
    #[error("{}\ntidy: {} findings", lines(.0), .0.len())]
    Untidy(Vec<Finding>),
}

/// Checks the repository of the current directory.
pub(crate) fn run() -> Result<String, TidyError> {
    let workspace = Workspace::read()?;
    let files = workspace.files()?;
    let mut findings = arrows::check(&workspace.packages);
    findings.extend(crate_folders::check(&workspace.packages, &files));
    findings.extend(reserved_deps::check(&workspace.packages));
    for path in &files {
        if let Some(text) = workspace.text_of(path)? {
            findings.extend(judge(&TextFile { path, text: &text }));
        }
    }
    let (built, partial) = dependencies(&workspace, &mut findings)?;
    if findings.is_empty() {
        let (files, packages) = (files.len(), workspace.packages.len());
        let here = if partial { " (for this machine only: the others' were never downloaded)" } else { "" };
        Ok(format!("tidy: {files} files, {packages} packages and {built} dependencies{here}, no findings"))
    } else {
        Err(TidyError::Untidy(findings))
    }
}

/// Judges what is built; answers how much that is, and whether it is only
/// what this machine builds.
fn dependencies(workspace: &Workspace, findings: &mut Vec<Finding>) -> Result<(usize, bool), TidyError> {
    let text = workspace.text_of("deny.toml")?.unwrap_or_default();
    match supply::Rules::read(&text) {
        Ok(rules) => {
            let graph = Graph::read(&rules.targets())?;
            findings.extend(supply::check(&rules, &graph.crates));
            Ok((graph.crates.len(), graph.partial))
        }
        Err(unread) => {
            findings.extend(unread);
            Ok((0, false))
        }
    }
}

/// What the rules for single files say about one.
fn judge(file: &TextFile<'_>) -> Vec<Finding> {
    let mut findings = length::check(file);
    findings.extend(places::check(file));
    findings.extend(names::check_typescript(file));
    findings.extend(unfinished::check_text(file));
    if file.extension() == "rs" {
        let rust = RustFile::new(file.path, file.text);
        for rule in [names::check_rust, sql::check, http_clients::check, spawn::check, unfinished::check_rust]
        {
            findings.extend(rule(&rust));
        }
    }
    findings
}

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_for_single_files_is_asked() {
        let note = concat!("FIX", "ME");
        let text = format!(
            "struct RunManager;\nfn a() {{ q(\"SELECT a FROM b\"); tokio::spawn(x); reqwest::Client::new(); }}\n\
             // {note}\n// see {}x\n{}",
            concat!("/ho", "me/"),
            "\n".repeat(500),
        );
        let findings = judge(&TextFile { path: "crates/runtime/src/a.rs", text: &text });
        let shown = lines(&findings);
        for part in ["RunManager", "SQL", "tokio::spawn", "HTTP client", note, "one machine", "lines; split"]
        {
            assert!(shown.contains(part), "{part} is missing in:\n{shown}");
        }
    }

    #[test]
    fn the_error_shows_each_place_and_the_count() {
        let findings = vec![Finding::at("a.rs", 3, "wrong"), Finding::whole("b", "also")];
        assert_eq!(TidyError::Untidy(findings).to_string(), "a.rs:3: wrong\nb: also\ntidy: 2 findings");
    }
}
