//! The file as it was written: on which line a key stands. Only errors ask.

use std::ops::Range;
use std::path::Path;

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::load::ConfigError;

/// A configuration file and its text.
#[derive(Debug)]
pub(super) struct Written {
    file: String,
    text: String,
}

impl Written {
    pub(super) fn read(file: &Path) -> Result<Self, ConfigError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|why| ConfigError::Unreadable { file: name.clone(), why })?;
        Ok(Self { file: name, text })
    }

    pub(super) fn table(&self) -> Result<Table, ConfigError> {
        self.text.parse::<Table>().map_err(|e| {
            let why = e.to_string().trim_end().to_owned();
            ConfigError::NotToml { file: self.file.clone(), why }
        })
    }

    /// The file and the line of a key, as `limits.burst` or `a.list[2].b`. One
    /// that is missing belongs to the section that it is missing from.
    pub(super) fn place_of(&self, key: &str) -> Option<(String, usize)> {
        let table = DeTable::parse(&self.text).ok()?;
        let start = in_table(table.get_ref(), key)?.start;
        let line = self.text.get(..start)?.matches('\n').count() + 1;
        Some((self.file.clone(), line))
    }
}

fn in_table(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    // A key may hold dots itself, so it is looked for as a whole.
    let (key, value, rest) = table.iter().find_map(|(key, value)| {
        let rest = path.strip_prefix(&**key.get_ref())?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some((key, value, rest))
    })?;
    Some(in_value(value.get_ref(), rest).unwrap_or_else(|| key.span()))
}

fn in_value(value: &DeValue<'_>, path: &str) -> Option<Range<usize>> {
    match value {
        DeValue::Table(table) => in_table(table, path.strip_prefix('.')?),
        DeValue::Array(items) => {
            let (number, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(number.parse::<usize>().ok()?)?;
            Some(in_value(item.get_ref(), rest).unwrap_or_else(|| item.span()))
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_line_on_which_it_stands() {
        let text = "listen = \"x\"\n\n[limits]\nburst = 1\n\n[models.\"gpt-4.1\"]\nmodel = \"m\"\nfiles = [\n  \"a/b\",\n  \"c\",\n]\n";
        let written = Written { file: "t.toml".to_owned(), text: text.to_owned() };
        let line = |key: &str| written.place_of(key).map(|(_, line)| line);
        for (key, wanted) in [
            ("listen", Some(1)),
            ("limits", Some(3)),
            ("limits.burst", Some(4)),
            ("limits.missing", Some(3)),
            ("models.gpt-4.1.model", Some(7)),
            ("models.gpt-4.1.files[1]", Some(10)),
            ("configuration", None),
            ("lim", None),
        ] {
            assert_eq!(line(key), wanted, "{key}");
        }
    }
}
