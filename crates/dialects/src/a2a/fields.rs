//! Reading parameters field by field, so that an error names the field.

use serde_json::{Map, Value};

use super::fault::Fault;

/// An object of the parameters, and the path to it.
#[derive(Debug, Clone)]
pub(super) struct Fields<'v> {
    path: String,
    map: &'v Map<String, Value>,
}

impl<'v> Fields<'v> {
    pub(super) fn of(path: &str, value: &'v Value) -> Result<Self, Fault> {
        let map = value.as_object().ok_or_else(|| Fault::field(path, "must be an object"))?;
        Ok(Self { path: path.to_owned(), map })
    }
    /// The path of a member.
    pub(super) fn at(&self, name: &str) -> String {
        match (self.path.as_str(), name) {
            ("", name) => name.to_owned(),
            (path, "") => path.to_owned(),
            (path, name) => format!("{path}.{name}"),
        }
    }
    /// A member. JSON `null` is absent, and `task_id` is `taskId`, as the
    /// protocol's JSON form has it.
    pub(super) fn get(&self, name: &str) -> Option<&'v Value> {
        self.map.get(name).or_else(|| self.map.get(&snake(name))).filter(|value| !value.is_null())
    }
    /// The member is there, be it `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name) || self.map.contains_key(&snake(name))
    }
    pub(super) fn wrong(&self, name: &str, description: impl Into<String>) -> Fault {
        Fault::field(self.at(name), description)
    }
    pub(super) fn need(&self, name: &str) -> Result<&'v Value, Fault> {
        self.get(name).ok_or_else(|| self.wrong(name, "is required"))
    }
    pub(super) fn object(&self, name: &str) -> Result<Option<Fields<'v>>, Fault> {
        self.get(name).map(|value| Fields::of(&self.at(name), value)).transpose()
    }
    pub(super) fn text(&self, name: &str) -> Result<Option<&'v str>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "must be a text")),
        }
    }
    /// A text that is there and not empty.
    pub(super) fn need_text(&self, name: &str) -> Result<&'v str, Fault> {
        match self.text(name)? {
            Some("") => Err(self.wrong(name, "must not be empty")),
            Some(text) => Ok(text),
            None => Err(self.wrong(name, "is required")),
        }
    }
    /// A text; an empty one is absent, as in the protocol's binary form.
    pub(super) fn some_text(&self, name: &str) -> Result<Option<&'v str>, Fault> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(name, "must be true or false")),
        }
    }
    pub(super) fn map(&self, name: &str) -> Result<Option<Map<String, Value>>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map.clone())),
            Some(_) => Err(self.wrong(name, "must be an object")),
        }
    }
    pub(super) fn list(&self, name: &str) -> Result<Option<&'v Vec<Value>>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.wrong(name, "must be a list")),
        }
    }
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, Fault> {
        let list = self.list(name)?.map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .map(|value| {
                let text = value.as_str().ok_or_else(|| self.wrong(name, "must be a list of texts"))?;
                Ok(text.to_owned())
            })
            .collect()
    }
    /// A whole number from zero on. Some clients write numbers as texts.
    pub(super) fn count(&self, name: &str) -> Result<Option<u32>, Fault> {
        let number = match self.get(name) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Some(Value::String(text)) => text.parse().ok(),
            Some(_) => None,
        };
        let number = number.ok_or_else(|| self.wrong(name, "must be a whole number"))?;
        if number < 0 {
            return Err(self.wrong(name, "must not be negative"));
        }
        Ok(Some(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

/// `taskId` as `task_id`.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// A number such as `3.0`, as some clients write 3.
fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range, as was just checked")]
    fits.then_some(number as i64)
}
