//! A setting that is never shown: not by `Debug`, not by `config print`.

use std::borrow::Cow;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key, a password, or a URL that may hold one.
#[derive(Clone, Default)]
pub(crate) struct Hidden(SecretString);

impl Hidden {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }
    /// The secret itself. Look at who asks.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(if self.is_empty() { "" } else { "(hidden)" })
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(Self::new)
    }
}

impl JsonSchema for Hidden {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Hidden".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "writeOnly": true})
    }
}
