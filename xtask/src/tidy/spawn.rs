//! Rule: a task is named, joined at shutdown, and its panic is reported. A raw
//! `tokio::spawn` is none of these, so each one says why it may stand, in a
//! comment right above it: `// tidy: spawn — <reason>`.

use super::finding::Finding;
use super::source::RustFile;

const MARK: &str = "tidy: spawn";
const MESSAGE: &str = "raw tokio::spawn; use the named tasks, \
                       or explain it above with `// tidy: spawn — <reason>`";

pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    if file.crate_folder().is_none() {
        return Vec::new();
    }
    let mut calls = file.sequences(&["tokio", "::", "spawn"]);
    calls.extend(file.sequences(&["tokio", "::", "task", "::", "spawn"]));
    calls.extend(imported(file, "spawn"));
    if !imported(file, "task").is_empty() {
        let is_plain = |at: &usize| *at == 0 || !file.tokens[*at - 1].is_sign("::");
        let through_module = file.sequences(&["task", "::", "spawn"]);
        calls.extend(through_module.into_iter().filter(is_plain));
    }
    let mut lines: Vec<usize> = calls.into_iter().map(|at| file.tokens[at].line).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
        .into_iter()
        .filter(|line| !file.is_test(*line) && !is_explained(file, *line))
        .map(|line| Finding::at(file.path, line, MESSAGE))
        .collect()
}

/// Where a `use tokio::…` brings the name into the file, so that a later call
/// does not show where it comes from.
fn imported(file: &RustFile<'_>, name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for start in file.sequences(&["use", "tokio", "::"]) {
        let import = file.tokens[start..].iter().enumerate();
        let import = import.take_while(|(_, token)| !token.is_sign(";"));
        let named = import.filter(|(_, token)| token.is_word(name));
        found.extend(named.map(|(offset, _)| start + offset));
    }
    found
}

/// Whether the block of comments and attributes right above has the mark and a reason.
fn is_explained(file: &RustFile<'_>, line: usize) -> bool {
    let mut above = line;
    while above > 1 {
        above -= 1;
        let comment = file.comments.iter().find(|comment| comment.line == above);
        if let Some(reason) = comment.and_then(|comment| comment.text.split_once(MARK)) {
            let reason = reason.1.trim_matches(|c: char| c.is_whitespace() || "—–-:".contains(c));
            return !reason.is_empty();
        }
        let mut code = file.tokens.iter().filter(|token| token.line == above);
        let is_attribute = code.next().is_some_and(|token| token.is_sign("#"));
        if comment.is_none() && !is_attribute {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(source: &str) -> usize {
        check(&RustFile::new("crates/runtime/src/worker.rs", source)).len()
    }

    #[test]
    fn a_raw_spawn_without_a_reason_is_refused() {
        for source in [
            "tokio::spawn(work());",
            "tokio::task::spawn(work());",
            "use tokio::task;\ntask::spawn(work());",
            "use tokio::{spawn, sync::mpsc};",
            "// tidy: spawn —\ntokio::spawn(work());",
            "// tidy: spawn — a reason too far away\nlet a = 1;\ntokio::spawn(work());",
        ] {
            assert_eq!(findings(source), 1, "{source}");
        }
    }

    #[test]
    fn an_explained_spawn_other_spawns_and_tests_pass() {
        for source in [
            "// tidy: spawn — the one room that names and joins tasks\ntokio::spawn(work());",
            "// tidy: spawn — named and joined\n// over two lines\n#[expect(x)]\nlet h = tokio::spawn(work());",
            "set.spawn(work()); tokio::task::spawn_blocking(work);",
            "#[cfg(test)]\nmod tests { fn f() { tokio::spawn(work()); } }",
            "use crate::task;\ntask::spawn(\"worker\", work());",
            "use tokio::task;\ncrate::task::spawn(\"worker\", work());",
            "// tokio::spawn(work())",
        ] {
            assert_eq!(findings(source), 0, "{source}");
        }
    }
}
