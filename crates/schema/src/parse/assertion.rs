//! The values of keywords that hold no schema: types, names, counts, lists of values, patterns.

use serde_json::{Map, Value};

use super::Parser;
use super::gather::Gathered;
use crate::error::SchemaError;
use crate::limits::{MAX_ENUM, MAX_PATTERN_BYTES, MAX_PATTERNS};
use crate::pattern;
use crate::shape;
use crate::tree::{Assertion, Kind, Part};

impl<'a> Parser<'a> {
    pub(super) fn types(&self, value: &Value) -> Result<Vec<Kind>, SchemaError> {
        let names = match value {
            Value::String(_) => std::slice::from_ref(value),
            Value::Array(names) if !names.is_empty() => names,
            _ => return self.malformed("a type or a list of types"),
        };
        let mut kinds = Vec::new();
        for name in names {
            let kind = name.as_str().and_then(Kind::parse);
            let kind = kind.ok_or_else(|| SchemaError::UnknownType { at: self.place() })?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(kinds)
    }

    pub(super) fn names(&self, value: &Value) -> Result<Vec<String>, SchemaError> {
        match shape::names_of(value) {
            Some(names) => Ok(names),
            None => self.malformed("a list of names"),
        }
    }

    pub(super) fn count(&self, value: &Value) -> Result<u64, SchemaError> {
        match shape::count(value) {
            Some(count) => Ok(count),
            None => self.malformed(shape::Shape::Count.describe()),
        }
    }

    pub(super) fn enumeration(&self, value: &Value) -> Result<Part, SchemaError> {
        let Value::Array(options) = value else {
            return self.malformed("a list of values");
        };
        if options.len() > MAX_ENUM {
            return Err(SchemaError::EnumTooLong { at: self.place(), count: options.len() });
        }
        Ok(Part::Assert(Assertion::new("enum", value.clone())))
    }

    pub(super) fn pattern(&mut self, text: Option<&'a str>) -> Result<Assertion, SchemaError> {
        let Some(text) = text else {
            return self.malformed("a regular expression");
        };
        if text.len() > MAX_PATTERN_BYTES {
            return Err(SchemaError::PatternTooLong { at: self.place() });
        }
        if pattern::scan(text).backtracks {
            return Err(SchemaError::PatternUnsupported { at: self.place() });
        }
        let at = self.place();
        self.patterns.entry(text).or_insert(at);
        if self.patterns.len() > MAX_PATTERNS {
            return Err(SchemaError::TooManyPatterns);
        }
        Ok(Assertion::new("pattern", Value::from(text)))
    }

    pub(super) fn exclusive_flag(
        &self,
        siblings: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        into: &mut Gathered,
    ) -> Result<(), SchemaError> {
        if value.as_bool() != Some(true) {
            return Ok(());
        }
        let (keyword, bound) = if keyword == "exclusiveMinimum" {
            ("exclusiveMinimum", siblings.get("minimum"))
        } else {
            ("exclusiveMaximum", siblings.get("maximum"))
        };
        match bound {
            Some(bound) if bound.is_number() => {
                into.parts.push(Part::Assert(Assertion::new(keyword, bound.clone())));
                Ok(())
            }
            _ => self.malformed("a number"),
        }
    }
}
