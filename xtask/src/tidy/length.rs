//! Rule: a source file has one purpose and at most [`LIMIT`] lines.

use super::finding::Finding;
use super::source::TextFile;

const LIMIT: usize = 500;

/// Folders written by `codegen`: nobody reads them from top to bottom.
const GENERATED: [&str; 2] = ["api/", "packages/protocol/src/generated/"];

pub(crate) fn check(file: &TextFile<'_>) -> Vec<Finding> {
    let is_source = file.extension() == "rs" || file.is_typescript();
    if !is_source || GENERATED.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let lines = file.text.lines().count();
    if lines <= LIMIT {
        return Vec::new();
    }
    vec![Finding::whole(file.path, format!("{lines} lines; split it by purpose, the limit is {LIMIT}"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, lines: usize) -> usize {
        check(&TextFile { path, text: &"x\n".repeat(lines) }).len()
    }

    #[test]
    fn a_source_file_over_the_limit_is_refused() {
        assert_eq!(findings("crates/store/src/append.rs", 501), 1);
        assert_eq!(findings("packages/react/src/Chat.tsx", 501), 1);
    }

    #[test]
    fn the_limit_itself_other_files_and_generated_files_pass() {
        assert_eq!(findings("crates/store/src/append.rs", 500), 0);
        assert_eq!(findings("docs/tour.md", 501), 0);
        assert_eq!(findings("packages/protocol/src/generated/event.ts", 501), 0);
    }
}
