//! Keywords that only have a meaning together, collected while a schema's keywords are read.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::tree::{ALWAYS, Assertion, Kind, NodeId, Part};

/// What one schema object has said so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Parts that stand alone.
    pub parts: Vec<Part>,
    pub types: Option<Vec<Kind>>,
    pub properties: Option<BTreeMap<String, NodeId>>,
    pub patterns: Vec<(Assertion, NodeId)>,
    pub additional: Option<NodeId>,
    pub prefix: Option<Vec<NodeId>>,
    pub rest: Option<NodeId>,
    pub legacy_prefix: Option<Vec<NodeId>>,
    pub legacy_rest: Option<NodeId>,
    pub contains: Option<NodeId>,
    pub min_contains: Option<u64>,
    pub max_contains: Option<u64>,
    pub test: Option<NodeId>,
    pub then: Option<NodeId>,
    pub otherwise: Option<NodeId>,
    pub dependent: BTreeMap<String, NodeId>,
    pub dependent_required: Map<String, Value>,
}

impl Gathered {
    /// The parts, types first: a value of the wrong type is reported as that and nothing else.
    pub(super) fn into_parts(self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.types.map(Part::Types).into_iter().collect();
        parts.extend(self.parts);
        if self.properties.is_some() || !self.patterns.is_empty() || self.additional.is_some() {
            parts.push(Part::Object {
                properties: self.properties.unwrap_or_default(),
                patterns: self.patterns,
                additional: self.additional,
            });
        }
        // Without an `items` list `additionalItems` says nothing.
        let (prefix, rest) = match self.legacy_prefix {
            Some(prefix) => (Some(prefix), self.legacy_rest),
            None => (self.prefix, self.rest),
        };
        if prefix.is_some() || rest.is_some() {
            parts.push(Part::Array { prefix: prefix.unwrap_or_default(), rest });
        }
        if let Some(item) = self.contains {
            parts.push(Part::Contains { item, min: self.min_contains.unwrap_or(1), max: self.max_contains });
        }
        if let Some(test) = self.test {
            parts.push(Part::If {
                test,
                then: self.then.unwrap_or(ALWAYS),
                otherwise: self.otherwise.unwrap_or(ALWAYS),
            });
        }
        if !self.dependent.is_empty() {
            parts.push(Part::Dependent(self.dependent));
        }
        if !self.dependent_required.is_empty() {
            parts.push(Part::Assert(Assertion::new(
                "dependentRequired",
                Value::Object(self.dependent_required),
            )));
        }
        parts
    }
}
