//! Prompt injection: results of tools that talk to the model as if they were
//! its user. A suspicious result is marked as untrusted, so calls with a high
//! risk ask from then on; nothing is removed, because a guess must not lose data.

mod signs;
mod unveil;

use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use toolyard_protocol::manifest::HookName;

use crate::hooks::{Hook, Nature, Points, Ran, Stage, Step};
use signs::SIGNS;

pub(super) const ID: &str = "injection-guard";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// From this score on a result is suspicious.
    pub threshold: u32,
    pub event_name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 3, event_name: "injection".to_owned() }
    }
}

/// How suspicious a text is, and by which signs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    pub score: u32,
    pub signs: Vec<&'static str>,
}

static LOOK: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(SIGNS.iter().map(|(_, _, look)| *look)).ok());
static SPACES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[ \t\r\x{00a0}]+").ok());

/// Looks at a result as the model would read it.
pub fn inspect_result(result: &Value, error: Option<&str>) -> Finding {
    let mut text = String::new();
    words(result, &mut text);
    text.push_str(error.unwrap_or_default());
    inspect(&text)
}

/// Looks at a text, and at what is hidden in it.
pub fn inspect(text: &str) -> Finding {
    let Some(look) = LOOK.as_ref() else { return Finding::default() };
    let mut found = [false; SIGNS.len()];
    // Signs that nobody sees are lost in a plain reading.
    look.matches(text).into_iter().for_each(|i| found[i] = true);
    for reading in unveil::readings(text) {
        let reading =
            SPACES.as_ref().map_or(reading.as_str().into(), |spaces| spaces.replace_all(&reading, " "));
        look.matches(&reading).into_iter().for_each(|i| found[i] = true);
    }
    let mut finding = Finding::default();
    for ((sign, weight, _), _) in SIGNS.iter().zip(found).filter(|(_, found)| *found) {
        finding.score += weight;
        finding.signs.push(sign);
    }
    finding
}

#[derive(Debug, Default)]
pub struct InjectionGuard(Options);

impl InjectionGuard {
    pub fn new(options: Options) -> Self {
        Self(options)
    }
}

impl Hook for InjectionGuard {
    fn id(&self) -> &str {
        ID
    }

    fn nature(&self) -> Nature {
        let points = Points::of(&[HookName::OnAfterToolCall]);
        Nature { points, ..Nature::default() }
    }

    fn on_after_tool_call<'a>(&'a self, stage: &'a mut Stage<'_>, ran: &'a mut Ran) -> Step<'a> {
        let finding = inspect_result(&ran.result, ran.error.as_deref());
        if finding.score >= self.0.threshold {
            ran.untrusted = true;
            let (call, tool) = (ran.id.to_string(), &ran.name);
            stage.log(&format!("a result of {tool} may be an injection: {}", finding.signs.join(", ")));
            stage.emit(
                &self.0.event_name,
                json!({ "toolCallId": call, "toolName": tool, "signs": finding.signs }),
            );
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Every string of a value, field names too: a model reads them all.
fn words(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, into)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            into.push_str(name);
            into.push_str(": ");
            words(field, into);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
