//! Rule: only `store` holds SQL. Everyone else asks the store, so that tenant,
//! transaction and dialect are decided in one place.

use super::finding::Finding;
use super::lexer::Kind;
use super::source::RustFile;

const HOME: &str = "store";

/// Words that make a statement when the second follows the first.
const STATEMENTS: [(&str, &str); 8] = [
    ("SELECT", "FROM"),
    ("INSERT", "INTO"),
    ("UPDATE", "SET"),
    ("DELETE", "FROM"),
    ("CREATE", "TABLE"),
    ("ALTER", "TABLE"),
    ("DROP", "TABLE"),
    ("CREATE", "INDEX"),
];

pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    let Some(folder) = file.crate_folder() else {
        return Vec::new();
    };
    if folder == HOME {
        return Vec::new();
    }
    file.tokens
        .iter()
        .filter(|token| token.kind == Kind::Text && !file.is_test(token.line))
        .filter(|token| is_sql(token.text))
        .map(|token| {
            let message = "SQL outside crates/store; add a method to the store instead";
            Finding::at(file.path, token.line, message)
        })
        .collect()
}

/// Signs that a statement has and a sentence has not.
const MARKS: [&str; 5] = ["*", "$1", " = ", " ?", "(?"];

/// Capital keywords are SQL wherever they stand. Small ones could be a sentence
/// ("select a file from the list"), so they count only at the start of a text
/// that also has a mark.
fn is_sql(literal: &str) -> bool {
    let inside = literal.trim_start_matches(['b', 'c', 'r', '#', '"']).trim_start();
    let plain = words(inside);
    if STATEMENTS.iter().any(|statement| has_statement(&plain, *statement)) {
        return true;
    }
    let starts_small = inside.starts_with(|c: char| c.is_lowercase());
    if !starts_small || !MARKS.iter().any(|mark| inside.contains(mark)) {
        return false;
    }
    let upper = inside.to_uppercase();
    let capital = words(&upper);
    STATEMENTS
        .iter()
        .any(|statement| capital.first() == Some(&statement.0) && has_statement(&capital, *statement))
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

fn has_statement(words: &[&str], (first, second): (&str, &str)) -> bool {
    let start = words.iter().position(|word| *word == first);
    start.is_some_and(|start| words[start..].contains(&second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, source: &str) -> usize {
        check(&RustFile::new(path, source)).len()
    }

    #[test]
    fn statements_outside_store_are_refused() {
        for source in [
            "q(\"SELECT id FROM runs\")",
            "q(r#\"\n  INSERT INTO runs (id) VALUES ($1)\"#)",
            "q(\"UPDATE runs SET owner = NULL\")",
            "q(\"WITH x AS (SELECT 1) DELETE FROM runs\")",
            "q(\"select * from runs\")",
            "q(\"update runs set owner = $1\")",
            "q(\"CREATE TABLE runs (id TEXT)\")",
        ] {
            assert_eq!(findings("crates/runtime/src/worker.rs", source), 1, "{source}");
        }
    }

    #[test]
    fn the_store_tests_and_sentences_pass() {
        let statement = "q(\"SELECT id FROM runs\")";
        assert_eq!(findings("crates/store/src/append.rs", statement), 0);
        assert_eq!(findings("crates/runtime/tests/it/worker.rs", statement), 0);
        assert_eq!(findings("xtask/src/main.rs", statement), 0);
        for source in [
            "m(\"select an agent from the list\")",
            "m(\"the update could not be set\")",
            "m(\"Update the key, then set it (see docs)\")",
            "// SELECT id FROM runs",
        ] {
            assert_eq!(findings("crates/runtime/src/worker.rs", source), 0, "{source}");
        }
    }
}
