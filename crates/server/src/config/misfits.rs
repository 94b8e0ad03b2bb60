//! Values that do not fit their keys: all of them, and not only the first.

use toml::{Table, Value};

use super::load::ConfigError;
use super::section::Config;

/// The configuration of a table, or the first value that does not fit its key.
pub(super) fn read_table(table: Table) -> Result<Config, ConfigError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|e| {
        let key = match e.path().to_string().as_str() {
            "." => "configuration".to_owned(),
            path => path.to_owned(),
        };
        ConfigError::Key { key, why: e.into_inner().message().to_owned() }
    })
}

/// Every value that does not fit its key. Reading stops at the first one, so
/// each key is read alone. What it then misses beside it is no fault of its own.
pub(super) fn misfits(path: &mut Vec<String>, table: &Table) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (name, value) in table {
        path.push(name.clone());
        if let Err(error) = read_table(alone(path, value))
            && error.is_of(&path.join("."))
        {
            let below = value.as_table().map(|table| misfits(path, table)).unwrap_or_default();
            if below.is_empty() { found.push(error) } else { found.extend(below) }
        }
        path.pop();
    }
    found
}

/// A file that has this one value.
fn alone(path: &[String], value: &Value) -> Table {
    let around = |inner, name: &String| Value::Table(Table::from_iter([(name.clone(), inner)]));
    match path.iter().rev().fold(value.clone(), around) {
        Value::Table(table) => table,
        _ => Table::new(),
    }
}
