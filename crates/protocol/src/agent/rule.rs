//! An agent's own rules of permission: what is allowed, asked or denied, by
//! tool, place, risk and arguments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use crate::risk::Risk;
use crate::tool::{Approval, Place, ToolSpec};

/// One rule. What it does not name, it does not care about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct PermissionRule {
    pub decision: Approval,
    /// A tool's name, or `<service>:<tool>`; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// `ask` and `deny` hold from this risk up, `allow` up to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// Fields that the arguments must have; `*` in a text stands for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
}

impl PermissionRule {
    /// Whether the rule speaks of this call. `key` is the name that grants use.
    pub fn speaks_of(&self, spec: &ToolSpec, key: &str, args: &Value) -> bool {
        let named =
            self.tool.as_ref().is_none_or(|pattern| like(pattern, spec.name.as_str()) || like(pattern, key));
        let placed = self.place.is_none_or(|place| place == spec.place);
        let risky = self.risk.is_none_or(|risk| match self.decision {
            Approval::Allow => spec.risk <= risk,
            Approval::Ask | Approval::Deny => spec.risk >= risk,
        });
        let fields = self.args.iter().flatten();
        named && placed && risky && fields.fold(true, |all, (name, want)| all && fits(want, args.get(name)))
    }
}

fn fits(want: &Value, given: Option<&Value>) -> bool {
    match (want, given) {
        (Value::String(pattern), Some(Value::String(text))) => like(pattern, text),
        (want, given) => Some(want) == given,
    }
}

/// `*` stands for any text, everything else for itself.
fn like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_does() {
        for (pattern, text) in
            [("*", ""), ("a*", "ab"), ("*b", "ab"), ("a*c*e", "abcde"), ("a", "a"), ("a*a", "aa")]
        {
            assert!(like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a", "ab"), ("a*a", "a"), ("a.c", "abc"), ("", "a"), ("/tmp/*", "/etc/tmp/x")]
        {
            assert!(!like(pattern, text), "{pattern} {text}");
        }
    }
}
