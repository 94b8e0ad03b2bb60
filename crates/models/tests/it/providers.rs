//! Settings in, models out.

use toolyard_egress::Door;
use toolyard_models::{ModelError, ProviderKind, ProviderSettings, Providers};
use toolyard_protocol::error::ErrorCode;

fn settings(name: &str, kind: ProviderKind, base_url: Option<&str>) -> ProviderSettings {
    let base_url = base_url.map(str::to_owned);
    ProviderSettings { name: name.into(), kind, base_url, api_key: None }
}

fn open(settings: Vec<ProviderSettings>) -> Result<Providers, String> {
    Providers::open(settings, &Door::operator().unwrap()).map_err(|e| e.to_string())
}

#[test]
fn an_unknown_provider_is_told_which_ones_are_known() {
    let local = settings("local", ProviderKind::OpenAi, Some("http://127.0.0.1:1/v1"));
    let providers = open(vec![local, settings("demo", ProviderKind::Demo, None)]).unwrap();
    assert_eq!(providers.get("demo").unwrap().provider(), "demo");
    assert_eq!(providers.get("local").unwrap().provider(), "local");
    let error = providers.get("lokal").unwrap_err();
    assert_eq!(error.to_string(), "Model provider \"lokal\" is not configured. Known providers: demo, local");
    assert_eq!(error.code(), ErrorCode::ModelNotFound);
    let none = Providers::default().get("x").unwrap_err();
    assert!(matches!(none, ModelError::UnknownProvider { ref known, .. } if known.is_empty()));
    assert!(none.to_string().ends_with("No provider is configured"));
}

#[test]
fn an_address_that_cannot_work_names_its_setting() {
    let bad = |url| open(vec![settings("local", ProviderKind::OpenAi, Some(url))]).unwrap_err();
    assert_eq!(bad("nonsense"), "providers.local: base_url: the address is not a URL");
    assert!(bad("file:///etc/passwd").contains("http:// or https://"));
    let secret = bad("https://user:hunter2@example.com/v1");
    assert!(secret.contains("user name or password") && !secret.contains("hunter2"));
}

#[test]
fn a_name_is_configured_once() {
    let demo = || settings("demo", ProviderKind::Demo, None);
    assert_eq!(open(vec![demo(), demo()]).unwrap_err(), "providers.demo is configured twice");
}

#[test]
fn kinds_are_read_by_their_words() {
    let kind = |word: &str| serde_json::from_value::<ProviderKind>(word.into()).ok();
    assert_eq!(kind("openai"), Some(ProviderKind::OpenAi));
    assert_eq!(kind("demo"), Some(ProviderKind::Demo));
    assert_eq!(kind("open-ai"), None);
}

#[test]
fn c4_every_wire_has_its_word() {
    let kind = |word: &str| serde_json::from_value::<ProviderKind>(word.into()).ok();
    assert_eq!(kind("openai-responses"), Some(ProviderKind::OpenAiResponses));
    assert_eq!(kind("gemini"), Some(ProviderKind::Gemini));
    let vendors = [("r", ProviderKind::OpenAiResponses), ("g", ProviderKind::Gemini)];
    let providers = open(vendors.map(|(name, kind)| settings(name, kind, None)).to_vec()).unwrap();
    assert_eq!(providers.names().collect::<Vec<_>>(), ["g", "r"]);
}

#[test]
fn ids_of_others_name_our_vendors() {
    let ids = [
        ("openai", "openai"),
        ("openai.responses", "openai"),
        ("openai.chat", "openai"),
        ("openai-responses", "openai"),
        ("anthropic.messages", "anthropic"),
        ("google.generative-ai", "gemini"),
        ("gemini", "gemini"),
        ("amazon-bedrock", "bedrock"),
        ("azure-openai.chat", "azure-openai"),
        ("Groq.chat", "groq"),
        ("", ""),
    ];
    for (theirs, ours) in ids {
        assert_eq!(toolyard_models::provider_id::normalise(theirs), ours, "{theirs}");
    }
}

/// Row C22: one name finds everything that a vendor can do.
#[test]
fn c22_what_a_vendor_can_do_is_found_by_every_name_of_it() {
    let here = Some("http://127.0.0.1:9/v1");
    let all = vec![
        settings("anthropic", ProviderKind::Anthropic, here),
        settings("demo", ProviderKind::Demo, None),
        settings("gemini", ProviderKind::Gemini, here),
        settings("openai", ProviderKind::OpenAi, here),
    ];
    let providers = Providers::open(all, &Door::operator().unwrap()).unwrap();
    for (name, ours) in [
        ("openai", "openai"),
        ("openai.responses", "openai"),
        ("openai-responses", "openai"),
        ("google.generative-ai", "gemini"),
        ("google", "gemini"),
    ] {
        assert_eq!(providers.get(name).unwrap().provider(), ours);
        assert_eq!(providers.embed(name).unwrap().provider(), ours);
        assert_eq!(providers.images(name).unwrap().provider(), ours);
    }
    // Who cannot is told, with those who can.
    let none = providers.images("anthropic.messages").unwrap_err();
    assert_eq!(none.code(), ErrorCode::ModelNotFound);
    let said = "Model provider \"anthropic.messages\" has no images. These have: demo, gemini, openai";
    assert_eq!(none.to_string(), said);
}

/// Row G11: without a name, whoever paints does, with a model of its own.
#[test]
fn g11_pictures_come_from_who_is_configured() {
    let painter = |kinds: &[(&str, ProviderKind)]| {
        let here = Some("http://127.0.0.1:9/v1");
        let all = kinds.iter().map(|(name, kind)| settings(name, *kind, here)).collect();
        let providers = Providers::open(all, &Door::operator().unwrap()).unwrap();
        let name = providers.painter().map(str::to_owned)?;
        let model = providers.images(&name).unwrap().usual_model();
        Some((name, model))
    };
    let found = |name: &str, model| Some((name.to_owned(), model));
    let demo = ("demo", ProviderKind::Demo);
    assert_eq!(painter(&[demo]), found("demo", "demo"));
    assert_eq!(painter(&[demo, ("gemini", ProviderKind::Gemini)]), found("gemini", "gemini-2.5-flash-image"));
    let own = ("a-server", ProviderKind::OpenAi);
    assert_eq!(painter(&[demo, own]), found("a-server", "gpt-image-1"));
    assert_eq!(painter(&[own, ("openai", ProviderKind::OpenAi)]), found("openai", "gpt-image-1"));
    assert_eq!(painter(&[("anthropic", ProviderKind::Anthropic)]), None);
}
