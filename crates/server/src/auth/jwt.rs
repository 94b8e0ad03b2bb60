//! Checks a user's token (row X9): HS256 and nothing else, with one error text
//! for whatever is wrong with it.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolyard_protocol::{TenantId, limits};

use crate::config::Config;

/// Clocks differ by this much.
const LEEWAY_SECONDS: u64 = 5;
/// A token is a header line, not a document.
const TOKEN_BYTES: usize = 8 << 10;
/// The end of the year 9999: no honest token lives longer.
const LATEST: u64 = 253_402_300_799;
/// The claim that names a tenant when the operator chose none.
const TENANT_CLAIM: &str = "tenant";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadToken {
    /// Which check failed is nobody's business.
    #[error("Invalid or expired JWT")]
    Invalid,
    #[error("JWT missing claim: {0}")]
    MissingClaim(String),
}

/// Whom a token speaks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) subject: String,
    pub(crate) name: Option<String>,
}

pub(crate) struct JwtCheck {
    key: DecodingKey,
    validation: Validation,
    entity_claim: String,
    tenant_claim: Option<String>,
}

impl fmt::Debug for JwtCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JwtCheck(HS256)")
    }
}

impl JwtCheck {
    pub(crate) fn new(config: &Config, secret: &str) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.validate_aud = config.jwt.audience.is_some();
        // Setting an audience alone lets a token pass that has none.
        let mut required = vec!["exp"];
        if let Some(issuer) = &config.jwt.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        if let Some(audience) = &config.jwt.audience {
            validation.set_audience(&[audience]);
            required.push("aud");
        }
        validation.set_required_spec_claims(&required);
        Self {
            key: DecodingKey::from_secret(secret.as_bytes()),
            validation,
            entity_claim: config.jwt.entity_claim.clone(),
            tenant_claim: config.jwt.tenant_claim.clone(),
        }
    }

    /// The user, if the token is genuine, in time and of this tenant.
    pub(crate) fn check(&self, token: &str, tenant: &TenantId) -> Result<User, BadToken> {
        if token.len() > TOKEN_BYTES {
            return Err(BadToken::Invalid);
        }
        check_head(token)?;
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.key, &self.validation);
        let Claims(claims) = decoded.map_err(|_| BadToken::Invalid)?.claims;
        check_times(&claims)?;
        self.check_tenant(&claims, tenant)?;
        let subject = match claims.get(&self.entity_claim) {
            None | Some(Value::Null) => return Err(BadToken::MissingClaim(self.entity_claim.clone())),
            Some(Value::String(text)) => text,
            Some(_) => return Err(BadToken::Invalid),
        };
        let length = subject.chars().count();
        if length == 0 || length > limits::LABEL_CHARS || subject.chars().any(char::is_control) {
            return Err(BadToken::Invalid);
        }
        let name = claims.get("name").and_then(Value::as_str);
        let name = name.map(|n| n.chars().filter(|c| !c.is_control()).take(limits::LABEL_CHARS).collect());
        Ok(User { subject: subject.clone(), name })
    }

    /// All tenants share the secret, so a token says which one it is for. Only
    /// the tenant `default` takes tokens that say nothing.
    fn check_tenant(&self, claims: &BTreeMap<String, Value>, tenant: &TenantId) -> Result<(), BadToken> {
        let name = self.tenant_claim.as_deref().unwrap_or(TENANT_CLAIM);
        let fine = match claims.get(name) {
            Some(Value::String(text)) => text == tenant.as_str(),
            Some(_) => false,
            None => self.tenant_claim.is_none() && *tenant == TenantId::default_tenant(),
        };
        if fine { Ok(()) } else { Err(BadToken::Invalid) }
    }
}

/// The head is plain: HS256, and no field that wants to be understood.
fn check_head(token: &str) -> Result<(), BadToken> {
    let head = token.split('.').next().unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(head).map_err(|_| BadToken::Invalid)?;
    let Claims(head) = serde_json::from_slice(&bytes).map_err(|_| BadToken::Invalid)?;
    let fine = head.get("alg") == Some(&Value::from("HS256"))
        && ["crit", "b64", "jku", "jwk", "x5u", "x5c", "zip", "enc"].iter().all(|f| !head.contains_key(*f));
    if fine { Ok(()) } else { Err(BadToken::Invalid) }
}

/// Times are whole seconds. Libraries read other forms each in their own way.
fn check_times(claims: &BTreeMap<String, Value>) -> Result<(), BadToken> {
    for name in ["exp", "nbf", "iat"] {
        if let Some(value) = claims.get(name)
            && value.as_u64().is_none_or(|seconds| seconds > LATEST)
        {
            return Err(BadToken::Invalid);
        }
    }
    Ok(())
}

/// Three parts with dots: a token, not a secret key.
pub(super) fn looks_like_one(text: &str) -> bool {
    text.split('.').count() == 3
}

/// An object without repeated names: two readers of it agree.
#[derive(Debug)]
struct Claims(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Unique;
        impl<'de> Visitor<'de> for Unique {
            type Value = Claims;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object without repeated names")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Claims, A::Error> {
                let mut claims = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if claims.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a repeated name"));
                    }
                }
                Ok(Claims(claims))
            }
        }
        d.deserialize_map(Unique)
    }
}
