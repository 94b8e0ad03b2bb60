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

/// How many bytes of a hit are what is looked for, if any.
type Takes = fn(&str) -> Option<usize>;

#[derive(Debug)]
pub struct PiiFilter {
    looks: Vec<(String, Regex, Takes)>,
    input: bool,
    results: bool,
}

impl PiiFilter {
    /// The text says which pattern is no regular expression.
    pub fn new(options: Options) -> Result<Self, String> {
        let mut looks: Vec<(String, Regex, Takes)> = Vec::new();
        let compile = |name: &str, pattern: &str| {
            Regex::new(pattern).map_err(|e| format!("patterns: {name:?} is not a regular expression: {e}"))
        };
        for custom in &options.patterns {
            looks.push((custom.name.clone(), compile(&custom.name, &custom.pattern)?, whole));
        }
        // The longest forms first: an account holds what looks like a phone number.
        let order = [Kind::Iban, Kind::Card, Kind::Email, Kind::Phone];
        for kind in order.into_iter().filter(|kind| options.kinds.contains(kind)) {
            let (name, pattern, takes): (_, _, Takes) = match kind {
                Kind::Email => {
                    ("email", r"(?i)[a-z0-9._%+'-]+\s?@\s?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}", whole)
                }
                Kind::Iban => ("iban", r"(?i)\b[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){11,30}\b", iban),
                Kind::Card => ("card", r"\b\d(?:[ -]?\d){12,18}\b", card),
                Kind::Phone => ("phone", r"(?:\+|\b00|\(|\b0)[\d(][\d ()./-]{5,18}\d\b", phone),
            };
            looks.push((name.to_owned(), compile(name, pattern)?, takes));
        }
        Ok(Self { looks, input: options.input, results: options.results })
    }

    /// The text with `[email]`, `[card]`, … in the place of what was found.
    pub fn clean(&self, text: &str) -> String {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for (name, look, takes) in &self.looks {
            for hit in look.find_iter(text) {
                let Some(length) = takes(hit.as_str()) else { continue };
                let range = hit.start()..hit.start() + length;
                // What one look took, another does not take again.
                if found.iter().all(|(other, _)| range.end <= other.start || other.end <= range.start) {
                    found.push((range, name));
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

fn whole(hit: &str) -> Option<usize> {
    Some(hit.len())
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// The sum that card numbers end in.
fn card(hit: &str) -> Option<usize> {
    let digits = digits(hit);
    let sum: u32 = (digits.iter().rev().enumerate())
        .map(|(i, d)| match i % 2 {
            0 => *d,
            _ if *d > 4 => d * 2 - 9,
            _ => d * 2,
        })
        .sum();
    let holds = (13..=19).contains(&digits.len()) && sum.is_multiple_of(10) && digits.iter().any(|d| *d != 0);
    holds.then_some(hit.len())
}

/// How long an account number is, by its country.
const IBANS: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 \
    EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 \
    LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 \
    RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20";

/// The remainder that the first four characters make one. Words behind the
/// number may look like a part of it: they stay.
fn iban(hit: &str) -> Option<usize> {
    let country = hit.get(..2)?.to_ascii_uppercase();
    let length = IBANS.split_whitespace().find_map(|known| known.strip_prefix(country.as_str()))?;
    let length: usize = length.parse().ok()?;
    let plain = || hit.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric());
    let (last, _) = plain().nth(length - 1)?;
    let digits: Vec<u64> = plain().take(length).filter_map(|(_, c)| c.to_digit(36).map(u64::from)).collect();
    let turned = digits[4..].iter().chain(&digits[..4]);
    let rest = turned.fold(0, |rest, d| if *d < 10 { (rest * 10 + d) % 97 } else { (rest * 100 + d) % 97 });
    (rest == 1).then_some(last + 1)
}

/// Enough digits for a number somebody could dial.
fn phone(hit: &str) -> Option<usize> {
    (8..=15).contains(&digits(hit).len()).then_some(hit.len())
}
