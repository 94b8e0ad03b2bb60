//! Which model a name means, and what it costs.

use toolyard_egress::Door;
use toolyard_models::{
    BadRegistry, ModelError, ModelRecord, Price, ProviderKind, ProviderSettings, Providers, Registry, Wanted,
};
use toolyard_protocol::ErrorCode;
use toolyard_protocol::agent::ModelApi;
use toolyard_protocol::run::Usage;

fn providers() -> Providers {
    let of = |name: &str, kind| ProviderSettings {
        name: name.to_owned(),
        kind,
        base_url: Some("http://127.0.0.1:9/v1".to_owned()),
        api_key: None,
    };
    let settings = vec![
        of("openai", ProviderKind::OpenAi),
        of("anthropic", ProviderKind::Anthropic),
        of("gemini", ProviderKind::Gemini),
        of("demo", ProviderKind::Demo),
    ];
    Providers::open(settings, &Door::operator().unwrap()).unwrap()
}

fn record(id: &str, provider: &str, model: &str, fallback: &[&str]) -> ModelRecord {
    let fallback = fallback.iter().map(|name| (*name).to_owned()).collect();
    ModelRecord { id: id.to_owned(), fallback, ..ModelRecord::bare(provider, model) }
}

fn ids(registry: &Registry, wanted: &Wanted<'_>) -> Vec<String> {
    registry.chain(wanted).unwrap().iter().map(|c| c.record.id.clone()).collect()
}

fn of<'a>(provider: &'a str, name: &'a str) -> Wanted<'a> {
    Wanted { provider: Some(provider), ..Wanted::named(name) }
}

/// Row C4: a name is an id, or a provider and its model.
#[test]
fn c4_a_name_leads_to_its_model() {
    let records = vec![record("claude", "anthropic", "claude-large", &["flash", "openai/gpt"])];
    let records = [records, vec![record("flash", "gemini", "gemini-flash", &[])]].concat();
    let registry = Registry::new(providers(), records).unwrap();
    assert_eq!(ids(&registry, &Wanted::named("claude")), ["claude", "flash", "openai/gpt"]);
    assert_eq!(ids(&registry, &Wanted::named("demo/demo")), ["demo/demo"]);
    // What is known of a model counts, however it is named.
    assert_eq!(ids(&registry, &of("anthropic", "claude-large"))[0], "claude");
    assert_eq!(ids(&registry, &of("anthropic.messages", "claude-large"))[0], "claude");
    assert_eq!(ids(&registry, &of("google.generative-ai", "gemini-flash")), ["flash"]);
    // An agent's own list takes the place of the record's.
    let own = ["flash".to_owned(), "nobody/at-home".to_owned()];
    let wanted = Wanted { fallback: &own, ..Wanted::named("claude") };
    assert_eq!(ids(&registry, &wanted), ["claude", "flash"], "one that is not configured is passed over");
}

#[test]
fn c4_an_unknown_name_is_told_with_the_known_ones() {
    let registry = Registry::new(providers(), vec![record("claude", "anthropic", "c", &[])]).unwrap();
    let none = registry.chain(&Wanted::named("gpt-none")).unwrap_err();
    assert_eq!(none.code(), ErrorCode::ModelNotFound);
    assert!(none.to_string().contains("gpt-none") && none.to_string().contains("claude"), "{none}");
    let nobody = registry.chain(&of("nobody", "x")).unwrap_err();
    assert!(matches!(nobody, ModelError::UnknownProvider { .. }), "{nobody}");
    assert!(registry.chain(&Wanted::named("/x")).is_err() && registry.chain(&Wanted::named("x/")).is_err());
}

/// `model.api` chooses among the wires of one vendor.
#[test]
fn an_agent_chooses_the_wire_of_its_vendor() {
    let registry = Registry::bare(providers());
    let wire = |api| {
        let wanted = Wanted { api, ..of("openai", "gpt") };
        format!("{:?}", registry.chain(&wanted).unwrap()[0].model)
    };
    let (plain, chat, responses) = (wire(None), wire(Some(ModelApi::Chat)), wire(Some(ModelApi::Responses)));
    assert_eq!(plain.split(['(', ' ']).next(), chat.split(['(', ' ']).next());
    assert_ne!(plain.split(['(', ' ']).next(), responses.split(['(', ' ']).next(), "{plain} {responses}");
}

#[test]
fn a_registry_that_cannot_work_is_refused() {
    let twice = vec![record("a", "demo", "x", &[]), record("a", "demo", "y", &[])];
    assert_eq!(Registry::new(providers(), twice).unwrap_err(), BadRegistry::Twice("a".to_owned()));
    for (name, said) in [("a", "itself"), ("b", "no model")] {
        let refused = Registry::new(providers(), vec![record("a", "demo", "x", &[name])]).unwrap_err();
        assert!(refused.to_string().contains(said), "{refused}");
    }
}

/// Dollars for a million tokens are millionths for one; cached input has its own price.
#[test]
fn a_price_counts_every_kind_of_token_once_and_rounds_up() {
    let price = Price { input: 3.0, output: 15.0, cached: Some(0.3), cache_write: Some(3.75) };
    let usage = Usage {
        input_tokens: 1000,
        output_tokens: 100,
        cached_tokens: 600,
        cache_write_tokens: 200,
        reasoning_tokens: 50,
    };
    // 200 × 3 + 600 × 0.3 + 200 × 3.75 + 100 × 15
    assert_eq!(price.of(&usage), 600 + 180 + 750 + 1500);
    let plain = Price { cached: None, cache_write: None, ..price };
    assert_eq!(plain.of(&usage), 3000 + 1500);
    let small = Price { input: 0.1, output: 0.0, cached: None, cache_write: None };
    assert_eq!(small.of(&Usage { input_tokens: 1, ..Usage::default() }), 1, "never less than it was");
    // A vendor that counts wrongly must not make a cost negative.
    let odd = Usage { input_tokens: 10, cached_tokens: 50, cache_write_tokens: 50, ..Usage::default() };
    assert_eq!(price.of(&odd), 3);
}
