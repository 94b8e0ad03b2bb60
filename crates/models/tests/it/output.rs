//! Row H4 for answers: the form that an agent asks for, in each vendor's own
//! way, or in words that are announced.

use serde_json::{Value, json};
use toolyard_models::scripted::{Reply, Upstream};
use toolyard_models::wire::{Encoded, OUTPUT_IN_WORDS, What};
use toolyard_models::{
    Chunk, ModelRecord, OutputSchema, Request, anthropic, bedrock, gemini, openai, responses,
};

use crate::fixtures::{asking, collect, model_at};

fn wanting(model: &str, schema: &Value, strict: bool) -> Request {
    let output = OutputSchema { name: "answer".into(), schema: schema.clone(), strict };
    Request { model: model.into(), system: Some("Be brief.".into()), output: Some(output), ..asking("Count") }
}

/// A schema as people write them.
fn odd() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": { "day": { "type": "string", "format": "date", "examples": ["2026-11-16"] } },
        "allOf": [{ "type": "object", "properties": { "day": { "$ref": "#/$defs/day" } } }],
        "properties": { "n": { "type": "integer", "minimum": 1, "default": 3 } },
        "required": ["n", "day"],
    })
}

fn closed() -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": ["n", "day"], "properties": {
        "day": { "type": "string", "format": "date" },
        "n": { "type": "integer", "description": "(minimum: 1)" } } })
}

fn is_in_words(encoded: &Encoded, system: &str) -> bool {
    let told = encoded.left_out.iter().any(|left| left.what == What::Output && left.name == "answer");
    told && system.starts_with("Be brief.\n\n") && system.contains("JSON Schema")
}

#[test]
fn h4_openai_enforces_a_form_that_requires_all_and_tries_its_best_with_others() {
    let form =
        |schema: &Value| openai::encode(wanting("gpt-4.1", schema, true)).body["response_format"].clone();
    assert_eq!(
        form(&odd()),
        json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": closed() } })
    );
    // A field that may be missing has no strict form of the same meaning.
    let mut open = odd();
    open["required"] = json!(["n"]);
    let best = form(&open)["json_schema"].clone();
    assert_eq!(best["strict"], false);
    assert_eq!(best["schema"]["properties"]["n"], json!({ "type": "integer", "minimum": 1, "default": 3 }));
    assert_eq!(best["schema"]["properties"]["day"]["format"], "date", "references are written out: {best}");
    assert!(best["schema"].get("$defs").is_none() && best["schema"].get("$schema").is_none(), "{best}");
    // Nor has anything, or a list of anything.
    for loose in [json!({}), json!({ "type": "array" })] {
        let schema = json!({ "type": "object", "properties": { "x": loose }, "required": ["x"] });
        assert_eq!(form(&schema)["json_schema"]["strict"], false, "{loose}");
    }
    let format = responses::encode(wanting("gpt-4.1", &odd(), true)).body["text"]["format"].clone();
    assert_eq!((&format["strict"], &format["schema"]), (&json!(true), &closed()));
    // The vendor takes only objects.
    for encode in [openai::encode, responses::encode] {
        let encoded = encode(wanting("gpt-4.1", &json!({ "type": "array" }), true));
        let system =
            encoded.body["instructions"].as_str().or(encoded.body["messages"][0]["content"].as_str());
        assert!(is_in_words(&encoded, system.unwrap()), "{encoded:?}");
        assert!(encoded.body.get("response_format").is_none() && encoded.body.get("text").is_none());
    }
}

#[test]
fn h4_gemini_gets_the_words_that_it_knows() {
    let config = |model: &str| gemini::encode(wanting(model, &odd(), true)).body["generationConfig"].clone();
    let newer = config("gemini-2.5-flash");
    assert_eq!(newer["responseMimeType"], "application/json");
    assert_eq!(
        newer["responseJsonSchema"],
        json!({ "type": "object", "required": ["n", "day"], "properties": {
            "day": { "type": "string", "format": "date" }, "n": { "type": "integer", "minimum": 1 } } })
    );
    let older = config("gemini-2.0-flash");
    assert_eq!(older["responseSchema"]["properties"]["day"]["description"], "Format: date");
    assert!(older["responseSchema"].get("$defs").is_none());
    // What cannot be read is asked for in words, and said.
    let broken = gemini::encode(wanting("gemini-2.5-flash", &json!({ "$ref": "#/nowhere" }), true));
    let system = broken.body["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
    assert!(is_in_words(&broken, system), "{broken:?}");
    assert_eq!(broken.body["generationConfig"], json!({ "responseMimeType": "application/json" }));
}

#[test]
fn h4_anthropic_and_bedrock_enforce_a_form_where_they_can_and_ask_in_words_where_not() {
    let newer = anthropic::encode(wanting("claude-sonnet-4-5", &odd(), true));
    assert_eq!(newer.body["output_config"]["format"], json!({ "type": "json_schema", "schema": closed() }));
    assert!(newer.left_out.is_empty());
    let older = anthropic::encode(wanting("claude-3-5-haiku-20241022", &odd(), true));
    assert!(older.body.get("output_config").is_none(), "{:?}", older.body);
    let system: String =
        older.body["system"].as_array().unwrap().iter().map(|b| b["text"].as_str().unwrap()).collect();
    assert!(is_in_words(&older, &system), "{older:?}");

    let newer = bedrock::encode(wanting("anthropic.claude-sonnet-4-5-20250929-v1:0", &odd(), true));
    let text =
        newer.body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), closed());
    for model in ["anthropic.claude-3-5-sonnet-20241022-v2:0", "amazon.nova-lite-v1:0", "meta.llama3-1-70b"] {
        let older = bedrock::encode(wanting(model, &odd(), true));
        assert!(older.body.get("outputConfig").is_none(), "{model}");
        assert!(is_in_words(&older, older.body["system"][0]["text"].as_str().unwrap()), "{model}: {older:?}");
    }
    // Closed, a map could hold nothing.
    let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let encoded = anthropic::encode(wanting("claude-sonnet-4-5", &map, true));
    assert!(encoded.body.get("output_config").is_none() && !encoded.left_out.is_empty(), "{encoded:?}");
}

/// The facts of the reply say it, so that the log does.
#[tokio::test]
async fn h4_a_form_that_is_only_asked_for_in_words_is_told_with_the_reply() {
    let upstream = Upstream::serve([Reply::saying("[]")]).await.unwrap();
    let request = wanting("m", &json!({ "type": "array" }), true);
    let reply = collect(&model_at(&upstream.base_url()), request).await;
    let facts = reply.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Metadata { value } => Some(value.clone()),
        _ => None,
    });
    assert!(facts.unwrap()[OUTPUT_IN_WORDS].as_str().unwrap().contains("no object"), "{reply:?}");
}

/// Row 37: which model can do what is configuration. A name only tells what
/// holds if nobody says it.
#[test]
fn h4_row37_the_operators_word_on_structured_output_counts_more_than_a_models_name() {
    let said = |word: bool, model: &str| {
        let record = ModelRecord { structured_output: Some(word), ..ModelRecord::bare("p", model) };
        record.fit(wanting("", &odd(), true))
    };
    let held = anthropic::encode(said(true, "claude-3-5-haiku-20241022"));
    assert_eq!(held.body["output_config"]["format"]["schema"], closed());
    let held = bedrock::encode(said(true, "amazon.nova-lite-v1:0"));
    assert!(held.body["outputConfig"]["textFormat"].is_object() && held.left_out.is_empty(), "{held:?}");
    type Encoder = fn(Request) -> Encoded;
    let encoders: [(Encoder, &str); 5] = [
        (openai::encode, "gpt-4.1"),
        (responses::encode, "gpt-4.1"),
        (anthropic::encode, "claude-sonnet-4-5"),
        (gemini::encode, "gemini-2.5-flash"),
        (bedrock::encode, "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ];
    for (encode, model) in encoders {
        let asked = encode(said(false, model));
        let text = asked.body.to_string();
        assert!(text.contains("must match this JSON Schema"), "{model}: {text}");
        for field in ["response_format", "json_schema", "output_config", "outputConfig", "responseMimeType"] {
            assert!(!text.contains(field), "{model}: {field} in {text}");
        }
        assert!(asked.left_out[0].reason.contains("configuration"), "{:?}", asked.left_out);
    }
}
