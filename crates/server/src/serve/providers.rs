//! The model providers of the configuration, and the ones that need none.

use secrecy::SecretString;
use toolyard_egress::Door;
use toolyard_runtime::{ProviderKind as Wire, ProviderSettings, Providers};

use crate::config::{Config, ProviderKind};

/// Vendors that are there by their key alone: name and variable.
const BY_KEY: [(&str, Wire, &str); 1] = [("openai", Wire::OpenAi, "OPENAI_API_KEY")];

pub(super) fn open(config: &Config) -> Result<Providers, String> {
    let door = Door::operator().map_err(|e| e.causes())?;
    let mut settings = Vec::new();
    for (name, provider) in &config.providers {
        let api_key = match &provider.api_key_env {
            None => None,
            Some(variable) => Some(read(variable).ok_or_else(|| {
                format!("providers.{name}: the environment variable {variable} is not set")
            })?),
        };
        let kind = match provider.kind {
            ProviderKind::Demo => Wire::Demo,
            ProviderKind::OpenAi => Wire::OpenAi,
        };
        settings.push(ProviderSettings {
            name: name.clone(),
            kind,
            base_url: provider.base_url.clone(),
            api_key,
        });
    }
    for (name, kind, variable) in BY_KEY {
        if let (false, Some(key)) = (config.providers.contains_key(name), read(variable)) {
            settings.push(ProviderSettings {
                name: name.to_owned(),
                kind,
                base_url: None,
                api_key: Some(key),
            });
        }
    }
    if !config.providers.contains_key("demo") {
        settings.push(ProviderSettings {
            name: "demo".to_owned(),
            kind: Wire::Demo,
            base_url: None,
            api_key: None,
        });
    }
    Providers::open(settings, &door).map_err(|e| e.to_string())
}

fn read(variable: &str) -> Option<SecretString> {
    std::env::var(variable).ok().filter(|key| !key.is_empty()).map(SecretString::from)
}
