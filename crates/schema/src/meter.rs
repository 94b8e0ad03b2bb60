//! The price of a check, counted before the check is made.
//!
//! The survey bounds what one value can cost; how many values there are, how long the texts, and
//! how often a recursive schema comes back to the same value, only the arguments tell. The meter
//! walks schema and arguments as the validator would at worst, without evaluating anything, and
//! stops when the budget is spent.

use std::collections::HashMap;

use serde_json::Value;

use crate::limits::{MAX_ARGUMENT_DEPTH, MAX_CHAIN, MAX_CHECK_STEPS};
use crate::measure::weigh;
use crate::survey::{Survey, unevaluated};
use crate::tree::{Assertion, NodeId, Part, Tree};

/// Whether arguments of this weight may be checked. Most are let through without the walk.
pub(crate) fn affordable(tree: &Tree, survey: &Survey, arguments: &Value, weight: u64) -> bool {
    if !survey.recursive && survey.work.saturating_mul(weight) <= MAX_CHECK_STEPS {
        return true;
    }
    let mut meter = Meter { tree, left: MAX_CHECK_STEPS, weights: HashMap::new() };
    meter.visit(tree.root, arguments, MAX_CHAIN).is_some()
}

struct Meter<'t> {
    tree: &'t Tree,
    left: u64,
    /// Weights of lists and objects that are compared as a whole, by address: a schema may ask
    /// for the same one thousands of times.
    weights: HashMap<usize, u64>,
}

/// Nothing is left of the budget.
type Paid = Option<()>;

impl Meter<'_> {
    fn pay(&mut self, steps: u64) -> Paid {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    /// `chain` is how many more visits may be nested.
    fn visit(&mut self, id: NodeId, value: &Value, chain: usize) -> Paid {
        let chain = chain.checked_sub(1)?;
        self.pay(1)?;
        let parts = self.tree.parts(id);
        let before = self.left;
        for part in parts {
            self.part(part, value, chain)?;
        }
        if unevaluated(parts) {
            self.pay(before - self.left)?;
        }
        Some(())
    }

    fn all(&mut self, ids: &[NodeId], value: &Value, chain: usize) -> Paid {
        ids.iter().try_for_each(|id| self.visit(*id, value, chain))
    }

    fn part(&mut self, part: &Part, value: &Value, chain: usize) -> Paid {
        match (part, value) {
            (Part::Types(_), _) => Some(()),
            (Part::Required(_), _) => self.pay(part.price()),
            (Part::Assert(assertion), _) => self.assertion(assertion, value),
            (Part::Ref(id) | Part::Not(id), _) => self.visit(*id, value, chain),
            (Part::AllOf(ids) | Part::AnyOf(ids) | Part::OneOf(ids), _) => self.all(ids, value, chain),
            (Part::If { test, then, otherwise }, _) => self.all(&[*test, *then, *otherwise], value, chain),
            (Part::Object { properties, patterns, additional }, Value::Object(map)) => {
                map.iter().try_for_each(|(name, member)| {
                    for (pattern, id) in patterns {
                        self.text(pattern, name)?;
                        self.visit(*id, member, chain)?;
                    }
                    match (properties.get(name), additional) {
                        (Some(id), _) | (None, Some(id)) => self.visit(*id, member, chain),
                        (None, None) => self.pay(1),
                    }
                })
            }
            (Part::Names(id), Value::Object(map)) => {
                map.keys().try_for_each(|name| self.visit(*id, &Value::from(name.as_str()), chain))
            }
            (Part::Array { prefix, rest }, Value::Array(items)) => {
                items.iter().enumerate().try_for_each(|(index, item)| match (prefix.get(index), rest) {
                    (Some(id), _) | (None, Some(id)) => self.visit(*id, item, chain),
                    (None, None) => Some(()),
                })
            }
            (Part::Contains { item: id, .. }, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.visit(*id, item, chain))
            }
            (Part::Dependent(map), Value::Object(members)) => map
                .iter()
                .filter(|(name, _)| members.contains_key(*name))
                .try_for_each(|(_, id)| self.visit(*id, value, chain)),
            (Part::Unevaluated { schema, .. }, Value::Object(map)) => {
                map.values().try_for_each(|member| self.visit(*schema, member, chain))
            }
            (Part::Unevaluated { schema, .. }, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.visit(*schema, item, chain))
            }
            (
                Part::Object { .. }
                | Part::Names(_)
                | Part::Array { .. }
                | Part::Contains { .. }
                | Part::Dependent(_)
                | Part::Unevaluated { .. },
                _,
            ) => Some(()),
        }
    }

    fn assertion(&mut self, assertion: &Assertion, value: &Value) -> Paid {
        match (assertion.keyword, value) {
            ("pattern", Value::String(text)) => self.text(assertion, text),
            (_, Value::String(text)) => self.pay(assertion.price() + text.len() as u64 / 64),
            // Comparing values is as long as all they hold.
            ("uniqueItems" | "enum" | "const", Value::Array(_) | Value::Object(_)) => {
                let weight = self.weight(value)?;
                self.pay(assertion.price() + weight / 8)
            }
            _ => self.pay(assertion.price()),
        }
    }

    fn weight(&mut self, value: &Value) -> Option<u64> {
        let address = std::ptr::from_ref(value).addr();
        if let Some(weight) = self.weights.get(&address) {
            return Some(*weight);
        }
        let weight = weigh(value, MAX_ARGUMENT_DEPTH).ok()?;
        self.weights.insert(address, weight);
        Some(weight)
    }

    fn text(&mut self, pattern: &Assertion, text: &str) -> Paid {
        self.pay(pattern.price().saturating_mul(1 + text.len() as u64))
    }
}
