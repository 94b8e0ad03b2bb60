//! PII filter: e-mail addresses, phone numbers, IBANs and card numbers leave no
//! answer. It is critical and it rewrites, so nothing of a step is shown before
//! it was here: no split of the stream can leak a half.

use std::ops::Range;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Hook, HookError, Nature, Points, Prompt, Ran, Stage, Step};

pub(super) const ID: &str = "pii-filter";

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Email,
    Phone,
    Iban,
    Card,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    pub kinds: Vec<Kind>,
    /// More patterns: a name, and a regular expression.
    pub patterns: Vec<Pattern>,
    /// Also in what the model reads of users.
    pub input: bool,
    /// Also in results of tools, before the model reads them.
    pub results: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    pub name: String,
    pub pattern: String,
}

impl Default for Options {
    fn default() -> Self {
        let kinds = vec![Kind::Email, Kind::Phone, Kind::Iban, Kind::Card];
        Self { kinds, patterns: Vec::new(), input: false, results: false }
    }
}

#[derive(Debug)]
pub struct PiiFilter {
    looks: Vec<(String, Regex, fn(&str) -> bool)>,
    input: bool,
    results: bool,
}

impl PiiFilter {
    /// The text says which pattern is no regular expression.
    pub fn new(options: Options) -> Result<Self, String> {
        let mut looks: Vec<(String, Regex, fn(&str) -> bool)> = Vec::new();
        let compile = |name: &str, pattern: &str| {
            Regex::new(pattern).map_err(|e| format!("patterns: {name:?} is not a regular expression: {e}"))
        };
        for custom in &options.patterns {
            looks.push((custom.name.clone(), compile(&custom.name, &custom.pattern)?, |_| true));
        }
        // The longest forms first: an account holds what looks like a phone number.
        let order = [Kind::Iban, Kind::Card, Kind::Email, Kind::Phone];
        for kind in order.into_iter().filter(|kind| options.kinds.contains(kind)) {
            let (name, pattern, holds): (_, _, fn(&str) -> bool) = match kind {
                Kind::Email => {
                    ("email", r"(?i)[a-z0-9._%+'-]+\s?@\s?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}", |_| true)
                }
                Kind::Iban => ("iban", r"(?i)\b[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){11,30}\b", is_iban),
                Kind::Card => ("card", r"\b\d(?:[ -]?\d){12,18}\b", is_card),
                Kind::Phone => ("phone", r"(?:\+|\b00|\(|\b0)[\d(][\d ()./-]{5,18}\d\b", is_phone),
            };
            looks.push((name.to_owned(), compile(name, pattern)?, holds));
        }
        Ok(Self { looks, input: options.input, results: options.results })
    }

    /// The text with `[email]`, `[card]`, … in the place of what was found.
    pub fn clean(&self, text: &str) -> String {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for (name, look, holds) in &self.looks {
            for hit in look.find_iter(text).filter(|hit| holds(hit.as_str())) {
                // What one look took, another does not take again.
                if found.iter().all(|(range, _)| hit.end() <= range.start || range.end <= hit.start()) {
                    found.push((hit.range(), name));
                }
            }
        }
        found.sort_by_key(|(range, _)| range.start);
        let (mut out, mut from) = (String::with_capacity(text.len()), 0);
        for (range, name) in found {
            out.push_str(&text[from..range.start]);
            out.push('[');
            out.push_str(name);
            out.push(']');
            from = range.end;
        }
        out.push_str(&text[from..]);
        out
    }

    fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.clean_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Hook for PiiFilter {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let mut points = vec![HookName::OnTextEnd];
        points.extend(self.input.then_some(HookName::OnUserMessage));
        points.extend(self.results.then_some(HookName::OnAfterToolCall));
        Nature { critical: true, rewrites: true, points: Points::of(&points) }
    }

    fn on_user_message<'a>(&'a self, _: &'a mut Stage<'_>, prompt: &'a mut Prompt) -> Step<'a> {
        if self.input {
            for message in &mut prompt.messages {
                message.content = self.clean(&message.content);
            }
        }
        ready()
    }

    fn on_text_end<'a>(&'a self, _: &'a mut Stage<'_>, text: &'a mut String) -> Step<'a> {
        *text = self.clean(text);
        ready()
    }

    fn on_after_tool_call<'a>(&'a self, _: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        if self.results {
            self.clean_value(&mut ran.result);
            ran.error = ran.error.take().map(|error| self.clean(&error));
        }
        ready()
    }
}

fn ready<'a>() -> Step<'a> {
    Box::pin(std::future::ready(Ok::<(), HookError>(())))
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// The sum that card numbers end in.
fn is_card(text: &str) -> bool {
    let digits = digits(text);
    let sum: u32 = (digits.iter().rev().enumerate())
        .map(|(i, d)| match i % 2 {
            0 => *d,
            _ if *d > 4 => d * 2 - 9,
            _ => d * 2,
        })
        .sum();
    (13..=19).contains(&digits.len()) && sum % 10 == 0 && digits.iter().any(|d| *d != 0)
}

/// The remainder that the first four characters of an IBAN make one.
fn is_iban(text: &str) -> bool {
    let plain: Vec<char> =
        text.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_uppercase()).collect();
    // A word behind it may look like a part of it.
    (15..=34.min(plain.len())).rev().any(|length| {
        let turned = plain[4..length].iter().chain(&plain[..4]);
        let rest = turned.fold(0_u64, |rest, c| match c.to_digit(36) {
            Some(d) if d < 10 => (rest * 10 + u64::from(d)) % 97,
            Some(d) => (rest * 100 + u64::from(d)) % 97,
            None => rest,
        });
        rest == 1
    })
}

/// Enough digits for a number somebody could dial.
fn is_phone(text: &str) -> bool {
    (8..=15).contains(&digits(text).len())
}
