//! Headers of a request. A secret one has a `Debug` that prints nothing.

use std::borrow::Cow;

use http::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::error::EgressError;

/// Names that the door writes itself, or that belong to one connection. Who
/// sets them could smuggle a second request, or talk to another host.
const OURS: [&str; 15] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
    "accept-encoding",
    "cookie2",
];

/// One header. Its name is written in lower case.
#[derive(Debug, Clone)]
pub struct Header {
    name: Cow<'static, str>,
    value: Text,
}

#[derive(Debug, Clone)]
enum Text {
    Plain(Cow<'static, str>),
    Secret(SecretString),
}

impl Header {
    pub fn plain(name: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), value: Text::Plain(value.into()) }
    }

    pub fn secret(name: impl Into<Cow<'static, str>>, value: SecretString) -> Self {
        Self { name: name.into(), value: Text::Secret(value) }
    }

    /// `authorization: Bearer …`
    pub fn bearer(key: &SecretString) -> Self {
        Self::secret("authorization", format!("Bearer {}", key.expose_secret()).into())
    }

    /// A header whose name somebody chose. Its value may hold a secret.
    pub fn chosen(name: &str, value: SecretString) -> Result<Self, EgressError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| EgressError::Refused("a header's name has characters that it cannot carry"))?;
        if OURS.contains(&name.as_str()) {
            return Err(EgressError::Refused("a header of this name cannot be set"));
        }
        let header = Self { name: Cow::Owned(name.as_str().to_owned()), value: Text::Secret(value) };
        header.to_value()?;
        Ok(header)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text as it goes out, for whoever signs requests.
    pub fn exposed(&self) -> &str {
        match &self.value {
            Text::Plain(text) => text,
            Text::Secret(text) => text.expose_secret(),
        }
    }

    pub(crate) fn to_value(&self) -> Result<HeaderValue, EgressError> {
        let mut value = HeaderValue::from_str(self.exposed()).map_err(|_| match &self.value {
            Text::Plain(_) => EgressError::Refused("a header has characters that it cannot carry"),
            Text::Secret(_) => {
                EgressError::Refused("a key or header has characters that a header cannot carry")
            }
        })?;
        value.set_sensitive(matches!(self.value, Text::Secret(_)));
        Ok(value)
    }
}
