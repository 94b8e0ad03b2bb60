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

/// A model that has a name without any configuration (row C4).
struct Sample {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    provider: &'static str,
    model: &'static str,
    max_tokens: u32,
    context_tokens: u32,
    reasoning: bool,
    /// Row C3 for the vendors' models.
    temperature: Option<f64>,
    /// All that its provider can carry, if missing.
    files: Option<&'static [&'static str]>,
}

const SAMPLES: [Sample; 3] = [
    Sample {
        id: "demo",
        name: "Demo",
        description: "Needs no vendor: it calls the tools that it is told to call",
        provider: "demo",
        model: "demo",
        max_tokens: 8192,
        context_tokens: 1_000_000,
        reasoning: false,
        temperature: None,
        files: None,
    },
    Sample {
        id: "claude",
        name: "Claude 3.5 Sonnet",
        description: "Anthropic's model of October 2024 on Amazon Bedrock; reads images and documents",
        provider: "bedrock",
        model: "anthropic.claude-3-5-sonnet-20241022-v2:0",
        max_tokens: 8192,
        context_tokens: 200_000,
        reasoning: false,
        temperature: Some(0.7),
        files: Some(&["image/*", "application/*", "text/*"]),
    },
    Sample {
        id: "gemini",
        name: "Gemini 2.5 Flash",
        description: "Google's quick model with a long memory; reads images, documents, sound and films",
        provider: "gemini",
        model: "gemini-2.5-flash",
        max_tokens: 8192,
        context_tokens: 1_048_576,
        reasoning: true,
        temperature: Some(0.7),
        files: Some(&["image/*", "audio/*", "video/*", "text/*", "application/pdf"]),
    },
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
    let any = |variables: &[&str]| variables.iter().any(|variable| read(variable).is_some());
    // A key of this one service needs no region where there is an address.
    let has_region = any(&["AWS_REGION", "AWS_DEFAULT_REGION"])
        || (any(&["AWS_BEARER_TOKEN_BEDROCK"])
            && any(&["AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"]));
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
    let samples = SAMPLES.into_iter().filter(|sample| !config.models.contains_key(sample.id));
    let samples = samples.map(|sample| ModelRecord {
        id: sample.id.to_owned(),
        name: sample.name.to_owned(),
        description: sample.description.to_owned(),
        max_output_tokens: Some(sample.max_tokens),
        context_tokens: Some(sample.context_tokens),
        reasoning: sample.reasoning,
        temperature: sample.temperature,
        files: sample.files.map(|files| files.iter().map(|&file| file.to_owned()).collect()),
        ..ModelRecord::bare(sample.provider, sample.model)
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
        structured_output: entry.structured_output,
        files: entry.files.clone(),
        temperature: entry.temperature,
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
