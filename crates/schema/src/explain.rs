//! The sentences for arguments the validator has refused.
//!
//! The validator gives only its verdict. Its own error list is built whole before the first entry
//! can be read, and copies the failing value, or the excluded schema, into each entry: with a
//! hostile schema that is gigabytes. This walk stops at twenty errors and at its own budget.
//!
//! It never decides: it runs only after a refusal, so a mistake here costs a clear sentence, not
//! a wrong verdict. `unevaluatedProperties` and `unevaluatedItems` are not evaluated; they are
//! named when nothing else explains the refusal.

use serde_json::Value;

use crate::argument::ArgumentError;
use crate::limits::MAX_ARGUMENT_ERRORS;
use crate::pointer::Segment;
use crate::tree::{Assertion, Kind, NEVER, NodeId, Part, Tree};

mod path;

use path::{render, render_with};

/// Visits of one explanation. Building a single assertion's test counts as fifty.
const MAX_VISITS: usize = 20_000;
const TEST_VISITS: usize = 50;

/// Why `arguments` do not fit the tree. Never empty.
pub(crate) fn explain(tree: &Tree, arguments: &Value) -> Vec<ArgumentError> {
    let mut errors = find(tree, arguments);
    if errors.is_empty() {
        errors.push(last_resort(tree));
    }
    errors
}

/// The errors this walk can name, perhaps none.
pub(crate) fn find(tree: &Tree, arguments: &Value) -> Vec<ArgumentError> {
    let mut explainer = Explainer {
        tree,
        visits_left: MAX_VISITS,
        max_errors: MAX_ARGUMENT_ERRORS,
        errors: Vec::new(),
        path: Vec::new(),
    };
    explainer.visit(tree.root, arguments);
    explainer.errors
}

fn last_resort(tree: &Tree) -> ArgumentError {
    let unevaluated = tree.nodes.iter().flat_map(|node| &node.parts).find_map(|part| match part {
        Part::Unevaluated { keyword, .. } => Some(*keyword),
        _ => None,
    });
    match unevaluated {
        Some(keyword) => ArgumentError::Violation { path: String::new(), keyword },
        None => ArgumentError::Mismatch,
    }
}

struct Explainer<'t, 'v> {
    tree: &'t Tree,
    visits_left: usize,
    max_errors: usize,
    errors: Vec<ArgumentError>,
    path: Vec<Segment<'v>>,
}

impl<'t, 'v> Explainer<'t, 'v> {
    fn done(&self) -> bool {
        self.visits_left == 0 || self.errors.len() >= self.max_errors
    }

    fn spend(&mut self, visits: usize) {
        self.visits_left = self.visits_left.saturating_sub(visits);
    }

    fn report(&mut self, error: ArgumentError) {
        // The same rule can be reached twice, for instance through two branches of `allOf`.
        if !self.done() && !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn violation(&mut self, keyword: &'static str) {
        let path = render(&self.path);
        self.report(ArgumentError::Violation { path, keyword });
    }

    fn inside(&mut self, segment: Segment<'v>, id: NodeId, value: &'v Value) {
        self.path.push(segment);
        self.visit(id, value);
        self.path.pop();
    }

    fn visit(&mut self, id: NodeId, value: &'v Value) {
        if self.done() {
            return;
        }
        self.spend(1);
        if id == NEVER {
            return self.violation("false");
        }
        for part in self.tree.parts(id) {
            if let Part::Types(kinds) = part
                && !kinds.iter().any(|kind| kind.admits(value))
            {
                // A value of the wrong type breaks other rules too; they would only distract.
                return self.wrong_type(kinds, value);
            }
            self.part(part, value);
        }
    }

    /// Whether a subschema accepts a value, as far as this walk can tell.
    fn holds(&mut self, id: NodeId, value: &Value) -> bool {
        let mut probe = Explainer {
            tree: self.tree,
            visits_left: self.visits_left,
            max_errors: 1,
            errors: Vec::new(),
            path: Vec::new(),
        };
        probe.visit(id, value);
        self.visits_left = probe.visits_left;
        probe.errors.is_empty()
    }

    fn accepts(&mut self, assertion: &Assertion, value: &Value) -> bool {
        if !assertion.is_built() {
            self.spend(TEST_VISITS);
        }
        assertion.accepts(value)
    }

    fn part(&mut self, part: &'t Part, value: &'v Value) {
        match part {
            Part::Types(_) | Part::Unevaluated { .. } => {}
            Part::Required(names) => self.required(names, value),
            Part::Assert(assertion) => {
                if !self.accepts(assertion, value) {
                    self.violation(assertion.keyword);
                }
            }
            Part::Ref(id) => self.visit(*id, value),
            Part::AllOf(ids) => ids.iter().for_each(|id| self.visit(*id, value)),
            Part::AnyOf(ids) => {
                if !ids.iter().any(|id| self.holds(*id, value)) {
                    self.no_branch(ids, value, "anyOf");
                }
            }
            Part::OneOf(ids) => match ids.iter().filter(|id| self.holds(**id, value)).count() {
                0 => self.no_branch(ids, value, "oneOf"),
                1 => {}
                _ => self.violation("oneOf"),
            },
            Part::Not(id) => {
                if self.holds(*id, value) {
                    self.violation("not");
                }
            }
            Part::If { test, then, otherwise } => {
                let next = if self.holds(*test, value) { then } else { otherwise };
                self.visit(*next, value);
            }
            Part::Object { .. } | Part::Names(_) | Part::Dependent(_) => self.object(part, value),
            Part::Array { .. } | Part::Contains { .. } => self.array(part, value),
        }
    }

    fn required(&mut self, names: &[String], value: &Value) {
        let Value::Object(map) = value else { return };
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            if self.done() {
                return;
            }
            let path = render_with(&self.path, name);
            self.report(ArgumentError::Missing { path });
        }
    }

    fn object(&mut self, part: &'t Part, value: &'v Value) {
        let Value::Object(map) = value else { return };
        for (name, member) in map {
            if self.done() {
                return;
            }
            match part {
                Part::Object { properties, patterns, additional } => {
                    let mut known = false;
                    if let Some(id) = properties.get(name) {
                        known = true;
                        self.inside(Segment::Name(name), *id, member);
                    }
                    for (pattern, id) in patterns {
                        if self.accepts(pattern, &Value::from(name.as_str())) {
                            known = true;
                            self.inside(Segment::Name(name), *id, member);
                        }
                    }
                    match additional {
                        Some(NEVER) if !known => {
                            let path = render_with(&self.path, name);
                            self.report(ArgumentError::Unknown { path });
                        }
                        Some(id) if !known => self.inside(Segment::Name(name), *id, member),
                        Some(_) | None => {}
                    }
                }
                Part::Names(id) => self.name(*id, name),
                Part::Dependent(needs) => {
                    if let Some(id) = needs.get(name) {
                        self.visit(*id, value);
                    }
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, id: NodeId, name: &str) {
        if !self.holds(id, &Value::from(name)) {
            let path = render_with(&self.path, name);
            self.report(ArgumentError::Violation { path, keyword: "propertyNames" });
        }
    }

    fn array(&mut self, part: &'t Part, value: &'v Value) {
        let Value::Array(items) = value else { return };
        match part {
            Part::Array { prefix, rest } => {
                for (index, item) in items.iter().enumerate() {
                    if self.done() {
                        return;
                    }
                    if let Some(id) = prefix.get(index).or(rest.as_ref()) {
                        self.inside(Segment::Index(index), *id, item);
                    }
                }
            }
            Part::Contains { item, min, max } => {
                let matching = items.iter().filter(|each| self.holds(*item, each)).count() as u64;
                if matching < *min || max.is_some_and(|max| matching > max) {
                    self.violation("contains");
                }
            }
            _ => {}
        }
    }

    fn wrong_type(&mut self, kinds: &[Kind], value: &Value) {
        let path = render(&self.path);
        self.report(match (kinds, value) {
            ([Kind::Integer], Value::Number(number)) => {
                ArgumentError::NotAnInteger { path, got: number.to_string() }
            }
            _ => ArgumentError::WrongType { path, expected: join(kinds), got: Kind::of(value).name() },
        });
    }

    /// A union nobody fits. Often its branches differ by type (`integer` or `null`), and then the
    /// type, or the one branch of the right type, says more than the union does.
    fn no_branch(&mut self, ids: &[NodeId], value: &'v Value, keyword: &'static str) {
        let declared: Vec<Option<&[Kind]>> = ids.iter().map(|id| self.kinds(*id)).collect();
        let fitting: Vec<NodeId> = ids
            .iter()
            .zip(&declared)
            .filter(|(_, kinds)| kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind.admits(value))))
            .map(|(id, _)| *id)
            .collect();
        match fitting.as_slice() {
            [] => {
                let mut all: Vec<Kind> = Vec::new();
                for kind in declared.into_iter().flatten().flatten() {
                    if !all.contains(kind) {
                        all.push(*kind);
                    }
                }
                self.wrong_type(&all, value);
            }
            [only] => {
                let before = self.errors.len();
                self.visit(*only, value);
                if self.errors.len() == before {
                    self.violation(keyword);
                }
            }
            _ => self.violation(keyword),
        }
    }

    /// The types a subschema declares, through a reference if need be.
    fn kinds(&self, id: NodeId) -> Option<&'t [Kind]> {
        let parts = self.tree.parts(id);
        match parts.first()? {
            Part::Types(kinds) => Some(kinds),
            // Chains of references are acyclic and at most 32 long.
            Part::Ref(target) => self.kinds(*target),
            _ => None,
        }
    }
}

fn join(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    names.join(" or ")
}
