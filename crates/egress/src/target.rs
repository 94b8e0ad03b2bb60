//! An address that the door may open to. Parsed once, then trusted.

use std::fmt;
use std::sync::Arc;

use http::Uri;
use url::Url;

use crate::error::EgressError;

/// A checked address, cheap to clone. Its `Debug` shows the origin only, because
/// operators put keys into paths and queries.
#[derive(Clone, PartialEq, Eq)]
pub struct Target(Arc<Address>);

#[derive(PartialEq, Eq)]
struct Address {
    url: Url,
    /// The same as the HTTP client reads it, or none if it cannot.
    uri: Option<Uri>,
}

impl Target {
    /// Takes an address from the operator's settings: any host, but only
    /// http and https, and no credentials inside.
    pub fn parse(text: &str) -> Result<Self, EgressError> {
        let url = Url::parse(text.trim()).map_err(|_| EgressError::Refused("the address is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressError::Refused("the address must start with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::Refused("the address must not contain a user name or password"));
        }
        let target = Self::of(url);
        target.uri()?;
        Ok(target)
    }

    pub(crate) fn of(url: Url) -> Self {
        let uri = url.as_str().parse().ok();
        Self(Arc::new(Address { url, uri }))
    }

    /// The address of something below this one. The query stays.
    pub fn below(&self, path: &str) -> Self {
        let mut url = self.0.url.clone();
        let base = url.path().trim_end_matches('/');
        let joined = format!("{base}/{}", path.trim_start_matches('/'));
        url.set_path(&joined);
        Self::of(url)
    }

    /// The same address with one more query parameter.
    pub fn asking(&self, name: &str, value: &str) -> Self {
        let mut url = self.0.url.clone();
        url.query_pairs_mut().append_pair(name, value);
        Self::of(url)
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.0.url.origin().ascii_serialization()
    }

    /// Does it name this machine by its own address?
    pub fn is_loopback(&self) -> bool {
        match self.0.url.host() {
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        }
    }

    /// All of it, for whoever signs requests. It may hold keys.
    pub fn exposed(&self) -> &str {
        self.0.url.as_str()
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0.url
    }

    /// Read when the target was made, so that a request does not read it again.
    pub(crate) fn uri(&self) -> Result<Uri, EgressError> {
        self.0.uri.clone().ok_or(EgressError::Refused(
            "the address is too long, or its host has characters that no request can carry",
        ))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}/…)", self.origin())
    }
}
