//! The samples hold every event and every field that the schema knows, so
//! that a new one fails here until it is sampled, and with that tested.

use std::collections::BTreeSet;

use schemars::SchemaGenerator;
use serde_json::{Map, Value};
use toolyard_protocol::Event;

use crate::samples;

#[test]
fn samples_cover_every_kind() {
    let kinds: BTreeSet<_> = samples::all().iter().map(Event::kind).collect();
    assert_eq!(kinds, Event::KINDS.iter().copied().collect());
}

#[test]
fn samples_fill_every_field_of_every_kind() {
    let mut generator = SchemaGenerator::default();
    let schemas = Event::schemas(&mut generator);
    let definitions = generator.take_definitions(true);
    let mut missing = BTreeSet::new();
    for (kind, schema) in schemas {
        let values: Vec<Value> = samples::all()
            .iter()
            .filter(|event| event.kind() == kind)
            .map(|event| serde_json::from_str(&event.encode()).unwrap())
            .collect();
        let walk = Walk { definitions: &definitions };
        walk.check(schema.as_value(), &values.iter().collect::<Vec<_>>(), kind, &mut missing);
    }
    assert_eq!(missing, BTreeSet::new(), "fields without a sample");
}

/// Walks schema and values side by side.
struct Walk<'a> {
    definitions: &'a Map<String, Value>,
}

impl Walk<'_> {
    fn check(&self, schema: &Value, values: &[&Value], path: &str, missing: &mut BTreeSet<String>) {
        let schema = self.resolve(schema);
        if values.is_empty() {
            missing.insert(path.to_owned());
            return;
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let under: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
            self.check(field, &under, &format!("{path}.{name}"), missing);
        }
        if schema["type"] == "array" {
            let items: Vec<&Value> = values.iter().filter_map(|v| v.as_array()).flatten().collect();
            self.check(&schema["items"], &items, &format!("{path}[]"), missing);
        }
        for form in ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten() {
            self.check_form(form, values, path, missing);
        }
    }

    /// One alternative: found by its tag, if it has one.
    fn check_form(&self, form: &Value, values: &[&Value], path: &str, missing: &mut BTreeSet<String>) {
        let form = self.resolve(form);
        if form["type"] == "null" {
            return;
        }
        let tag = form["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .find(|(_, field)| field["const"].is_string());
        let Some((tag, field)) = tag else {
            // An untagged alternative: the other form of an optional value, or a word of an enum.
            if form.get("properties").is_some() {
                self.check(form, values, path, missing);
            }
            return;
        };
        let under: Vec<&Value> =
            values.iter().copied().filter(|value| value[tag] == field["const"]).collect();
        // A rule or actor needs no sample per use; its own forms are sampled once.
        if under.is_empty() && (tag == "rule" || tag == "by") {
            return;
        }
        self.check(form, &under, &format!("{path}<{}>", field["const"]), missing);
    }

    fn resolve<'v>(&'v self, schema: &'v Value) -> &'v Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            Some(name) => self.resolve(&self.definitions[name]),
            None => schema,
        }
    }
}
