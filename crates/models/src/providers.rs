//! The configured providers by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;
use serde::Deserialize;
use toolyard_egress::{Door, EgressError, Target};

use crate::anthropic::Anthropic;
use crate::demo::Demo;
use crate::embed::Embed;
use crate::error::ModelError;
use crate::gemini::Gemini;
use crate::images::Images;
use crate::model::Model;
use crate::openai::OpenAi;
use crate::provider_id::normalise;
use crate::responses::Responses;
use crate::skills::Skills;

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
    /// Converse. Keys and region come from the environment.
    Bedrock,
}

impl ProviderKind {
    /// The vendor, whatever the operator calls the provider.
    pub const fn vendor(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::OpenAi | Self::OpenAiResponses => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }
}

/// Who paints when nobody says who.
const PAINTERS: [&str; 3] = ["openai", "gemini", "bedrock"];

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
    #[error("providers.{name}: {why}")]
    Missing { name: String, why: String },
}

/// Name → model, and what else the same vendor can do.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    by_name: BTreeMap<String, Arc<dyn Model>>,
    /// The other wires of a vendor that has several, as `openai.responses`.
    by_wire: BTreeMap<String, Arc<dyn Model>>,
    skills: BTreeMap<String, Skills>,
    kinds: BTreeMap<String, ProviderKind>,
}

impl Providers {
    pub fn open(settings: Vec<ProviderSettings>, door: &Door) -> Result<Self, BadProvider> {
        let mut providers = Self::default();
        for ProviderSettings { name, kind, base_url, api_key } in settings {
            if providers.by_name.contains_key(&name) {
                return Err(BadProvider::Twice(name));
            }
            let skills = Skills::open(&name, kind, base_url.as_deref(), api_key.as_ref(), door)?;
            providers.skills.insert(name.clone(), skills);
            providers.kinds.insert(name.clone(), kind);
            let at = |vendor: &str| {
                Target::parse(base_url.as_deref().unwrap_or(vendor))
                    .map_err(|cause| BadProvider::Address { name: name.clone(), cause })
            };
            let door = door.clone();
            if let ProviderKind::OpenAi | ProviderKind::OpenAiResponses = kind {
                let chat = OpenAi::new(&name, door.clone(), &at(OpenAi::BASE_URL)?, api_key.clone());
                let responses =
                    Responses::new(&name, door.clone(), &at(Responses::BASE_URL)?, api_key.clone());
                providers.by_wire.insert(format!("{name}.chat"), Arc::new(chat));
                providers.by_wire.insert(format!("{name}.responses"), Arc::new(responses));
            }
            #[rustfmt::skip]
            let model: Arc<dyn Model> = match kind {
                ProviderKind::Demo => Arc::new(Demo::new(&name)),
                ProviderKind::OpenAi => Arc::new(OpenAi::new(&name, door, &at(OpenAi::BASE_URL)?, api_key)),
                ProviderKind::OpenAiResponses => Arc::new(Responses::new(&name, door, &at(Responses::BASE_URL)?, api_key)),
                ProviderKind::Anthropic => Arc::new(Anthropic::new(&name, door, &at(Anthropic::BASE_URL)?, api_key)),
                ProviderKind::Gemini => Arc::new(Gemini::new(&name, door, &at(Gemini::BASE_URL)?, api_key)),
                ProviderKind::Bedrock => bedrock(&name, base_url, api_key, door)?,
            };
            providers.insert(&name, model);
        }
        Ok(providers)
    }

    /// Adds or replaces one.
    pub fn insert(&mut self, name: &str, model: Arc<dyn Model>) {
        self.by_name.insert(name.to_owned(), model);
    }

    /// Adds one that no list names.
    pub fn insert_unlisted(&mut self, name: &str, model: Arc<dyn Model>) {
        self.by_wire.insert(name.to_owned(), model);
    }

    /// A provider by its name, by one of its wires, or by what other libraries
    /// call it.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let exact = self.by_name.get(name).or_else(|| self.by_wire.get(name));
        exact.or_else(|| self.by_name.get(&*normalise(name))).cloned().ok_or_else(|| {
            ModelError::UnknownProvider {
                name: name.chars().take(64).collect(),
                known: self.by_name.keys().cloned().collect(),
            }
        })
    }

    /// The embeddings of a provider.
    pub fn embed(&self, name: &str) -> Result<Arc<dyn Embed>, ModelError> {
        self.get(name)?;
        let embed = self.skills_of(name).and_then(|skills| skills.embed.clone());
        embed.ok_or_else(|| self.unskilled(name, "embeddings", |skills| skills.embed.is_some()))
    }

    /// One of the wires of a provider.
    pub(crate) fn wire(&self, name: &str, wire: &str) -> Option<Arc<dyn Model>> {
        let plain = name.split('.').next().unwrap_or(name);
        let names = [name, plain, &normalise(name)].map(|name| format!("{name}.{wire}"));
        names.iter().find_map(|name| self.by_wire.get(name)).cloned()
    }

    fn skills_of(&self, name: &str) -> Option<&Skills> {
        let plain = name.split('.').next().unwrap_or(name);
        let own = self.skills.get(name).or_else(|| self.skills.get(plain));
        own.or_else(|| self.skills.get(&*normalise(name)))
    }

    /// The provider whose pictures are meant when nobody names one: a vendor
    /// before a server of one's own, and the demo only when there is no other.
    pub fn painter(&self) -> Option<&str> {
        let paints = |name: &&str| self.skills.get(*name).is_some_and(|skills| skills.images.is_some());
        let others = self.by_name.keys().map(String::as_str).filter(|name| *name != "demo");
        PAINTERS.into_iter().chain(others).chain(["demo"]).find(paints)
    }

    /// The pictures of a provider.
    pub fn images(&self, name: &str) -> Result<Arc<dyn Images>, ModelError> {
        self.get(name)?;
        let images = self.skills_of(name).and_then(|skills| skills.images.clone());
        images.ok_or_else(|| self.unskilled(name, "images", |skills| skills.images.is_some()))
    }

    fn unskilled(&self, name: &str, what: &'static str, has: impl Fn(&Skills) -> bool) -> ModelError {
        let able = self.skills.iter().filter(|(_, skills)| has(skills)).map(|(name, _)| name.clone());
        ModelError::NoSkill { name: name.chars().take(64).collect(), what, able: able.collect() }
    }

    /// The vendor behind a provider or one of its wires; its own name if it is
    /// none of those that are configured.
    pub fn vendor<'a>(&'a self, name: &'a str) -> &'a str {
        let plain = name.split('.').next().unwrap_or(name);
        self.kinds.get(name).or_else(|| self.kinds.get(plain)).map_or(plain, |kind| kind.vendor())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

#[cfg(feature = "bedrock")]
fn bedrock(
    name: &str,
    base_url: Option<String>,
    api_key: Option<SecretString>,
    door: Door,
) -> Result<Arc<dyn Model>, BadProvider> {
    let (target, place) = bedrock_place(name, base_url, api_key)?;
    Ok(Arc::new(crate::bedrock::Bedrock::new(name, door, &target, &place.region, place.access)))
}

#[cfg(feature = "bedrock")]
pub(crate) fn bedrock_place(
    name: &str,
    base_url: Option<String>,
    api_key: Option<SecretString>,
) -> Result<(Target, crate::bedrock::Place), BadProvider> {
    let place = crate::bedrock::Place::find(|variable| std::env::var(variable).ok(), base_url, api_key)
        .map_err(|why| BadProvider::Missing { name: name.to_owned(), why: why.to_string() })?;
    let target = Target::parse(&place.address)
        .map_err(|cause| BadProvider::Address { name: name.to_owned(), cause })?;
    Ok((target, place))
}

#[cfg(not(feature = "bedrock"))]
fn bedrock(
    name: &str,
    _: Option<String>,
    _: Option<SecretString>,
    _: Door,
) -> Result<Arc<dyn Model>, BadProvider> {
    let why = "this build has no bedrock".to_owned();
    Err(BadProvider::Missing { name: name.to_owned(), why })
}
