//! Questions of a run, and what a typed line answers to them.

use serde_json::{Map, Value, json};
use toolyard_client::{Answer, Asked, ChildAsked, Remember, WaitId};

/// What the choices are.
pub(super) const CHOICES: &str = "[o]nce, [s]ession, [a]lways, [e]dit, [d]eny? ";

/// Something that waits for a person.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) asked: Asked,
    pub(super) form: Form,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Approval,
    /// Fields to fill in, one after the other; one field without a name is
    /// the whole answer.
    Input {
        fields: Vec<Field>,
        wrap: Wrap,
    },
    Credential,
}

/// How the fields become the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrap {
    /// The one field is the answer.
    Bare,
    Object,
    /// An object by the keys of a server's questions.
    Questions,
}

/// One thing to type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) key: String,
    /// The server's question that it belongs to.
    pub(super) group: String,
    pub(super) label: String,
    kind: String,
    optional: bool,
}

/// What a line decides.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Choice {
    Answer(Answer),
    /// The arguments follow on the next line.
    Edit,
}

impl Question {
    /// None if this key may not answer it.
    pub(super) fn of(asked: &Asked) -> Option<Self> {
        if !asked.may_answer {
            return None;
        }
        let payload = asked.payload.clone().unwrap_or_default();
        let form = match asked.kind.as_str() {
            "approval" => Form::Approval,
            "credential" => Form::Credential,
            "input" => input(&payload),
            _ => return None,
        };
        Some(Self { asked: asked.clone(), form })
    }

    /// A run below asks. Its payload says which tool it is about.
    pub(super) fn of_child(asked: &ChildAsked) -> Option<Self> {
        let payload = asked.payload.clone()?;
        let text = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
        let read = json!({
            "waitId": asked.wait_id, "kind": asked.kind, "toolCallId": "child", "mayAnswer": asked.may_answer,
            "toolName": text("toolName").unwrap_or_else(|| "an agent below".to_owned()),
            "risk": text("risk"), "payload": payload,
        });
        Self::of(&serde_json::from_value(read).ok()?)
    }

    pub(super) fn wait(&self) -> &WaitId {
        &self.asked.wait_id
    }

    /// What is said above the first field.
    pub(super) fn message(&self) -> String {
        let payload = self.asked.payload.as_ref();
        let said = payload.and_then(|payload| payload.get("message")).and_then(Value::as_str);
        said.unwrap_or("an answer is needed").to_owned()
    }

    /// The answer of all fields.
    pub(super) fn provided(&self, given: &[(Field, Value)]) -> Answer {
        let Form::Input { wrap, .. } = &self.form else {
            return Answer::Provide(given.first().map(|(_, value)| value.clone()).unwrap_or_default());
        };
        let value = match wrap {
            Wrap::Bare => given.first().map(|(_, value)| value.clone()).unwrap_or_default(),
            Wrap::Object => Value::Object(object(given.iter())),
            Wrap::Questions => {
                let mut all = Map::new();
                for (field, _) in given {
                    let of_group = given.iter().filter(|(other, _)| other.group == field.group);
                    all.insert(field.group.clone(), Value::Object(object(of_group)));
                }
                Value::Object(all)
            }
        };
        Answer::Provide(value)
    }
}

fn object<'a>(given: impl Iterator<Item = &'a (Field, Value)>) -> Map<String, Value> {
    let there = given.filter(|(_, value)| !value.is_null());
    there.map(|(field, value)| (field.key.clone(), value.clone())).collect()
}

fn input(payload: &Value) -> Form {
    if let Some(questions) = payload.get("questions").and_then(Value::as_object) {
        let fields: Vec<Field> = questions
            .iter()
            .flat_map(|(group, question)| match question.get("schema").and_then(fields_of) {
                Some(fields) => fields.into_iter().map(|f| Field { group: group.clone(), ..f }).collect(),
                None => vec![Field::whole(group, question)],
            })
            .collect();
        return Form::Input { fields, wrap: Wrap::Questions };
    }
    match payload.get("schema").map(|schema| (fields_of(schema), schema)) {
        None => Form::Input { fields: vec![Field::text()], wrap: Wrap::Bare },
        Some((Some(fields), _)) => Form::Input { fields, wrap: Wrap::Object },
        Some((None, _)) => Form::Input { fields: vec![Field::json()], wrap: Wrap::Bare },
    }
}

/// The fields of a flat form.
fn fields_of(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema.get("properties")?.as_object().filter(|all| !all.is_empty())?;
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    properties
        .iter()
        .map(|(key, about)| {
            let kind = about.get("type").and_then(Value::as_str).unwrap_or("string");
            let simple = matches!(kind, "string" | "number" | "integer" | "boolean");
            let said = ["title", "description"].iter().find_map(|name| about.get(name)?.as_str());
            let choices = about.get("enum").map(|choices| format!(" {choices}")).unwrap_or_default();
            let optional = !required.iter().any(|name| name.as_str() == Some(key));
            let more = if optional { ", may stay empty" } else { "" };
            let label = format!("{} ({kind}{choices}{more}): ", said.unwrap_or(key));
            simple.then(|| Field {
                key: key.clone(),
                group: String::new(),
                label,
                kind: kind.to_owned(),
                optional,
            })
        })
        .collect()
}

impl Field {
    fn text() -> Self {
        let (key, group, kind) = (String::new(), String::new(), "string".to_owned());
        Self { key, group, label: "answer: ".to_owned(), kind, optional: false }
    }
    fn json() -> Self {
        Self { label: "answer (JSON): ".to_owned(), kind: "json".to_owned(), ..Self::text() }
    }
    /// A question that is no form: an address to open.
    fn whole(group: &str, question: &Value) -> Self {
        let url = question.get("url").and_then(Value::as_str).unwrap_or_default();
        let label = format!("open {url} and then write \"accept\", or \"decline\": ");
        Self { key: "action".to_owned(), group: group.to_owned(), label, ..Self::text() }
    }

    /// Reads what was typed; why not, if it does not fit.
    pub(super) fn read(&self, line: &str) -> Result<Value, String> {
        let line = line.trim();
        if line.is_empty() && self.optional {
            return Ok(Value::Null);
        }
        match self.kind.as_str() {
            "number" | "integer" => {
                let number = serde_json::from_str::<Value>(line).ok().filter(Value::is_number);
                number.ok_or_else(|| "that is no number".to_owned())
            }
            "boolean" => match line.to_ascii_lowercase().as_str() {
                "true" | "yes" | "y" => Ok(Value::Bool(true)),
                "false" | "no" | "n" => Ok(Value::Bool(false)),
                _ => Err("write yes or no".to_owned()),
            },
            "json" => serde_json::from_str(line).map_err(|e| format!("that is no JSON: {e}")),
            _ => Ok(Value::String(line.to_owned())),
        }
    }
}

/// What a line says to an approval: a letter or a word, `deny` with a reason,
/// or an object for programs. None if it says nothing known.
pub(super) fn choice(line: &str) -> Option<Choice> {
    let line = line.trim();
    if line.starts_with('{') {
        return object_choice(&serde_json::from_str(line).ok()?);
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let allow = |remember| Some(Choice::Answer(Answer::Allow(remember)));
    match word.to_ascii_lowercase().as_str() {
        "o" | "once" => allow(Remember::Once),
        "s" | "session" => allow(Remember::Session),
        "a" | "always" => allow(Remember::Always),
        "e" | "edit" => match rest.trim() {
            "" => Some(Choice::Edit),
            args => edited(args).ok().map(Choice::Answer),
        },
        "d" | "deny" => {
            let message = Some(rest.trim()).filter(|why| !why.is_empty()).map(str::to_owned);
            Some(Choice::Answer(Answer::Deny { remember: Remember::Once, message }))
        }
        _ => None,
    }
}

fn object_choice(value: &Value) -> Option<Choice> {
    let remember = match value.get("remember").and_then(Value::as_str) {
        None | Some("once") => Remember::Once,
        Some("session") => Remember::Session,
        Some("always") => Remember::Always,
        Some("alwaysThese") => Remember::AlwaysThese,
        Some(_) => return None,
    };
    let answer = match (value.get("decision")?.as_str()?, value.get("editedArgs")) {
        ("allow", None) => Answer::Allow(remember),
        ("allow", Some(args)) => Answer::Edit(args.clone()),
        ("deny", _) => {
            let message = value.get("message").and_then(Value::as_str).map(str::to_owned);
            Answer::Deny { remember, message }
        }
        _ => return None,
    };
    Some(Choice::Answer(answer))
}

/// Other arguments.
pub(super) fn edited(line: &str) -> Result<Answer, String> {
    match serde_json::from_str::<Value>(line.trim()) {
        Ok(args) if args.is_object() => Ok(Answer::Edit(args)),
        Ok(_) => Err("the arguments must be an object".to_owned()),
        Err(error) => Err(format!("that is no JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_line_decides_by_letter_word_or_object_and_anything_else_is_asked_again() {
        let allow = |remember| Some(Choice::Answer(Answer::Allow(remember)));
        assert_eq!(choice("o"), allow(Remember::Once));
        assert_eq!(choice(" Session "), allow(Remember::Session));
        assert_eq!(choice("always"), allow(Remember::Always));
        assert_eq!(choice("e"), Some(Choice::Edit));
        assert_eq!(choice("e {\"a\":1}"), Some(Choice::Answer(Answer::Edit(json!({"a": 1})))));
        let message = Some("not now".to_owned());
        assert_eq!(
            choice("d not now"),
            Some(Choice::Answer(Answer::Deny { remember: Remember::Once, message }))
        );
        assert_eq!(
            choice("{\"decision\":\"allow\",\"remember\":\"alwaysThese\"}"),
            allow(Remember::AlwaysThese)
        );
        for unclear in ["", "yes", "y", "allow", "{", "{\"decision\":\"maybe\"}", "e [1]"] {
            assert_eq!(choice(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn a_flat_form_is_asked_field_by_field_and_another_as_json() {
        let schema = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer"}, "gift": {"type": "boolean"}, "note": {"type": "string"}}});
        let Form::Input { fields, wrap: Wrap::Object } = input(&json!({"schema": schema})) else { panic!() };
        assert_eq!(fields.len(), 3);
        let size = fields.iter().find(|field| field.key == "size").unwrap();
        assert_eq!(
            (size.read("7"), size.read("x").is_err(), size.read("").is_err()),
            (Ok(json!(7)), true, true)
        );
        let gift = fields.iter().find(|field| field.key == "gift").unwrap();
        assert_eq!((gift.read("yes"), gift.read("")), (Ok(json!(true)), Ok(Value::Null)));
        let nested = json!({"type": "object", "properties": {"a": {"type": "object"}}});
        let form = input(&json!({"schema": nested}));
        assert!(
            matches!(form, Form::Input { wrap: Wrap::Bare, fields } if fields[0].read("{}") == Ok(json!({})))
        );
    }
}
