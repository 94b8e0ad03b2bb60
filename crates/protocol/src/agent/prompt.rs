//! Prompts that an agent offers to MCP clients: a text with places for
//! arguments, written by whoever configures the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use super::parse::BadConfig;
use crate::limits;

/// One prompt. `{{name}}` in its text stands for an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct ServedPrompt {
    /// Letters, digits, `_` and `-`, at most 64.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    /// What the client's user says with it.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[ts(optional_fields)]
pub struct PromptArgument {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Missing means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

impl ServedPrompt {
    fn arguments(&self) -> &[PromptArgument] {
        self.arguments.as_deref().unwrap_or_default()
    }

    /// The text with its arguments in place. An argument brings no marks of its
    /// own: the text was read before.
    pub fn fill(&self, given: &Map<String, Value>) -> Result<String, String> {
        if let Some(other) = given.keys().find(|name| self.arguments().iter().all(|a| a.name != **name)) {
            let shown: String = other.chars().take(limits::LABEL_CHARS).collect();
            return Err(format!("arguments.{shown}: the prompt {} has no such argument", self.name));
        }
        for argument in self.arguments() {
            match given.get(&argument.name) {
                Some(Value::String(_)) => {}
                Some(_) => return Err(format!("arguments.{}: must be text", argument.name)),
                None if argument.required == Some(true) => {
                    return Err(format!("arguments.{}: is required", argument.name));
                }
                None => {}
            }
        }
        let pieces = pieces(&self.text).into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Mark(name) => given.get(name).and_then(Value::as_str).unwrap_or_default(),
        });
        Ok(pieces.collect())
    }
}

enum Piece<'t> {
    Text(&'t str),
    Mark(&'t str),
}

/// The text around its marks. What is no mark stays text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find("{{") {
        let inside = &rest[start + 2..];
        let Some(end) = inside.find("}}") else { break };
        let name = inside[..end].trim();
        if is_name(name) {
            out.push(Piece::Text(&rest[..start]));
            out.push(Piece::Mark(name));
            rest = &inside[end + 2..];
        } else {
            out.push(Piece::Text(&rest[..start + 2]));
            rest = inside;
        }
    }
    out.push(Piece::Text(rest));
    out
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=limits::MCP_PROMPT_NAME).contains(&name.len()) && name.chars().all(fits)
}

pub(super) fn check(prompts: &[ServedPrompt]) -> Result<(), BadConfig> {
    if prompts.len() > limits::MCP_PROMPTS {
        let why = format!("at most {} prompts are allowed", limits::MCP_PROMPTS);
        return Err(BadConfig::at("mcpServer.prompts", why));
    }
    for (i, prompt) in prompts.iter().enumerate() {
        let at = |field: &str, why: String| Err(BadConfig::at(format!("mcpServer.prompts[{i}]{field}"), why));
        let named = format!("must have 1 to {} letters, digits, _ or -", limits::MCP_PROMPT_NAME);
        if !is_name(&prompt.name) {
            return at(".name", named);
        }
        if prompts[..i].iter().any(|before| before.name == prompt.name) {
            return at(".name", format!("there are two prompts {}", prompt.name));
        }
        let most = limits::MCP_PROMPT_CHARS;
        if prompt.text.trim().is_empty() || prompt.text.chars().count() > most {
            return at(".text", format!("must have 1 to {most} characters"));
        }
        let arguments = prompt.arguments();
        if arguments.len() > limits::MCP_PROMPT_ARGUMENTS {
            return at(".arguments", format!("at most {} are allowed", limits::MCP_PROMPT_ARGUMENTS));
        }
        for (k, argument) in arguments.iter().enumerate() {
            if !is_name(&argument.name) {
                return at(&format!(".arguments[{k}].name"), named);
            }
            if arguments[..k].iter().any(|before| before.name == argument.name) {
                return at(&format!(".arguments[{k}].name"), format!("there are two {}", argument.name));
            }
        }
        let unknown = pieces(&prompt.text).into_iter().find_map(|piece| match piece {
            Piece::Mark(name) if arguments.iter().all(|a| a.name != name) => Some(name),
            Piece::Mark(_) | Piece::Text(_) => None,
        });
        if let Some(name) = unknown {
            return at(".text", format!("{{{{{name}}}}} is none of the prompt's arguments"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn prompt(value: Value) -> ServedPrompt {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn arguments_stand_where_the_text_has_a_mark_and_bring_none() {
        let prompt = prompt(json!({
            "name": "sum", "arguments": [{ "name": "what", "required": true }, { "name": "tone" }],
            "text": "Sum up {{ what }} {{tone}}: {{ no mark }} {{what}}{{",
        }));
        check(std::slice::from_ref(&prompt)).unwrap();
        let fill = |given: Value| prompt.fill(given.as_object().unwrap());
        assert_eq!(
            fill(json!({ "what": "{{tone}}" })).unwrap(),
            "Sum up {{tone}} : {{ no mark }} {{tone}}{{"
        );
        assert_eq!(fill(json!({})).unwrap_err(), "arguments.what: is required");
        assert_eq!(fill(json!({ "what": 1 })).unwrap_err(), "arguments.what: must be text");
        let unknown = fill(json!({ "what": "x", "whom": "y" })).unwrap_err();
        assert_eq!(unknown, "arguments.whom: the prompt sum has no such argument");
    }

    #[test]
    fn a_prompt_that_cannot_work_is_refused_with_its_place() {
        let refused = |list: Value| {
            let prompts: Vec<ServedPrompt> = serde_json::from_value(list).unwrap();
            check(&prompts).unwrap_err().to_string()
        };
        let fine = json!({ "name": "a", "text": "b" });
        for (list, part) in [
            (json!([{ "name": "a b", "text": "b" }]), "prompts[0].name: must have 1 to 64"),
            (json!([fine, fine]), "prompts[1].name: there are two prompts a"),
            (json!([{ "name": "a", "text": " " }]), "prompts[0].text: must have 1 to 16384"),
            (json!([{ "name": "a", "text": "{{x}}" }]), "prompts[0].text: {{x}} is none"),
            (
                json!([{ "name": "a", "text": "b", "arguments": [{ "name": "x" }, { "name": "x" }] }]),
                "prompts[0].arguments[1].name: there are two x",
            ),
            (json!(vec![fine; 65]), "prompts: at most 64 prompts are allowed"),
        ] {
            assert!(refused(list).contains(part), "{part}");
        }
    }
}
