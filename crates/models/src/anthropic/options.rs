//! `provider_options.anthropic`: the few words that are ours, and the rest,
//! which goes into the request as it is.

use serde_json::{Map, Value, json};

use super::WIRE;
use crate::request::Request;

/// The search that runs at the vendor, in the version that most models take.
const WEB_SEARCH: &str = "web_search_20250305";

pub(super) struct Options {
    /// The mark of a cached prefix; off if missing.
    pub(super) cache: Option<Value>,
    /// The vendor's own search, as a tool.
    pub(super) web_search: Option<Value>,
    /// Replaces fields of the request; `null` removes one.
    pub(super) rest: Map<String, Value>,
}

impl Options {
    pub(super) fn take(request: &mut Request) -> Self {
        let mut rest = request.take_options(WIRE);
        rest.remove("betas");
        let cache = match rest.remove("cache") {
            Some(Value::Bool(false)) => None,
            Some(Value::String(ttl)) => Some(json!({ "type": "ephemeral", "ttl": ttl })),
            _ => Some(json!({ "type": "ephemeral" })),
        };
        let web_search = match rest.remove("web_search") {
            Some(Value::Bool(true)) => Some(search(Map::new())),
            Some(Value::Object(settings)) => Some(search(settings)),
            _ => None,
        };
        Self { cache, web_search, rest }
    }
}

fn search(mut settings: Map<String, Value>) -> Value {
    settings.entry("type").or_insert_with(|| json!(WEB_SEARCH));
    settings.insert("name".to_owned(), json!("web_search"));
    Value::Object(settings)
}

/// Features that the vendor offers on trial, as the text of their header.
pub(super) fn betas(request: &Request) -> Option<String> {
    let list = request.option(WIRE, "betas")?.as_array()?;
    let names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    (!names.is_empty()).then(|| names.join(","))
}
