//! Answers for people and for programs.

use std::io::Write;

use serde_json::Value;

/// Prints a line. Whoever has heard enough, as `head` does, is no error.
pub(super) fn line(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a value: as JSON, or in words.
pub(super) fn value(json: bool, value: &Value, words: impl FnOnce(&Value) -> String) {
    if json {
        line(format_args!("{value:#}"));
    } else {
        line(words(value));
    }
}

/// Prints the rows under `list`: as JSON, or one line each.
pub(super) fn rows(json: bool, value: &Value, list: &str, columns: &[&str]) {
    if json {
        line(format_args!("{value:#}"));
        return;
    }
    let rows = value.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| cell(row.get(*column))).collect()).collect();
    let width = |i: usize, column: &str| {
        cells.iter().map(|row| row[i].chars().count()).max().unwrap_or(0).max(column.chars().count())
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(i, column)| width(i, column)).collect();
    let joined = |row: Vec<&str>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    line(joined(columns.to_vec()));
    for row in &cells {
        line(joined(row.iter().map(String::as_str).collect()));
    }
}

/// One value in words.
pub(super) fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) if list.is_empty() => "-".to_owned(),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}
