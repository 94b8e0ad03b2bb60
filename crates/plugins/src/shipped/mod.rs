//! The plugins that come with the gateway. An agent names them, with options:
//! `"plugins": ["citations", {"id": "pii-filter", "options": {…}}]`.

pub mod citations;
mod injection;
mod logging;
mod metrics;
mod pii;
mod rate;
mod traces;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::hooks::Hook;
use citations::rag;

pub use injection::{Finding, InjectionGuard, inspect, inspect_result};
pub use logging::Logging;
pub use metrics::Metrics;
pub use pii::{Options as PiiOptions, PiiFilter};
pub use rate::RateLimit;
pub use traces::{ID as TRACES, Traces, course, cut_short, passed_on};

/// Every plugin that ships, by id.
pub const SHIPPED: [&str; 8] =
    [citations::ID, rag::ID, injection::ID, logging::ID, metrics::ID, pii::ID, rate::ID, traces::ID];

/// Makes a shipped plugin. None if nobody has that id; the text says what is
/// wrong with the options.
pub fn make(id: &str, options: &Value) -> Option<Result<Arc<dyn Hook>, String>> {
    Some(match id {
        citations::ID => read(options).map(|o| Arc::new(citations::Citations::new(o)) as Arc<dyn Hook>),
        rag::ID => read(options).map(|o| Arc::new(rag::RagCitations::new(o)) as Arc<dyn Hook>),
        injection::ID => read(options).map(|o| Arc::new(InjectionGuard::new(o)) as Arc<dyn Hook>),
        logging::ID => read(options).map(|o| Arc::new(Logging::new(o)) as Arc<dyn Hook>),
        metrics::ID => read(options).map(|o| Arc::new(Metrics::new(o)) as Arc<dyn Hook>),
        pii::ID => read(options).and_then(PiiFilter::new).map(|hook| Arc::new(hook) as Arc<dyn Hook>),
        rate::ID => read(options).map(|o| Arc::new(RateLimit::new(o)) as Arc<dyn Hook>),
        traces::ID => read(options).map(|o| Arc::new(Traces::new(o)) as Arc<dyn Hook>),
        _ => return None,
    })
}

fn read<T: DeserializeOwned + Default>(options: &Value) -> Result<T, String> {
    if options.is_null() {
        return Ok(T::default());
    }
    serde_json::from_value(options.clone()).map_err(|e| e.to_string())
}
