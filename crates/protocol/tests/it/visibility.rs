//! Rows S5, X7 and G31 to G35 at the level of types: what a key sees is decided
//! by the key alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolyard_protocol::Event;
use toolyard_protocol::message::{Message, Part, Speaker};
use toolyard_protocol::principal::Viewer;
use toolyard_protocol::tool::Visibility;
use toolyard_protocol::visible::{visible_message, visible_to};

use crate::samples;

fn seen_by(viewer: &Viewer) -> String {
    let lines: Vec<String> = samples::all()
        .iter()
        .filter_map(|event| visible_to(viewer, event).map(|seen| seen.encode()))
        .collect();
    lines.join("\n")
}

/// Every canary word in a text.
fn canaries(text: &str) -> BTreeSet<&str> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    text.match_indices("canary-").map(|(at, _)| text[at..].split(ends).next().unwrap()).collect()
}

#[test]
fn x7_a_public_key_sees_no_canary_of_another_class() {
    let planted = seen_by(&Viewer::secret());
    let planted = canaries(&planted);
    for (name, viewer) in samples::viewers() {
        let text = seen_by(&viewer);
        let expected: BTreeSet<&str> = match name {
            "secret" => planted.clone(),
            "answerer" => with_prefix(&planted, &["canary-open-", "canary-answer-"]),
            _ => with_prefix(&planted, &["canary-open-"]),
        };
        assert_eq!(canaries(&text), expected, "{name}");
        for secret in samples::secret_texts() {
            assert_eq!(text.contains(&secret), name == "secret", "{name}: {secret}");
        }
    }
}

fn with_prefix<'t>(words: &BTreeSet<&'t str>, prefixes: &[&str]) -> BTreeSet<&'t str> {
    words.iter().copied().filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix))).collect()
}

#[test]
fn every_class_has_canaries_to_find() {
    let all = seen_by(&Viewer::secret());
    let all = canaries(&all);
    for class in ["canary-secret-", "canary-tool-", "canary-open-", "canary-answer-", "canary-thought-"] {
        assert!(all.iter().any(|word| word.starts_with(class)), "{class}");
    }
}

/// The class table of the design, said a second time: what a member who may
/// not answer does not get of an event with a private tool.
fn hidden_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "RunCreated" => &[
            "agentVersion",
            "toolset",
            "limits",
            "onMessage",
            "answerers",
            "by",
            "metadata",
            "model",
            "errand",
            "picks",
            "output",
            "trace",
        ],
        "StepRestarted" => &["why"],
        "ModelReplied" => &["metadata", "model"],
        "Asked" => &["payload", "fingerprint", "state"],
        "Answered" => &["edited", "by"],
        "ToolCallRequested" => &["args", "fingerprint"],
        "ToolProgressed" => &["message", "preliminary", "ticket", "spent"],
        "ToolReturned" => &["value", "blob", "error", "by", "spent"],
        "ReplyAmended" => &["by"],
        "ResultAmended" => &["value", "error", "by"],
        "ToolsetReplaced" => &["toolset", "model"],
        "ChildAsked" => &["payload"],
        "ChildAnswered" => &["value"],
        "CancelRequested" => &["by"],
        "HistoryCompacted" => &["summary"],
        "PluginStateSaved" => &["v", "type", "plugin", "state"],
        "RunFinished" => &["detail"],
        _ => &[],
    }
}

fn is_public_tool(event: &Value) -> bool {
    event["visibility"] == "public"
}

#[test]
fn exactly_the_fields_of_the_class_table_are_hidden_from_a_bystander() {
    let [_, _, (_, bystander)] = samples::viewers();
    let mut hidden: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for event in samples::all() {
        let whole: Value = serde_json::from_str(&event.encode()).unwrap();
        if is_public_tool(&whole) {
            continue;
        }
        let seen =
            visible_to(&bystander, &event).map(|seen| serde_json::from_str::<Value>(&seen.encode()).unwrap());
        let gone = whole
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| seen.as_ref().is_none_or(|s| s.get(*key).is_none()));
        hidden.entry(event.kind()).or_default().extend(gone.cloned());
    }
    for kind in Event::KINDS {
        let expected: BTreeSet<String> =
            hidden_fields(kind).iter().map(|field| (*field).to_owned()).collect();
        assert_eq!(hidden[kind], expected, "{kind}");
    }
}

#[test]
fn g34_a_public_tool_is_not_stripped_but_for_who_fingerprint_and_ticket() {
    let [_, _, (_, bystander)] = samples::viewers();
    for event in samples::all() {
        let whole: Value = serde_json::from_str(&event.encode()).unwrap();
        if !is_public_tool(&whole) {
            continue;
        }
        let seen = visible_to(&bystander, &event).unwrap().encode();
        let seen: Value = serde_json::from_str(&seen).unwrap();
        let gone: Vec<_> = whole.as_object().unwrap().keys().filter(|key| seen.get(*key).is_none()).collect();
        assert!(
            gone.iter().all(|key| ["by", "fingerprint", "ticket", "spent"].contains(&key.as_str())),
            "{}: {gone:?}",
            event.kind()
        );
    }
}

#[test]
fn a_secret_key_sees_each_event_as_it_is() {
    for event in samples::all() {
        assert_eq!(visible_to(&Viewer::secret(), &event).as_deref(), Some(&event));
    }
}

#[test]
fn filtering_twice_is_filtering_once() {
    for (name, viewer) in samples::viewers() {
        for event in samples::all() {
            let Some(once) = visible_to(&viewer, &event) else { continue };
            assert_eq!(
                visible_to(&viewer, &once).as_deref(),
                Some(once.as_ref()),
                "{name}: {}",
                event.kind()
            );
        }
    }
}

fn message(visibility: Visibility, show_reasoning: bool) -> Message {
    let mut parts = samples::parts(visibility);
    parts.push(Part::Reasoning {
        text: "canary-thought".into(),
        metadata: serde_json::json!("canary-secret").into(),
    });
    Message {
        id: toolyard_protocol::MessageId::parse("msg_1").unwrap(),
        space: samples::space(),
        seq: 1,
        speaker: Speaker::Assistant,
        entity: None,
        run: Some(samples::run()),
        branch: toolyard_protocol::BranchId::main(),
        parts,
        show_reasoning,
        metadata: None,
        created_at: samples::at(),
    }
}

#[test]
fn x7_messages_follow_the_same_classes_as_events() {
    let [(_, secret), _, (_, bystander)] = samples::viewers();
    let words = |viewer: &Viewer, message: &Message| {
        let text = serde_json::to_string(&visible_message(viewer, message).parts).unwrap();
        canaries(&text).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let private = message(Visibility::Private, false);
    assert_eq!(words(&bystander, &private), Vec::<String>::new());
    assert_eq!(
        words(&secret, &private),
        [
            "canary-secret",
            "canary-secret-opaque",
            "canary-secret-part-call",
            "canary-thought",
            "canary-tool-part-args",
            "canary-tool-part-error",
            "canary-tool-part-value"
        ]
    );
    let public = message(Visibility::Public, true);
    assert_eq!(
        words(&bystander, &public),
        ["canary-open-part-args", "canary-open-part-error", "canary-open-part-value", "canary-thought"]
    );
}
