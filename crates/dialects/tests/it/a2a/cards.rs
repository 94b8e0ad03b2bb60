//! Agent cards.

use serde_json::json;
use toolyard_dialects::a2a::card::{CardFacts, Face, Skill, canonical, card};

fn facts() -> CardFacts {
    CardFacts {
        name: "assistant".into(),
        description: "Helps.".into(),
        version: "1".into(),
        base: "https://agents.example.com".into(),
        path: "/a2a/assistant".into(),
        keyed: true,
        push: true,
        skills: vec![Skill {
            id: "chat".into(),
            name: "Chat".into(),
            description: "Talks.".into(),
            tags: vec!["chat".into()],
        }],
        required: vec![],
        call_timeout_seconds: 86_400,
    }
}

#[test]
fn three_faces_of_one_agent() {
    let shown = |face| serde_json::to_string_pretty(&card(&facts(), face)).unwrap();
    insta::assert_snapshot!("card_hybrid", shown(Face::Hybrid));
    insta::assert_snapshot!("card_1_0", shown(Face::V10));
    insta::assert_snapshot!("card_0_3", shown(Face::V03));
}

#[test]
fn the_canonical_form_sorts_by_utf_16_and_leaves_signatures_out() {
    let card =
        json!({ "b": [1, { "z": null, "a": "x\n\"" }], "\u{1F600}": 1, "\u{FB33}": 2, "signatures": [1] });
    assert_eq!(
        canonical(&card),
        "{\"b\":[1,{\"a\":\"x\\n\\\"\",\"z\":null}],\"\u{1F600}\":1,\"\u{FB33}\":2}"
    );
}
