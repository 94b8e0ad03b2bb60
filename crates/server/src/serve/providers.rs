//! The model providers of the configuration, the ones that need only a key in
//! the environment, and the models that people may name.

use secrecy::SecretString;
use toolyard_egress::Door;
use toolyard_runtime::{
    ModelRecord, Price, ProviderKind as Wire, ProviderSettings, Providers, Registry, direct, tck,
};

use crate::config::{Config, Mode, ModelEntry, ProviderKind};

/// Vendors that are there by their key alone: name, wire and variables.
const BY_KEY: [(&str, Wire, &[&str]); 3] = [
    ("openai", Wire::OpenAi, &["OPENAI_API_KEY"]),
    ("anthropic", Wire::Anthropic, &["ANTHROPIC_API_KEY"]),
    ("gemini", Wire::Gemini, &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"]),
];

/// Bedrock finds its keys itself; one of these sets says that they are there.
const BEDROCK: [&[&str]; 2] =
    [&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], &["AWS_BEARER_TOKEN_BEDROCK"]];

/// Models that have a name without any configuration (row C4).
const SAMPLES: [(&str, &str, &str, &str, u32); 3] = [
    ("demo", "Demo", "demo", "demo", 8192),
    ("claude", "Claude 3.5 Sonnet", "bedrock", "anthropic.claude-3-5-sonnet-20241022-v2:0", 8192),
    ("gemini", "Gemini 2.5 Flash", "gemini", "gemini-2.5-flash", 8192),
];

pub(super) fn open(config: &Config) -> Result<Registry, String> {
    let door = Door::operator().map_err(|e| e.causes())?;
    let mut providers = Providers::open(settings(config)?, &door).map_err(|e| e.to_string())?;
    providers.insert_unlisted(direct::PROVIDER, std::sync::Arc::new(direct::Direct));
    if config.mode == Mode::Development {
        providers.insert_unlisted("tck", std::sync::Arc::new(tck::Tck));
    }
    if let Some((provider, _)) = config.knowledge.embedder() {
        providers.embed(&provider).map_err(|e| format!("knowledge.embedding: {e}"))?;
    }
    Registry::new(providers, records(config)).map_err(|e| e.to_string())
}

fn settings(config: &Config) -> Result<Vec<ProviderSettings>, String> {
    let mut settings = Vec::new();
    for (name, provider) in &config.providers {
        let api_key = match &provider.api_key_env {
            None => None,
            Some(variable) => Some(read(variable).ok_or_else(|| {
                format!(
                    "providers.{name}: the environment variable {variable:?} is not set; set it, or leave api_key_env out"
                )
            })?),
        };
        settings.push(ProviderSettings {
            name: name.clone(),
            kind: wire(provider.kind),
            base_url: provider.base_url.clone(),
            api_key,
        });
    }
    let bare =
        |name: &str, kind, api_key| ProviderSettings { name: name.to_owned(), kind, base_url: None, api_key };
    for (name, kind, variables) in BY_KEY {
        let key = variables.iter().find_map(|variable| read(variable));
        if let (false, Some(key)) = (config.providers.contains_key(name), key) {
            settings.push(bare(name, kind, Some(key)));
        }
    }
    let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().any(|v| read(v).is_some());
    if !config.providers.contains_key("bedrock")
        && has_region
        && BEDROCK.iter().any(|all| all.iter().all(|v| read(v).is_some()))
    {
        settings.push(bare("bedrock", Wire::Bedrock, None));
    }
    if !config.providers.contains_key("demo") {
        settings.push(bare("demo", Wire::Demo, None));
    }
    Ok(settings)
}

fn wire(kind: ProviderKind) -> Wire {
    match kind {
        ProviderKind::Demo => Wire::Demo,
        ProviderKind::OpenAi => Wire::OpenAi,
        ProviderKind::OpenAiResponses => Wire::OpenAiResponses,
        ProviderKind::Anthropic => Wire::Anthropic,
        ProviderKind::Gemini => Wire::Gemini,
        ProviderKind::Bedrock => Wire::Bedrock,
    }
}

fn records(config: &Config) -> Vec<ModelRecord> {
    let own = config.models.iter().map(|(id, entry)| record(id, entry));
    let samples = SAMPLES.into_iter().filter(|(id, ..)| !config.models.contains_key(*id));
    let samples = samples.map(|(id, name, provider, model, most)| ModelRecord {
        id: id.to_owned(),
        name: name.to_owned(),
        max_output_tokens: Some(most),
        reasoning: false,
        ..ModelRecord::bare(provider, model)
    });
    own.chain(samples).collect()
}

fn record(id: &str, entry: &ModelEntry) -> ModelRecord {
    ModelRecord {
        id: id.to_owned(),
        name: entry.name.clone().unwrap_or_else(|| id.to_owned()),
        description: entry.description.clone().unwrap_or_default(),
        provider: entry.provider.clone(),
        model: entry.model.clone(),
        max_output_tokens: entry.max_tokens,
        context_tokens: entry.context_tokens,
        tools: entry.tools,
        reasoning: entry.reasoning,
        price: entry.price.map(|price| Price {
            input: price.input,
            output: price.output,
            cached: price.cached,
            cache_write: price.cache_write,
        }),
        fallback: entry.fallback.clone(),
    }
}

fn read(variable: &str) -> Option<SecretString> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).map(SecretString::from)
}
