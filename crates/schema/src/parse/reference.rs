//! References: what may be referred to, and what is refused on sight.
//!
//! A reference is resolved here, to a node of the tree, and the compiler only ever sees
//! `#/$defs/<number>`. So there is no spelling of a reference, base or anchor that could make it
//! look outside the document.

use serde_json::Value;

use super::{Parser, address};
use crate::error::SchemaError;
use crate::pointer::resolve;
use crate::tree::{NodeId, Part};

/// A reference met on the walk; its target may come later.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    from: NodeId,
    /// What follows the `#`.
    fragment: &'a str,
    at: String,
}

impl<'a> Parser<'a> {
    pub(super) fn reference_keyword(
        &mut self,
        id: NodeId,
        keyword: &'a str,
        value: &'a Value,
    ) -> Result<(), SchemaError> {
        match keyword {
            "$schema" => self.dialect(value),
            "$ref" => self.reference(id, value),
            "$defs" if !self.limits.is_request() => self.schemas_by_name(value).map(drop),
            "definitions" if !self.limits.is_request() => self.schemas_by_name(value).map(drop),
            "$anchor" if !self.limits.is_request() => self.anchor(id, value),
            // The root's own name changes nothing for references that begin with `#`; a name
            // further down would change what they mean.
            "$id" if !self.limits.is_request() && self.path.len() == 1 => match value {
                Value::String(_) => Ok(()),
                _ => self.malformed("a string"),
            },
            "$defs" => self.refuse("$defs"),
            "definitions" => self.refuse("definitions"),
            "$anchor" => self.refuse("$anchor"),
            "$id" => self.refuse("$id"),
            "$dynamicRef" => self.refuse("$dynamicRef"),
            _ => self.refuse("$recursiveRef"),
        }
    }

    fn refuse(&self, keyword: &'static str) -> Result<(), SchemaError> {
        Err(SchemaError::KeywordRefused { at: self.place(), keyword })
    }

    fn dialect(&self, value: &Value) -> Result<(), SchemaError> {
        let known = value.as_str().is_some_and(|uri| {
            let uri = uri.strip_suffix('#').unwrap_or(uri);
            let path = uri
                .strip_prefix("https://json-schema.org/")
                .or_else(|| uri.strip_prefix("http://json-schema.org/"));
            matches!(
                path,
                Some(
                    "draft/2020-12/schema"
                        | "draft/2019-09/schema"
                        | "draft-07/schema"
                        | "draft-06/schema"
                        | "draft-04/schema"
                        | "schema"
                )
            )
        });
        if known { Ok(()) } else { Err(SchemaError::UnknownDialect { at: self.place() }) }
    }

    fn reference(&mut self, id: NodeId, value: &'a Value) -> Result<(), SchemaError> {
        let Some(text) = value.as_str() else {
            return self.malformed("a reference");
        };
        let Some(fragment) = text.strip_prefix('#') else {
            return Err(SchemaError::ExternalRef { at: self.place() });
        };
        if self.limits.is_request() {
            return self.refuse("$ref");
        }
        self.references.push(Pending { from: id, fragment, at: self.place() });
        Ok(())
    }

    fn anchor(&mut self, id: NodeId, value: &'a Value) -> Result<(), SchemaError> {
        match value.as_str() {
            Some(name) if !name.is_empty() && !name.starts_with('/') => {
                if self.anchors.insert(name, id).is_some() {
                    return self.malformed("an anchor that is used once");
                }
                Ok(())
            }
            _ => self.malformed("the name of an anchor"),
        }
    }

    /// After the walk: every reference finds its node, or the schema is refused.
    pub(super) fn resolve_references(&mut self, root: &Value) -> Result<(), SchemaError> {
        for pending in std::mem::take(&mut self.references) {
            let by_pointer =
                || resolve(root, pending.fragment).and_then(|value| self.known.get(&address(value)));
            let target = self
                .anchors
                .get(pending.fragment)
                .or_else(by_pointer)
                .copied()
                .ok_or(SchemaError::RefTarget { at: pending.at })?;
            if let Some(node) = self.nodes.get_mut(pending.from) {
                node.parts.push(Part::Ref(target));
            }
        }
        Ok(())
    }

    /// An unknown keyword is dropped, but not if it carries a reference that is refused anywhere
    /// else: a later reader of the original document might follow it.
    pub(super) fn refuse_hidden_references(&self, value: &Value) -> Result<(), SchemaError> {
        match value {
            Value::Object(map) => map.iter().try_for_each(|(key, below)| {
                if let (Some(keyword), Some(target)) = (reference_name(key), below.as_str()) {
                    if !target.starts_with('#') {
                        return Err(SchemaError::ExternalRef { at: self.place() });
                    }
                    if self.limits.is_request() {
                        return self.refuse(keyword);
                    }
                }
                self.refuse_hidden_references(below)
            }),
            Value::Array(items) => items.iter().try_for_each(|item| self.refuse_hidden_references(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }
}

fn reference_name(key: &str) -> Option<&'static str> {
    match key {
        "$ref" => Some("$ref"),
        "$dynamicRef" => Some("$dynamicRef"),
        "$recursiveRef" => Some("$recursiveRef"),
        _ => None,
    }
}
