//! The tree as one 2020-12 document, the only thing the compiler sees.
//!
//! A node that is referred to stands once, under `$defs`, and its place holds a reference too, so
//! the document is never larger than the tree.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::tree::{ALWAYS, NEVER, NodeId, Part, Tree};

pub(crate) fn emit(tree: &Tree) -> Value {
    let mut emitter = Emitter { tree, shared: HashMap::new() };
    for part in tree.nodes.iter().flat_map(|node| &node.parts) {
        if let Part::Ref(target) = part {
            let next = emitter.shared.len();
            emitter.shared.entry(*target).or_insert(next);
        }
    }
    let Value::Object(mut document) = emitter.place(tree.root) else {
        return Value::Bool(true);
    };
    if !emitter.shared.is_empty() {
        let definitions: Map<String, Value> =
            emitter.shared.iter().map(|(id, number)| (number.to_string(), emitter.body(*id))).collect();
        document.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(document)
}

struct Emitter<'t> {
    tree: &'t Tree,
    /// Nodes that are referred to, with their number under `$defs`.
    shared: HashMap<NodeId, usize>,
}

impl Emitter<'_> {
    fn place(&self, id: NodeId) -> Value {
        match self.shared.get(&id) {
            Some(number) => json!({ "$ref": format!("#/$defs/{number}") }),
            None => self.body(id),
        }
    }

    fn body(&self, id: NodeId) -> Value {
        match id {
            ALWAYS => return Value::Bool(true),
            NEVER => return Value::Bool(false),
            _ => {}
        }
        let mut schema = Map::new();
        for part in self.tree.parts(id) {
            self.write(part, &mut schema);
        }
        Value::Object(schema)
    }

    fn places(&self, ids: &[NodeId]) -> Value {
        ids.iter().map(|id| self.place(*id)).collect()
    }

    fn places_by_name<'n>(&self, entries: impl Iterator<Item = (&'n str, NodeId)>) -> Value {
        Value::Object(entries.map(|(name, id)| (name.to_owned(), self.place(id))).collect())
    }

    fn write(&self, part: &Part, schema: &mut Map<String, Value>) {
        let mut put = |keyword: &str, value: Value| {
            schema.insert(keyword.to_owned(), value);
        };
        match part {
            Part::Types(kinds) => match kinds.as_slice() {
                [kind] => put("type", Value::from(kind.name())),
                kinds => put("type", kinds.iter().map(|kind| kind.name()).collect()),
            },
            Part::Required(names) => put("required", json!(names)),
            Part::Assert(assertion) => put(assertion.keyword, assertion.value.clone()),
            Part::Ref(target) => {
                if let Some(number) = self.shared.get(target) {
                    put("$ref", Value::from(format!("#/$defs/{number}")));
                }
            }
            Part::AllOf(ids) => put("allOf", self.places(ids)),
            Part::AnyOf(ids) => put("anyOf", self.places(ids)),
            Part::OneOf(ids) => put("oneOf", self.places(ids)),
            Part::Not(id) => put("not", self.place(*id)),
            Part::If { test, then, otherwise } => {
                put("if", self.place(*test));
                put("then", self.place(*then));
                put("else", self.place(*otherwise));
            }
            Part::Object { properties, patterns, additional } => {
                let properties = properties.iter().map(|(name, id)| (name.as_str(), *id));
                put("properties", self.places_by_name(properties));
                if !patterns.is_empty() {
                    let patterns = patterns
                        .iter()
                        .filter_map(|(pattern, id)| pattern.value.as_str().map(|text| (text, *id)));
                    put("patternProperties", self.places_by_name(patterns));
                }
                if let Some(id) = additional {
                    put("additionalProperties", self.place(*id));
                }
            }
            Part::Names(id) => put("propertyNames", self.place(*id)),
            Part::Array { prefix, rest } => {
                if !prefix.is_empty() {
                    put("prefixItems", self.places(prefix));
                }
                if let Some(id) = rest {
                    put("items", self.place(*id));
                }
            }
            Part::Contains { item, min, max } => {
                put("contains", self.place(*item));
                put("minContains", Value::from(*min));
                if let Some(max) = max {
                    put("maxContains", Value::from(*max));
                }
            }
            Part::Dependent(map) => {
                let entries = map.iter().map(|(name, id)| (name.as_str(), *id));
                put("dependentSchemas", self.places_by_name(entries));
            }
            Part::Unevaluated { keyword, schema } => put(keyword, self.place(*schema)),
        }
    }
}
