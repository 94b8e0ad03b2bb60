//! The list of frames that types and schemas are made from says what is sent:
//! no name is missing, and no payload has a field that its schema does not know.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;
use toolyard_dialects::native::{Frame, FrameKind, FrameVisitor, Presence, frame, space_frame, visit_frames};

use crate::{deltas, samples, views};

/// What the schema of a payload says.
struct Known {
    kind: FrameKind,
    fields: BTreeSet<String>,
    required: BTreeSet<String>,
}

struct Collect {
    generator: SchemaGenerator,
    by_name: BTreeMap<&'static str, Vec<Known>>,
}

impl FrameVisitor for Collect {
    fn visit<B: ts_rs::TS + JsonSchema + 'static>(&mut self, kind: &FrameKind) {
        let schema = B::json_schema(&mut self.generator).to_value();
        let own = schema["properties"].as_object().cloned().unwrap_or_default();
        let needed = schema["required"].as_array().cloned().unwrap_or_default();
        for name in kind.names {
            let mut fields: BTreeSet<String> = own.keys().cloned().collect();
            let mut required: BTreeSet<String> =
                needed.iter().map(|f| f.as_str().unwrap().to_owned()).collect();
            for (field, presence) in [
                ("type", Presence::Always),
                ("runId", kind.run_id),
                ("seq", kind.seq),
                ("ts", kind.ts),
                ("smartSpaceId", kind.smart_space_id),
            ] {
                if presence != Presence::Never {
                    fields.insert(field.to_owned());
                }
                if presence == Presence::Always {
                    required.insert(field.to_owned());
                }
            }
            self.by_name.entry(name).or_default().push(Known { kind: *kind, fields, required });
        }
    }
}

fn known() -> BTreeMap<&'static str, Vec<Known>> {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut all = Collect { generator, by_name: BTreeMap::new() };
    visit_frames(&mut all);
    all.by_name
}

/// A frame of every kind, for every viewer.
fn sent() -> Vec<Frame> {
    let (run, space) = (samples::run(), samples::space());
    let mut sent = Vec::new();
    for (_, viewer) in samples::viewers() {
        for (seq, event) in (1..).zip(samples::all()) {
            sent.extend(frame(&run, seq, samples::at(), &event, &viewer));
            sent.extend(space_frame(&space, seq, &run, seq, samples::at(), &event, &viewer));
        }
        sent.extend(deltas::frames(&viewer));
        sent.extend(views::frames(&viewer));
    }
    sent
}

#[test]
fn every_name_of_the_catalog_is_sent_and_every_sent_name_is_in_it() {
    let sent: BTreeSet<&str> = sent().iter().map(Frame::name).collect();
    assert_eq!(sent, known().into_keys().collect());
}

#[test]
fn every_payload_fits_its_schema() {
    let known = known();
    for frame in sent() {
        let payload: Value = serde_json::from_str(frame.data()).unwrap();
        let fields: BTreeSet<String> = payload.as_object().unwrap().keys().cloned().collect();
        let fits = |known: &&Known| fields.is_subset(&known.fields) && known.required.is_subset(&fields);
        let found = known[frame.name()].iter().find(fits);
        assert!(found.is_some(), "{} does not fit: {}", frame.name(), frame.data());
    }
}

#[test]
fn only_what_is_logged_or_resets_has_an_id() {
    let known = known();
    for frame in sent() {
        let logged = known[frame.name()].iter().any(|known| known.kind.logged);
        assert_eq!(frame.id().is_some(), logged || frame.name() == "reset", "{}", frame.name());
    }
}

#[test]
fn a_secret_key_meets_every_field_of_every_payload() {
    let known = known();
    let mut met: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for frame in sent() {
        let payload: Value = serde_json::from_str(frame.data()).unwrap();
        met.entry(frame.name()).or_default().extend(payload.as_object().unwrap().keys().cloned());
    }
    // An end without an error has a message, one with an error has it inside.
    let alternatives = |name: &str, field: &str| match name {
        "run.completed" => matches!(field, "error" | "message"),
        "run.canceled" => field == "error",
        "run.failed" => field == "message",
        "tool-output-available" => matches!(field, "error" | "code"),
        "tool-error" => matches!(field, "output" | "blob"),
        _ => false,
    };
    for (name, forms) in &known {
        for field in forms.iter().flat_map(|known| &known.fields) {
            assert!(met[name].contains(field) || alternatives(name, field), "{name}.{field} is never sent");
        }
    }
}
