//! Who we are for the vendor, and where it listens.

use std::fmt;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use secrecy::{ExposeSecret, SecretString};
use toolyard_egress::Header;

use crate::error::{Detail, ModelError};
use crate::wire::{Attempt, Sign};

/// The name that signatures are made for.
const SERVICE: &str = "bedrock";

/// A way to prove who we are.
#[derive(Debug, Clone)]
pub enum Access {
    /// An API key of this one service.
    Bearer(SecretString),
    /// Keys of the account; each request is signed.
    Keys { id: String, secret: SecretString, session: Option<SecretString> },
}

/// Where a provider is and who we are there.
#[derive(Debug, Clone)]
pub struct Place {
    /// Empty if nobody needs it.
    pub region: String,
    /// The address above `/model`.
    pub address: String,
    pub access: Access,
}

/// What is missing in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    #[error("AWS_REGION is not set")]
    Region,
    #[error("neither AWS_BEARER_TOKEN_BEDROCK nor AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set")]
    Access,
}

impl Place {
    /// Reads the variables that the vendor's own tools read. `address` and
    /// `key` (a bearer key) are the operator's settings and go before them.
    pub fn find(
        read: impl Fn(&str) -> Option<String>,
        address: Option<String>,
        key: Option<SecretString>,
    ) -> Result<Self, NoPlace> {
        let read = |name: &str| read(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let bearer = key.or_else(|| read("AWS_BEARER_TOKEN_BEDROCK").map(SecretString::from));
        let access = match (bearer, read("AWS_ACCESS_KEY_ID"), read("AWS_SECRET_ACCESS_KEY")) {
            (Some(key), _, _) => Access::Bearer(key),
            (None, Some(id), Some(secret)) => {
                let session = read("AWS_SESSION_TOKEN").map(SecretString::from);
                Access::Keys { id, secret: secret.into(), session }
            }
            (None, _, _) => return Err(NoPlace::Access),
        };
        let region = read("AWS_REGION").or_else(|| read("AWS_DEFAULT_REGION"));
        let address =
            address.or_else(|| read("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")).or_else(|| read("AWS_ENDPOINT_URL"));
        match (address, region, &access) {
            (Some(address), Some(region), _) => Ok(Self { region, address, access }),
            // Only signatures and the usual address name a region.
            (Some(address), None, Access::Bearer(_)) => Ok(Self { region: String::new(), address, access }),
            (None, Some(region), _) => {
                let address = format!("https://bedrock-runtime.{region}.amazonaws.com");
                Ok(Self { region, address, access })
            }
            (_, None, _) => Err(NoPlace::Region),
        }
    }
}

/// Signs with the keys of an account.
pub struct Signer {
    region: String,
    credentials: Credentials,
    now: fn() -> SystemTime,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("region", &self.region).finish_non_exhaustive()
    }
}

impl Signer {
    pub fn new(region: &str, id: &str, secret: &SecretString, session: Option<&SecretString>) -> Self {
        let session = session.map(|token| token.expose_secret().to_owned());
        let credentials = Credentials::new(id, secret.expose_secret(), session, None, "settings");
        Self { region: region.to_owned(), credentials, now: wall_clock }
    }

    /// Signs as if it were another time.
    pub fn at(mut self, now: fn() -> SystemTime) -> Self {
        self.now = now;
        self
    }
}

#[expect(clippy::disallowed_methods, reason = "a signature carries the time of its attempt, and no more")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

impl Sign for Signer {
    fn sign(&self, attempt: &Attempt<'_>) -> Result<Vec<Header>, ModelError> {
        let refuse = |why: String| ModelError::Unreadable { detail: Detail::new(format!("signing: {why}")) };
        let identity = self.credentials.clone().into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time((self.now)())
            .settings(SigningSettings::default())
            .build()
            .map_err(|why| refuse(why.to_string()))?
            .into();
        let headers = attempt.headers.iter().map(|header| (header.name(), header.exposed()));
        let body = SignableBody::Bytes(attempt.body);
        let request = SignableRequest::new(attempt.method, attempt.url, headers, body)
            .map_err(|why| refuse(why.to_string()))?;
        let signed = sign(request, &params).map_err(|why| refuse(why.to_string()))?;
        let (added, _) = signed.into_parts().0.into_parts();
        Ok(added.iter().map(|h| Header::secret(h.name(), h.value().to_owned().into())).collect())
    }
}
