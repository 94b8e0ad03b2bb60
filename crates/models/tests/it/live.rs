//! The vendors themselves, if the environment has a key for them. Without one
//! a test says so and ends: nothing is proved then, and nothing is claimed.
//!
//! Each test costs a few tokens. `TOOLYARD_LIVE_<VENDOR>_MODEL` names another
//! model than the small one here.

use serde_json::json;
use toolyard_egress::Door;
use toolyard_models::{
    BadProvider, Chunk, EmbedRequest, OfferedTool, ProviderKind, ProviderSettings, Providers, Request,
};
use toolyard_protocol::agent::ToolChoice;

use crate::fixtures::{asking, collect};

fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())
}

/// The provider, if one of its keys is there.
fn provider(kind: ProviderKind, keys: &[&str]) -> Option<Providers> {
    let Some(key) = keys.iter().find_map(|name| set(name)) else {
        println!("none of {keys:?} is set: this vendor is not asked");
        return None;
    };
    // The vendor that signs takes its keys from the environment.
    let api_key = (kind != ProviderKind::Bedrock).then(|| key.into());
    let settings = ProviderSettings { name: "live".into(), kind, base_url: None, api_key };
    match Providers::open(vec![settings], &Door::operator().unwrap()) {
        Ok(providers) => Some(providers),
        // Half of what the vendor needs is in the environment.
        Err(why @ BadProvider::Missing { .. }) => {
            println!("{why}: this vendor is not asked");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// One answer in words and one call.
async fn smoke(kind: ProviderKind, keys: &[&str], vendor: &str, model: &str) {
    let Some(providers) = provider(kind, keys) else { return };
    let model = set(&format!("TOOLYARD_LIVE_{vendor}_MODEL")).unwrap_or_else(|| model.to_owned());
    let live = providers.get("live").unwrap();
    let ask = |text| Request { model: model.clone(), max_output_tokens: Some(2000), ..asking(text) };

    let said = collect(live.as_ref(), ask("Answer with the one word: yes")).await;
    assert_eq!(said.error, None, "{:?}", said.error.as_ref().and_then(|e| e.detail()));
    assert!(said.ends_once() && said.text().to_lowercase().contains("yes"), "{said:?}");
    assert!(said.chunks.iter().any(|chunk| matches!(chunk, Chunk::Usage { .. })));

    // A name that every vendor but ours would refuse.
    let schema =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let tool =
        OfferedTool { name: "weather.now".into(), description: "The weather of a city.".into(), schema };
    let request = Request { tools: vec![tool], tool_choice: ToolChoice::Required, ..ask("Weather in Bern?") };
    let called = collect(live.as_ref(), request).await;
    assert_eq!(called.error, None, "{:?}", called.error.as_ref().and_then(|e| e.detail()));
    let is_call = |chunk: &Chunk| {
        matches!(chunk, Chunk::ToolCall { name, args_text, .. }
        if name == "weather.now" && args_text.contains("Bern"))
    };
    assert!(called.chunks.iter().any(is_call), "{called:?}");
}

async fn smoke_embed(kind: ProviderKind, keys: &[&str], model: &str) {
    let Some(providers) = provider(kind, keys) else { return };
    let texts = vec!["a cat".to_owned(), "a kitten".to_owned(), "tax law".to_owned()];
    let request = EmbedRequest { model: model.into(), texts, ..EmbedRequest::default() };
    let vectors = providers.embed("live").unwrap().embed(request).await.unwrap().vectors;
    let likeness =
        |a: usize, b: usize| -> f32 { vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum() };
    assert!(likeness(0, 1) > likeness(0, 2));
}

#[tokio::test]
async fn openai_itself() {
    smoke(ProviderKind::OpenAi, &["OPENAI_API_KEY"], "OPENAI", "gpt-4.1-nano").await;
    smoke_embed(ProviderKind::OpenAi, &["OPENAI_API_KEY"], "text-embedding-3-small").await;
}

#[tokio::test]
async fn openai_responses_themselves() {
    smoke(ProviderKind::OpenAiResponses, &["OPENAI_API_KEY"], "OPENAI", "gpt-4.1-nano").await;
}

#[tokio::test]
async fn anthropic_itself() {
    smoke(ProviderKind::Anthropic, &["ANTHROPIC_API_KEY"], "ANTHROPIC", "claude-haiku-4-5").await;
}

#[tokio::test]
async fn gemini_itself() {
    smoke(
        ProviderKind::Gemini,
        &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
        "GEMINI",
        "gemini-2.5-flash-lite",
    )
    .await;
    smoke_embed(
        ProviderKind::Gemini,
        &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
        "gemini-embedding-001",
    )
    .await;
}

#[tokio::test]
async fn bedrock_itself() {
    let keys = ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"];
    smoke(ProviderKind::Bedrock, &keys, "BEDROCK", "amazon.nova-lite-v1:0").await;
    smoke_embed(ProviderKind::Bedrock, &keys, "amazon.titan-embed-text-v2:0").await;
}
