//! What the value of each assertion keyword must look like.
//!
//! The compiler would find these mistakes too, but in the rewritten document, where the place it
//! names is not the author's.

use std::collections::HashSet;

use serde_json::Value;

/// The expected form of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Anything,
    Flag,
    Text,
    Number,
    PositiveNumber,
    Count,
}

/// The canonical name and the shape of an assertion keyword. `enum`, `pattern`, `type`,
/// `required` and `dependentRequired` have rules of their own and are not here.
pub(crate) fn assertion(keyword: &str) -> Option<(&'static str, Shape)> {
    Some(match keyword {
        "const" => ("const", Shape::Anything),
        "multipleOf" => ("multipleOf", Shape::PositiveNumber),
        "minimum" => ("minimum", Shape::Number),
        "maximum" => ("maximum", Shape::Number),
        "exclusiveMinimum" => ("exclusiveMinimum", Shape::Number),
        "exclusiveMaximum" => ("exclusiveMaximum", Shape::Number),
        "minLength" => ("minLength", Shape::Count),
        "maxLength" => ("maxLength", Shape::Count),
        "minItems" => ("minItems", Shape::Count),
        "maxItems" => ("maxItems", Shape::Count),
        "minProperties" => ("minProperties", Shape::Count),
        "maxProperties" => ("maxProperties", Shape::Count),
        "uniqueItems" => ("uniqueItems", Shape::Flag),
        "format" => ("format", Shape::Text),
        _ => return None,
    })
}

impl Shape {
    pub(crate) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Anything => true,
            Self::Flag => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::PositiveNumber => value.as_f64().is_some_and(|number| number > 0.0),
            Self::Count => count(value).is_some(),
        }
    }

    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Anything => "any value",
            Self::Flag => "true or false",
            Self::Text => "a string",
            Self::Number => "a number",
            Self::PositiveNumber => "a number above zero",
            Self::Count => "a whole number of at least zero",
        }
    }
}

/// A whole number of at least zero. `2.0` is one, as in every draft since 6.
pub(crate) fn count(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    // Beyond 2^53 a float is no exact count, and no list is that long.
    let float = value.as_f64()?;
    (float.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&float)).then_some(float as u64)
}

/// A list of names, each once, in their order.
pub(crate) fn names_of(value: &Value) -> Option<Vec<String>> {
    let mut known = HashSet::new();
    let mut names = Vec::new();
    for item in value.as_array()? {
        let name = item.as_str()?;
        if known.insert(name) {
            names.push(name.to_owned());
        }
    }
    Some(names)
}
