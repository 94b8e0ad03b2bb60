//! Checks a user's token (row X9), with one error text for whatever is wrong
//! with it. Either the gateway's own secret signs tokens (HS256), or the keys
//! of a foreign issuer do (RS256, ES256, EdDSA); never both.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolyard_egress::{Door, EgressError, Target};
use toolyard_protocol::{TenantId, limits};

use super::jwks::{Jwks, NoKey, name_of};
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
    /// Nobody can say whether it is genuine.
    #[error("The issuer of the tokens cannot be reached. Try again later.")]
    IssuerAway,
}

/// Whom a token speaks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) subject: String,
    pub(crate) name: Option<String>,
}

/// Whose signature counts.
enum Signer {
    Own(DecodingKey),
    Issuer(Jwks),
}

pub(crate) struct JwtCheck {
    signer: Signer,
    validation: Validation,
    entity_claim: String,
    tenant_claim: Option<String>,
}

impl fmt::Debug for JwtCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.signer {
            Signer::Own(_) => f.write_str("JwtCheck(HS256)"),
            Signer::Issuer(keys) => write!(f, "JwtCheck({keys:?})"),
        }
    }
}

impl JwtCheck {
    /// With an issuer configured, the secret checks no token.
    pub(crate) fn new(config: &Config, secret: &str, door: &Door) -> Result<Self, EgressError> {
        let signer = match &config.jwt.jwks_url {
            Some(url) => Signer::Issuer(Jwks::new(door.clone(), Target::parse(url)?)),
            None => Signer::Own(DecodingKey::from_secret(secret.as_bytes())),
        };
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
        Ok(Self {
            signer,
            validation,
            entity_claim: config.jwt.entity_claim.clone(),
            tenant_claim: config.jwt.tenant_claim.clone(),
        })
    }

    /// The user, if the token is genuine, in time and of this tenant.
    pub(crate) async fn check(&self, token: &str, tenant: &TenantId) -> Result<User, BadToken> {
        if token.len() > TOKEN_BYTES {
            return Err(BadToken::Invalid);
        }
        let head = read_head(token)?;
        let Claims(claims) = match &self.signer {
            Signer::Own(key) => self.decode(token, &head, Algorithm::HS256, key)?,
            Signer::Issuer(keys) => {
                // A token that no key of the issuer could have signed makes nobody fetch keys.
                if !["RS256", "ES256", "EdDSA"].contains(&head.algorithm.as_str()) {
                    return Err(BadToken::Invalid);
                }
                let key = keys.key(head.kid.as_deref()).await.map_err(|e| match e {
                    NoKey::Unknown => BadToken::Invalid,
                    NoKey::Away => BadToken::IssuerAway,
                })?;
                self.decode(token, &head, key.algorithm, &key.key)?
            }
        };
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

    /// The claims, if this key signed them by its own algorithm.
    fn decode(
        &self,
        token: &str,
        head: &Head,
        algorithm: Algorithm,
        key: &DecodingKey,
    ) -> Result<Claims, BadToken> {
        if head.algorithm != name_of(algorithm) {
            return Err(BadToken::Invalid);
        }
        let mut validation = self.validation.clone();
        validation.algorithms = vec![algorithm];
        let decoded = jsonwebtoken::decode::<Claims>(token, key, &validation);
        Ok(decoded.map_err(|_| BadToken::Invalid)?.claims)
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

/// What the head of a token says.
struct Head {
    algorithm: String,
    kid: Option<String>,
}

/// The head is plain: an algorithm, and no field that wants to be understood.
fn read_head(token: &str) -> Result<Head, BadToken> {
    let head = token.split('.').next().unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(head).map_err(|_| BadToken::Invalid)?;
    let Claims(head) = serde_json::from_slice(&bytes).map_err(|_| BadToken::Invalid)?;
    let plain =
        ["crit", "b64", "jku", "jwk", "x5u", "x5c", "zip", "enc"].iter().all(|f| !head.contains_key(*f));
    let kid = match head.get("kid") {
        None => None,
        Some(Value::String(kid)) if kid.len() <= limits::LABEL_CHARS => Some(kid.clone()),
        Some(_) => return Err(BadToken::Invalid),
    };
    match head.get("alg") {
        Some(Value::String(algorithm)) if plain => Ok(Head { algorithm: algorithm.clone(), kid }),
        _ => Err(BadToken::Invalid),
    }
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
