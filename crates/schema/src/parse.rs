//! A schema's JSON to its tree: every keyword is understood, dropped or refused.
//!
//! All drafts from 4 to 2020-12 are read, and read the same way, whichever one `$schema` names:
//! authors mix them, so `$defs` works under draft 7 and an `items` list works under 2020-12.
//! A sibling of `$ref` counts. Annotations and unknown keywords leave no trace, except that a
//! reference hidden in an unknown keyword is still refused.
//!
//! Expects a value that [`crate::measure`] has passed: recursion here is as deep as the JSON.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::error::SchemaError;
use crate::limits::{Limits, MAX_NODES};
use crate::pointer::{Segment, place};
use crate::shape;
use crate::tree::{ALWAYS, Assertion, NEVER, Node, NodeId, Part, Tree};

mod assertion;
mod gather;
mod reference;

use gather::Gathered;

pub(crate) fn parse(schema: &Value, limits: &Limits) -> Result<Tree, SchemaError> {
    let Value::Object(root) = schema else {
        return Err(SchemaError::RootType);
    };
    if root.get("type").and_then(Value::as_str) != Some("object") {
        return Err(SchemaError::RootType);
    }
    if limits.is_request() && !root.contains_key("properties") {
        return Err(SchemaError::PropertiesMissing);
    }
    let mut parser = Parser {
        limits,
        path: Vec::new(),
        // The two boolean schemas keep their numbers; they have no parts.
        nodes: vec![Node::default(), Node::default()],
        known: HashMap::new(),
        anchors: HashMap::new(),
        references: Vec::new(),
        patterns: BTreeMap::new(),
    };
    let root = parser.schema(schema)?;
    parser.resolve_references(schema)?;
    Ok(Tree {
        nodes: parser.nodes,
        root,
        patterns: parser.patterns.into_iter().map(|(text, at)| (text.to_owned(), at)).collect(),
    })
}

struct Parser<'a> {
    limits: &'a Limits,
    /// Where the walk is, for error messages.
    path: Vec<Segment<'a>>,
    nodes: Vec<Node>,
    /// Subschemas by the address of their JSON: the only things a reference may point at.
    known: HashMap<usize, NodeId>,
    anchors: HashMap<&'a str, NodeId>,
    references: Vec<reference::Pending<'a>>,
    /// The different patterns and where each was first seen.
    patterns: BTreeMap<&'a str, String>,
}

/// Identity of a value within the document being parsed; never turned back into a reference.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Parser<'a> {
    fn place(&self) -> String {
        place(&self.path)
    }

    fn malformed<T>(&self, expected: &'static str) -> Result<T, SchemaError> {
        Err(SchemaError::Malformed { at: self.place(), expected })
    }

    fn within<T>(
        &mut self,
        segment: Segment<'a>,
        step: impl FnOnce(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<T, SchemaError> {
        self.path.push(segment);
        let outcome = step(self);
        self.path.pop();
        outcome
    }

    fn schema(&mut self, value: &'a Value) -> Result<NodeId, SchemaError> {
        let id = match value {
            Value::Bool(true) => ALWAYS,
            Value::Bool(false) => NEVER,
            Value::Object(map) => {
                let id = self.nodes.len();
                if id as u64 > MAX_NODES {
                    return Err(SchemaError::TooManyNodes);
                }
                self.nodes.push(Node::default());
                let parts = self.keywords(id, map)?;
                if let Some(node) = self.nodes.get_mut(id) {
                    node.parts = parts;
                }
                id
            }
            _ => return self.malformed("a schema: an object, true or false"),
        };
        self.known.insert(address(value), id);
        Ok(id)
    }

    fn keywords(&mut self, id: NodeId, map: &'a Map<String, Value>) -> Result<Vec<Part>, SchemaError> {
        let mut gathered = Gathered::default();
        for (keyword, value) in map {
            self.within(Segment::Name(keyword), |parser| {
                parser.keyword(id, map, keyword, value, &mut gathered)
            })?;
        }
        Ok(gathered.into_parts())
    }

    fn keyword(
        &mut self,
        id: NodeId,
        siblings: &'a Map<String, Value>,
        keyword: &'a str,
        value: &'a Value,
        into: &mut Gathered,
    ) -> Result<(), SchemaError> {
        match keyword {
            "type" => into.types = Some(self.types(value)?),
            "required" => into.parts.push(Part::Required(self.names(value)?)),
            "enum" => into.parts.push(self.enumeration(value)?),
            "pattern" => into.parts.push(Part::Assert(self.pattern(value.as_str())?)),

            "properties" => into.properties = Some(self.properties(value)?),
            "patternProperties" => into.patterns = self.pattern_properties(value)?,
            "additionalProperties" => into.additional = Some(self.schema(value)?),
            "propertyNames" => into.parts.push(Part::Names(self.schema(value)?)),
            "dependentSchemas" => into.dependent.extend(self.schemas_by_name(value)?),
            "dependentRequired" | "dependencies" => self.dependencies(value, into)?,

            "prefixItems" => into.prefix = Some(self.list(value)?),
            // Up to 2019-09 a list of schemas stood here, and `additionalItems` for the rest.
            "items" if value.is_array() && siblings.contains_key("prefixItems") => {
                return self.malformed("a schema, since prefixItems is given");
            }
            "items" if value.is_array() => into.legacy_prefix = Some(self.list(value)?),
            "items" => into.rest = Some(self.schema(value)?),
            "additionalItems" => into.legacy_rest = Some(self.schema(value)?),
            "contains" => into.contains = Some(self.schema(value)?),
            "minContains" => into.min_contains = Some(self.count(value)?),
            "maxContains" => into.max_contains = Some(self.count(value)?),

            "allOf" => into.parts.push(Part::AllOf(self.branches(value)?)),
            "anyOf" => into.parts.push(Part::AnyOf(self.branches(value)?)),
            "oneOf" => into.parts.push(Part::OneOf(self.branches(value)?)),
            "not" => into.parts.push(Part::Not(self.schema(value)?)),
            "if" => into.test = Some(self.schema(value)?),
            "then" => into.then = Some(self.schema(value)?),
            "else" => into.otherwise = Some(self.schema(value)?),
            "unevaluatedProperties" => {
                self.unevaluated("unevaluatedProperties", value, into)?;
            }
            "unevaluatedItems" => self.unevaluated("unevaluatedItems", value, into)?,

            "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" | "$id" | "$anchor"
            | "$schema" => self.reference_keyword(id, keyword, value)?,

            // Draft 4 says "the minimum itself is excluded" with a flag.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {
                self.exclusive_flag(siblings, keyword, value, into)?;
            }
            // A pattern in the arguments would be parsed by a second engine for no gain.
            "format" if value.as_str() == Some("regex") => {}
            // Data, which may look like anything.
            "default" | "examples" | "example" => {}
            _ => match shape::assertion(keyword) {
                Some((_, shape)) if !shape.fits(value) => {
                    return self.malformed(shape.describe());
                }
                Some((keyword, _)) => into.parts.push(Part::Assert(Assertion::new(keyword, value.clone()))),
                None => self.refuse_hidden_references(value)?,
            },
        }
        Ok(())
    }

    fn properties(&mut self, value: &'a Value) -> Result<BTreeMap<String, NodeId>, SchemaError> {
        let count = value.as_object().map_or(0, Map::len);
        self.limit_properties(count)?;
        self.schemas_by_name(value)
    }

    fn limit_properties(&self, count: usize) -> Result<(), SchemaError> {
        let limit = self.limits.max_properties;
        if count > limit {
            return Err(SchemaError::TooManyProperties { at: self.place(), count, limit });
        }
        Ok(())
    }

    fn pattern_properties(&mut self, value: &'a Value) -> Result<Vec<(Assertion, NodeId)>, SchemaError> {
        let Value::Object(map) = value else {
            return self.malformed("an object of schemas");
        };
        self.limit_properties(map.len())?;
        map.iter()
            .map(|(text, schema)| {
                self.within(Segment::Name(text), |parser| {
                    Ok((parser.pattern(Some(text))?, parser.schema(schema)?))
                })
            })
            .collect()
    }

    fn schemas_by_name(&mut self, value: &'a Value) -> Result<BTreeMap<String, NodeId>, SchemaError> {
        let Value::Object(map) = value else {
            return self.malformed("an object of schemas");
        };
        map.iter()
            .map(|(name, schema)| {
                let id = self.within(Segment::Name(name), |parser| parser.schema(schema))?;
                Ok((name.clone(), id))
            })
            .collect()
    }

    /// `dependencies` of the older drafts holds both kinds; `dependentRequired` only lists.
    fn dependencies(&mut self, value: &'a Value, into: &mut Gathered) -> Result<(), SchemaError> {
        let Value::Object(map) = value else {
            return self.malformed("an object");
        };
        for (name, needed) in map {
            self.within(Segment::Name(name), |parser| {
                if needed.is_array() {
                    let names = parser.names(needed)?;
                    into.dependent_required.insert(name.clone(), Value::from(names));
                } else {
                    into.dependent.insert(name.clone(), parser.schema(needed)?);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn list(&mut self, value: &'a Value) -> Result<Vec<NodeId>, SchemaError> {
        let Value::Array(schemas) = value else {
            return self.malformed("a list of schemas");
        };
        schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| self.within(Segment::Index(index), |parser| parser.schema(schema)))
            .collect()
    }

    fn branches(&mut self, value: &'a Value) -> Result<Vec<NodeId>, SchemaError> {
        let ids = self.list(value)?;
        if ids.is_empty() {
            return self.malformed("at least one schema");
        }
        Ok(ids)
    }

    fn unevaluated(
        &mut self,
        keyword: &'static str,
        value: &'a Value,
        into: &mut Gathered,
    ) -> Result<(), SchemaError> {
        let schema = self.schema(value)?;
        into.parts.push(Part::Unevaluated { keyword, schema });
        Ok(())
    }
}
