//! The configured providers by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;
use serde::Deserialize;
use toolyard_egress::{Door, EgressError, Target};

use crate::anthropic::Anthropic;
use crate::demo::Demo;
use crate::error::ModelError;
use crate::gemini::Gemini;
use crate::model::Model;
use crate::openai::OpenAi;
use crate::responses::Responses;

/// Which wire a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// Needs no vendor.
    Demo,
    /// Chat completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
}

/// One provider as the operator wrote it.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    pub name: String,
    pub kind: ProviderKind,
    /// Missing means the vendor's own.
    pub base_url: Option<String>,
    /// Local servers need none.
    pub api_key: Option<SecretString>,
}

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum BadProvider {
    #[error("providers.{name}: base_url: {cause}")]
    Address { name: String, cause: EgressError },
    #[error("providers.{0} is configured twice")]
    Twice(String),
}

/// Name → model.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    by_name: BTreeMap<String, Arc<dyn Model>>,
}

impl Providers {
    pub fn open(settings: Vec<ProviderSettings>, door: &Door) -> Result<Self, BadProvider> {
        let mut providers = Self::default();
        for ProviderSettings { name, kind, base_url, api_key } in settings {
            if providers.by_name.contains_key(&name) {
                return Err(BadProvider::Twice(name));
            }
            let at = |vendor: &str| {
                Target::parse(base_url.as_deref().unwrap_or(vendor))
                    .map_err(|cause| BadProvider::Address { name: name.clone(), cause })
            };
            let door = door.clone();
            #[rustfmt::skip]
            let model: Arc<dyn Model> = match kind {
                ProviderKind::Demo => Arc::new(Demo::new(&name)),
                ProviderKind::OpenAi => Arc::new(OpenAi::new(&name, door, &at(OpenAi::BASE_URL)?, api_key)),
                ProviderKind::OpenAiResponses => Arc::new(Responses::new(&name, door, &at(Responses::BASE_URL)?, api_key)),
                ProviderKind::Anthropic => Arc::new(Anthropic::new(&name, door, &at(Anthropic::BASE_URL)?, api_key)),
                ProviderKind::Gemini => Arc::new(Gemini::new(&name, door, &at(Gemini::BASE_URL)?, api_key)),
            };
            providers.insert(&name, model);
        }
        Ok(providers)
    }

    /// Adds or replaces one.
    pub fn insert(&mut self, name: &str, model: Arc<dyn Model>) {
        self.by_name.insert(name.to_owned(), model);
    }

    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.by_name.get(name).cloned().ok_or_else(|| ModelError::UnknownProvider {
            name: name.chars().take(64).collect(),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}
