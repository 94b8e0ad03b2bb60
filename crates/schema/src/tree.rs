//! A schema as data: nodes in one vector, joined by numbers.
//!
//! Only what was understood is here. Annotations and unknown keywords are dropped by the parser,
//! older drafts are rewritten to 2020-12, references are numbers. So whatever walks this tree
//! (survey, emit, meter, explain) matches on [`Part`] without a fallback arm, and none of them
//! can meet a keyword the others do not know.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::compile;
use crate::pattern;

/// The number of a node in its tree.
pub(crate) type NodeId = usize;

/// The schema `true`.
pub(crate) const ALWAYS: NodeId = 0;

/// The schema `false`.
pub(crate) const NEVER: NodeId = 1;

#[derive(Debug)]
pub(crate) struct Tree {
    pub nodes: Vec<Node>,
    pub root: NodeId,
    /// The different patterns, each with the place it was first seen.
    pub patterns: Vec<(String, String)>,
}

impl Tree {
    /// The parts of a node; none for the two boolean schemas.
    pub(crate) fn parts(&self, id: NodeId) -> &[Part] {
        self.nodes.get(id).map_or(&[], |node| &node.parts)
    }
}

/// One subschema: everything its parts say holds together. A [`Part::Types`] comes first.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub parts: Vec<Part>,
}

/// A keyword, or a group of keywords that have no meaning apart.
#[derive(Debug)]
pub(crate) enum Part {
    Types(Vec<Kind>),
    Required(Vec<String>),
    Assert(Assertion),
    Ref(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        test: NodeId,
        then: NodeId,
        otherwise: NodeId,
    },
    Object {
        properties: BTreeMap<String, NodeId>,
        patterns: Vec<(Assertion, NodeId)>,
        additional: Option<NodeId>,
    },
    Names(NodeId),
    Array {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        item: NodeId,
        min: u64,
        max: Option<u64>,
    },
    Dependent(BTreeMap<String, NodeId>),
    Unevaluated {
        keyword: &'static str,
        schema: NodeId,
    },
}

/// How a part reaches a subschema: for the same value, or for a value inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Same,
    /// By reference, for the same value: adds a step but no depth.
    Ref,
    Inside,
}

impl Part {
    /// Steps this part itself costs for a small value, its subschemas not counted.
    pub(crate) fn price(&self) -> u64 {
        match self {
            Self::Required(names) => 1 + names.len() as u64 / 16,
            Self::Assert(assertion) => assertion.price(),
            Self::Object { patterns, .. } => {
                patterns.iter().fold(0, |sum, (name, _)| name.price().saturating_add(sum))
            }
            Self::Types(_)
            | Self::Ref(_)
            | Self::AllOf(_)
            | Self::AnyOf(_)
            | Self::OneOf(_)
            | Self::Not(_)
            | Self::If { .. }
            | Self::Names(_)
            | Self::Array { .. }
            | Self::Contains { .. }
            | Self::Dependent(_)
            | Self::Unevaluated { .. } => 0,
        }
    }

    /// Every subschema of this part.
    pub(crate) fn children(&self) -> Vec<(Reach, NodeId)> {
        let many = |reach: Reach, ids: &[NodeId]| ids.iter().map(|id| (reach, *id)).collect();
        match self {
            Self::Types(_) | Self::Required(_) | Self::Assert(_) => Vec::new(),
            Self::Ref(target) => vec![(Reach::Ref, *target)],
            Self::AllOf(ids) | Self::AnyOf(ids) | Self::OneOf(ids) => many(Reach::Same, ids),
            Self::Not(id) => vec![(Reach::Same, *id)],
            Self::If { test, then, otherwise } => many(Reach::Same, &[*test, *then, *otherwise]),
            Self::Object { properties, patterns, additional } => properties
                .values()
                .chain(patterns.iter().map(|(_, id)| id))
                .chain(additional)
                .map(|id| (Reach::Inside, *id))
                .collect(),
            Self::Names(id) | Self::Contains { item: id, .. } => vec![(Reach::Inside, *id)],
            Self::Array { prefix, rest } => {
                prefix.iter().chain(rest).map(|id| (Reach::Inside, *id)).collect()
            }
            Self::Dependent(map) => map.values().map(|id| (Reach::Same, *id)).collect(),
            Self::Unevaluated { schema, .. } => vec![(Reach::Inside, *schema)],
        }
    }
}

/// A JSON Schema type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
    Null,
}

impl Kind {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            "null" => Self::Null,
            _ => return None,
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
        }
    }

    /// The type of a value. Every number is `number`: whether 2.0 is an integer is asked by
    /// [`Kind::admits`].
    pub(crate) const fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    pub(crate) fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer, Value::Number(number)) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            _ => self == Self::of(value),
        }
    }
}

/// A keyword that looks at one value only, such as `minLength`.
///
/// The whole schema is compiled at once; the single test is built when a refusal is explained,
/// so that the explanation and the verdict come from the same code.
#[derive(Debug)]
pub(crate) struct Assertion {
    pub keyword: &'static str,
    pub value: Value,
    price: u64,
    test: OnceLock<Option<Validator>>,
}

impl Assertion {
    pub(crate) fn new(keyword: &'static str, value: Value) -> Self {
        Self { keyword, price: price(keyword, &value), value, test: OnceLock::new() }
    }

    /// Steps for a test of a small value; for patterns, steps per byte.
    pub(crate) const fn price(&self) -> u64 {
        self.price
    }

    pub(crate) fn is_built(&self) -> bool {
        self.test.get().is_some()
    }

    pub(crate) fn accepts(&self, value: &Value) -> bool {
        self.test
            .get_or_init(|| compile::single(self.keyword, &self.value))
            .as_ref()
            .is_none_or(|test| test.is_valid(value))
    }
}

fn price(keyword: &str, value: &Value) -> u64 {
    match (keyword, value) {
        // Measured: a live state costs about 8 ns per byte, a step is about 50 ns.
        ("pattern", Value::String(text)) => 1 + pattern::scan(text).states / 6,
        ("enum", Value::Array(options)) => 1 + options.len() as u64 / 16,
        ("dependentRequired", Value::Object(map)) => {
            map.values().fold(1, |sum, names| sum + names.as_array().map_or(1, Vec::len) as u64)
        }
        _ => 1,
    }
}
