//! The models that people name: what each can do, what it costs, and who takes
//! over when it is out of order.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_protocol::agent::ModelApi;
use toolyard_protocol::message::Part;
use toolyard_protocol::run::Usage;

use crate::error::ModelError;
use crate::model::Model;
use crate::provider_id::normalise;
use crate::providers::Providers;
use crate::request::{ChatTurn, Request};

/// One model as the operator describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRecord {
    /// What people call it.
    pub id: String,
    pub name: String,
    pub description: String,
    /// A configured provider.
    pub provider: String,
    /// The vendor's name for it.
    pub model: String,
    pub max_output_tokens: Option<u32>,
    /// Tokens that it reads at most.
    pub context_tokens: Option<u32>,
    pub tools: bool,
    pub reasoning: bool,
    /// Its vendor holds it to the form of an answer. Missing means what is
    /// known of the vendor and of the model's name.
    pub structured_output: Option<bool>,
    /// The media types of files that it reads, as `image/*`; empty means text
    /// alone. Missing means all that its wire can carry.
    pub files: Option<Vec<String>>,
    /// What it is asked with if nobody says otherwise.
    pub temperature: Option<f64>,
    pub price: Option<Price>,
    /// Ids, or `provider/model`.
    pub fallback: Vec<String>,
}

impl ModelRecord {
    /// A model that nobody described.
    pub fn bare(provider: &str, model: &str) -> Self {
        Self {
            id: format!("{provider}/{model}"),
            name: model.to_owned(),
            description: String::new(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            max_output_tokens: None,
            context_tokens: None,
            tools: true,
            reasoning: true,
            structured_output: None,
            files: None,
            temperature: None,
            price: None,
            fallback: Vec::new(),
        }
    }

    /// The request in the words and within the means of this model.
    pub fn fit(&self, mut request: Request) -> Request {
        request.model.clone_from(&self.model);
        request.temperature = request.temperature.or(self.temperature);
        request.max_output_tokens = match (request.max_output_tokens, self.max_output_tokens) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        if !self.tools {
            request.tools.clear();
            request.provider_tools.clear();
        }
        if !self.reasoning {
            request.reasoning = None;
        }
        request.structured_output = self.structured_output;
        if let Some(files) = &self.files {
            read_only(&mut request.turns, files);
        }
        request
    }
}

/// Files of other types become a line that names them: the model must know
/// that something is there.
fn read_only(turns: &mut [ChatTurn], readable: &[String]) {
    for turn in turns {
        let ChatTurn::User { parts, .. } = turn else { continue };
        for part in parts {
            if let Part::File { media_type, name, .. } = part
                && !readable.iter().any(|pattern| matches(pattern, media_type))
            {
                let name = name.as_deref().unwrap_or("without a name");
                *part = Part::text(format!("[file {name} ({media_type}): this model cannot read it]"));
            }
        }
    }
}

/// `image/*` stands for every image, `*/*` for everything.
fn matches(pattern: &str, media_type: &str) -> bool {
    let plain = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let pattern = pattern.trim().to_ascii_lowercase();
    match pattern.strip_suffix("/*") {
        Some("*") => true,
        Some(family) => plain.split('/').next() == Some(family),
        None => plain == pattern,
    }
}

/// Dollars for a million tokens, which is millionths of a dollar for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Input that the vendor had kept. Missing means the price of input.
    pub cached: Option<f64>,
    /// Input that the vendor keeps for later.
    pub cache_write: Option<f64>,
}

impl Price {
    /// Millionths of a dollar, rounded up: a budget is never missed by rounding.
    pub fn of(&self, usage: &Usage) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "tokens of a reply are far below 2^52")]
        let tokens = |n: u64| n as f64;
        let kept = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - kept);
        let fresh = usage.input_tokens - kept - written;
        let sum = tokens(fresh) * self.input
            + tokens(kept) * self.cached.unwrap_or(self.input)
            + tokens(written) * self.cache_write.unwrap_or(self.input)
            + tokens(usage.output_tokens) * self.output;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped, and a cast saturates"
        )]
        let cost = sum.max(0.0).ceil() as u64;
        cost
    }
}

/// A model that may answer.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub record: Arc<ModelRecord>,
    pub model: Arc<dyn Model>,
}

/// What an agent or a request names.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub provider: Option<&'a str>,
    pub name: &'a str,
    pub api: Option<ModelApi>,
    /// Instead of the record's own.
    pub fallback: &'a [String],
}

impl<'a> Wanted<'a> {
    /// By name alone: an id, or `provider/model`.
    pub fn named(name: &'a str) -> Self {
        Self { provider: None, name, api: None, fallback: &[] }
    }
}

/// `provider/model`.
fn parted(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
}

/// A registry that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRegistry {
    #[error("models.{0} is described twice")]
    Twice(String),
    #[error("models.{id}.fallback: {why}")]
    Fallback { id: String, why: String },
}

/// Id → record, over the configured providers.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    providers: Providers,
    records: BTreeMap<String, Arc<ModelRecord>>,
}

impl Registry {
    pub fn new(providers: Providers, records: Vec<ModelRecord>) -> Result<Self, BadRegistry> {
        let mut registry = Self { providers, records: BTreeMap::new() };
        for record in records {
            let id = record.id.clone();
            if registry.records.insert(id.clone(), Arc::new(record)).is_some() {
                return Err(BadRegistry::Twice(id));
            }
        }
        for record in registry.records.values() {
            for name in &record.fallback {
                let bad = |why: String| BadRegistry::Fallback { id: record.id.clone(), why };
                if *name == record.id {
                    return Err(bad("names the model itself".to_owned()));
                }
                if !registry.records.contains_key(name) && !name.contains('/') {
                    return Err(bad(format!("{name:?} is no model of this configuration")));
                }
            }
        }
        Ok(registry)
    }

    /// Only providers, no descriptions.
    pub fn bare(providers: Providers) -> Self {
        Self { providers, records: BTreeMap::new() }
    }

    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// Every described model, and whether its provider is there.
    pub fn list(&self) -> impl Iterator<Item = (&ModelRecord, bool)> {
        self.records.values().map(|record| (&**record, self.providers.get(&record.provider).is_ok()))
    }

    /// The model that is wanted, then those that take over. A fallback that
    /// is not configured is passed over: it must not stop the first choice.
    pub fn chain(&self, wanted: &Wanted<'_>) -> Result<Vec<Candidate>, ModelError> {
        let first = self.find(wanted)?;
        let names = if wanted.fallback.is_empty() { &first.record.fallback } else { wanted.fallback };
        let others: Vec<Candidate> =
            names.iter().filter_map(|name| self.find(&Wanted::named(name)).ok()).collect();
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// The provider of the first choice and its name there, if it is configured.
    pub fn first<'a>(&'a self, wanted: &Wanted<'a>) -> Option<(&'a str, &'a str)> {
        let (provider, model, _) = self.meant(wanted)?;
        self.provider(provider, wanted.api).is_ok().then_some((provider, model))
    }

    fn find(&self, wanted: &Wanted<'_>) -> Result<Candidate, ModelError> {
        let meant = self.meant(wanted).ok_or_else(|| self.unknown(wanted.name))?;
        let (provider, model, known) = meant;
        let record = known.cloned().unwrap_or_else(|| Arc::new(ModelRecord::bare(provider, model)));
        let model = self.provider(provider, wanted.api)?;
        Ok(Candidate { record, model })
    }

    /// What a name means: a provider, its model, and what is known of it.
    fn meant<'a>(&'a self, wanted: &Wanted<'a>) -> Option<(&'a str, &'a str, Option<&'a Arc<ModelRecord>>)> {
        let described = |record: &'a Arc<ModelRecord>| (&*record.provider, &*record.model, Some(record));
        let (provider, name) = match (wanted.provider, self.records.get(wanted.name)) {
            (Some(provider), _) => (provider, wanted.name),
            (None, Some(record)) => return Some(described(record)),
            (None, None) => parted(wanted.name)?,
        };
        Some(self.record(provider, name).map_or((provider, name, None), described))
    }

    fn unknown(&self, name: &str) -> ModelError {
        let known = self.records.keys().cloned().collect();
        ModelError::NoSuchModel { name: name.chars().take(64).collect(), known }
    }

    /// What is known of a provider's model; `name` may be an id of ours. Two
    /// descriptions of one model: neither counts, unless its id is named.
    fn record(&self, provider: &str, name: &str) -> Option<&Arc<ModelRecord>> {
        let vendor = normalise(provider);
        let here = |record: &&Arc<ModelRecord>| record.provider == provider || record.provider == vendor;
        if let Some(record) = self.records.get(name).filter(here) {
            return Some(record);
        }
        let mut same = self.records.values().filter(here).filter(|record| record.model == name);
        match (same.next(), same.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// A name of a fallback list must mean something, though its provider may
    /// be away.
    pub fn knows(&self, name: &str) -> Result<(), ModelError> {
        self.meant(&Wanted::named(name)).map(drop).ok_or_else(|| self.unknown(name))
    }

    /// A provider by its name, or by what other libraries call it.
    fn provider(&self, name: &str, api: Option<ModelApi>) -> Result<Arc<dyn Model>, ModelError> {
        let wire = match api {
            Some(ModelApi::Responses) => Some("responses"),
            Some(ModelApi::Chat) => Some("chat"),
            Some(ModelApi::Default | ModelApi::Completion) | None => None,
        };
        if let Some(wire) = wire
            && let Some(model) = self.providers.wire(name, wire)
        {
            return Ok(model);
        }
        self.providers.get(name)
    }
}
