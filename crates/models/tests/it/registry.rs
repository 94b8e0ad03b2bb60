//! Which model a name means, and what it costs.

use serde_json::json;
use toolyard_egress::Door;
use toolyard_models::{
    BadRegistry, ChatTurn, ModelError, ModelRecord, Price, ProviderKind, ProviderSettings, Providers,
    Registry, Request, Wanted, openai, responses,
};
use toolyard_protocol::ErrorCode;
use toolyard_protocol::agent::{ModelApi, Reasoning, ReasoningEffort};
use toolyard_protocol::message::Part;
use toolyard_protocol::run::Usage;

use crate::vendors::VENDORS;

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
    let chain = registry.chain(wanted).unwrap();
    let first = &chain[0].record;
    assert_eq!(registry.first(wanted), Some((&*first.provider, &*first.model)), "{wanted:?}");
    chain.iter().map(|c| c.record.id.clone()).collect()
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
    for nothing in [Wanted::named("gpt-none"), of("nobody", "x"), Wanted::named("/x"), Wanted::named("x/")] {
        assert_eq!(registry.first(&nothing), None, "{nothing:?}");
    }
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

fn file(media_type: &str, name: Option<&str>) -> Part {
    let url = Some("data:image/png;base64,iVBORw0KGgo=".to_owned());
    Part::File { media_type: media_type.to_owned(), file: None, url, name: name.map(str::to_owned) }
}

fn showing(parts: Vec<Part>) -> Request {
    Request { turns: vec![ChatTurn::User { parts, name: None }], ..Request::default() }
}

/// Row C4: a model gets the files that it reads, and a line in place of others.
#[test]
fn c4_a_model_that_reads_text_alone_gets_no_picture_and_is_told_of_it() {
    let shown =
        || vec![Part::text("Look"), file("image/png", Some("cat.png")), file("Audio/WAV; rate=8", None)];
    let fitted = |files: Option<&[&str]>| {
        let files = files.map(|list| list.iter().map(|&one| one.to_owned()).collect());
        let record = ModelRecord { files, ..ModelRecord::bare("openai", "m") };
        let Some(ChatTurn::User { parts, .. }) = record.fit(showing(shown())).turns.pop() else { panic!() };
        parts
    };
    assert_eq!(fitted(None), shown(), "nobody said what it reads");
    assert_eq!(fitted(Some(&["*/*"])), shown());
    let image = Part::text("[file cat.png (image/png): this model cannot read it]");
    let sound = Part::text("[file without a name (Audio/WAV; rate=8): this model cannot read it]");
    assert_eq!(fitted(Some(&[])), [Part::text("Look"), image.clone(), sound.clone()]);
    assert_eq!(fitted(Some(&["image/*"])), [Part::text("Look"), shown()[1].clone(), sound]);
    assert_eq!(
        fitted(Some(&["application/pdf", "audio/wav"])),
        [Part::text("Look"), image, shown()[2].clone()]
    );
    // No vendor's request holds the bytes.
    let record = ModelRecord { files: Some(Vec::new()), ..ModelRecord::bare("openai", "m") };
    for vendor in VENDORS {
        let body = (vendor.encode)(record.fit(showing(shown()))).body.to_string();
        assert!(!body.contains("iVBORw0KGgo") && body.contains("cat.png"), "{}: {body}", vendor.name);
    }
}

/// Row C3: a model has a temperature of its own, and the agent's goes before it.
#[test]
fn c3_the_temperature_of_a_model_holds_unless_the_agent_says_another() {
    let record = ModelRecord { temperature: Some(0.7), ..ModelRecord::bare("openai", "gpt-4.1") };
    let sent = |temperature| {
        let request = record.fit(Request { temperature, ..showing(vec![Part::text("hi")]) });
        openai::encode(request).body["temperature"].clone()
    };
    assert_eq!((sent(None), sent(Some(0.1))), (json!(0.7), json!(0.1)));
}

/// Models that think refuse every temperature, so that none is sent.
#[test]
fn c3_openais_models_that_think_get_no_temperature() {
    let effort = |effort| Some(Reasoning { enabled: true, effort: Some(effort), ..Reasoning::default() });
    for encode in [openai::encode, responses::encode] {
        let sent = |model: &str, reasoning| {
            let request = showing(vec![Part::text("hi")]);
            let body =
                encode(Request { model: model.into(), temperature: Some(0.7), reasoning, ..request }).body;
            body.get("temperature").is_some()
        };
        assert!(!sent("gpt-5", None) && !sent("o3-mini", effort(ReasoningEffort::Low)));
        assert!(sent("gpt-5.1", effort(ReasoningEffort::None)), "it does not think then");
        assert!(sent("gpt-4.1", None) && sent("gpt-5-chat-latest", None) && sent("llama3", None));
    }
}

/// Whatever other libraries call a vendor, its options and tools are found.
#[test]
fn c22_options_and_tools_are_found_by_every_name_of_their_vendor() {
    let names = [
        ("openai-chat", "azure-openai"),
        ("openai-chat", "openai.chat"),
        ("openai-responses", "openai.responses"),
        ("anthropic", "anthropic.messages"),
        ("gemini", "google.generative-ai"),
        ("bedrock", "amazon-bedrock"),
    ];
    for (vendor, name) in names {
        let vendor = VENDORS.iter().find(|v| v.name == vendor).unwrap();
        let map = |value: serde_json::Value| value.as_object().cloned().unwrap();
        let request = Request {
            model: vendor.models[0].into(),
            provider_options: Some(map(
                json!({ name: { "canary_option": 1 }, "nobody": { "canary_foreign": 1 } }),
            )),
            provider_tools: map(
                json!({ name: [{ "type": "canary_tool" }], "nobody": [{ "type": "canary_foreign" }] }),
            ),
            ..showing(vec![Part::text("hi")])
        };
        let body = (vendor.encode)(request).body.to_string();
        assert!(body.contains("canary_option") && body.contains("canary_tool"), "{name}: {body}");
        assert!(!body.contains("canary_foreign"), "{name}: {body}");
    }
    // The plain name goes before the others.
    let both = json!({ "openai": { "user": "plain" }, "openai.chat": { "user": "other", "seed": 1 } });
    let request = Request { provider_options: both.as_object().cloned(), ..showing(vec![Part::text("hi")]) };
    let body = openai::encode(request).body;
    assert_eq!((&body["user"], &body["seed"]), (&json!("plain"), &json!(1)));
}
