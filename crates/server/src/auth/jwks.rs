//! The keys of a foreign issuer: fetched through the door, kept, fetched again
//! when a token names a key that is not there.
//!
//! A key has one algorithm, decided when it is read. A token's `kid` is only an
//! index, and its `alg` must be the key's own.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;
use toolyard_egress::{Door, Letter, Patience, Target, Verb};

/// Keys this old are fetched again before they are used.
const FRESH: Duration = Duration::from_secs(600);
/// Keys this old are not used, even if the issuer is away.
const STALE: Duration = Duration::from_secs(3600);
/// One fetch may follow another after this time, whatever tokens say.
const PAUSE: Duration = Duration::from_secs(10);
/// Fetches that may come at once before the pause counts.
const BURST: NonZeroU32 = NonZeroU32::new(3).unwrap();
/// Keys of one issuer.
const KEYS: usize = 64;
/// Bytes of the whole document.
const BYTES: u64 = 256 << 10;
/// A shorter RSA key is no key.
const RSA_BITS: usize = 2048;
const PATIENCE: Patience =
    Patience { head: Duration::from_secs(5), idle: Duration::from_secs(5), bytes: BYTES };

/// A key and the one algorithm that it is for.
#[derive(Clone)]
pub(super) struct IssuerKey {
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

#[derive(Default)]
struct Kept {
    by_kid: HashMap<String, IssuerKey>,
    /// Set if the issuer has one key only: a token need not name it.
    single: Option<IssuerKey>,
    at: Option<Instant>,
}

pub(super) struct Jwks {
    door: Door,
    target: Target,
    kept: RwLock<Arc<Kept>>,
    /// One fetch at a time; who waits finds what the other one fetched.
    fetching: tokio::sync::Mutex<()>,
    fetches: DefaultDirectRateLimiter,
}

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwks").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Why there is no key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The issuer has no such key.
    Unknown,
    /// Nobody can say: the issuer is away, and what it said is too old.
    Away,
}

impl Jwks {
    pub(super) fn new(door: Door, target: Target) -> Self {
        let quota = Quota::with_period(PAUSE).unwrap_or(Quota::per_minute(BURST)).allow_burst(BURST);
        Self {
            door,
            target,
            kept: RwLock::default(),
            fetching: tokio::sync::Mutex::default(),
            fetches: RateLimiter::direct(quota),
        }
    }

    /// The key that a token names.
    pub(super) async fn key(&self, kid: Option<&str>) -> Result<IssuerKey, NoKey> {
        let kept = self.kept();
        let fresh = kept.at.is_some_and(|at| at.elapsed() < FRESH);
        if let (true, Some(key)) = (fresh, find(&kept, kid)) {
            return Ok(key);
        }
        self.fetch(kept.at).await;
        let kept = self.kept();
        if kept.at.is_none_or(|at| at.elapsed() >= STALE) {
            return Err(NoKey::Away);
        }
        find(&kept, kid).ok_or(NoKey::Unknown)
    }

    fn kept(&self) -> Arc<Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches, unless somebody else just did or it is too early.
    async fn fetch(&self, known: Option<Instant>) {
        let _one = self.fetching.lock().await;
        if self.kept().at != known || self.fetches.check().is_err() {
            return;
        }
        match self.ask().await {
            Ok(fetched) => *self.kept.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fetched),
            Err(why) => tracing::warn!(issuer = %self.target.origin(), why, "cannot fetch the issuer's keys"),
        }
    }

    async fn ask(&self) -> Result<Kept, String> {
        let letter = Letter {
            verb: Verb::Get,
            target: &self.target,
            headers: &[],
            accept: "application/json",
            body: None,
            patience: PATIENCE,
        };
        let answer = self.door.ask(letter, PATIENCE.head * 2).await.map_err(|e| e.causes())?;
        if answer.status != 200 {
            return Err(format!("it answered {}", answer.status));
        }
        read(&answer.body).ok_or_else(|| "it did not answer a set of keys".to_owned())
    }
}

fn find(kept: &Kept, kid: Option<&str>) -> Option<IssuerKey> {
    match kid {
        Some(kid) => kept.by_kid.get(kid).cloned(),
        None => kept.single.clone(),
    }
}

/// Reads a set of keys. A key that cannot be used is left out.
fn read(bytes: &[u8]) -> Option<Kept> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let list = document.get("keys")?.as_array()?;
    let mut kept = Kept { at: Some(Instant::now()), ..Kept::default() };
    for value in list.iter().take(KEYS) {
        let Ok(jwk) = serde_json::from_value::<Jwk>(value.clone()) else { continue };
        let Some(key) = usable(&jwk) else { continue };
        if list.len() == 1 {
            kept.single = Some(key.clone());
        }
        if let Some(kid) = jwk.common.key_id {
            // Of two keys with one name, the first holds.
            kept.by_kid.entry(kid).or_insert(key);
        }
    }
    Some(kept)
}

fn usable(jwk: &Jwk) -> Option<IssuerKey> {
    let common = &jwk.common;
    let for_tokens = common.public_key_use.as_ref().is_none_or(|u| *u == PublicKeyUse::Signature)
        && common.key_operations.as_ref().is_none_or(|ops| ops.contains(&KeyOperations::Verify));
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(rsa) if bits(&rsa.n)? >= RSA_BITS => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(ec) if ec.curve == EllipticCurve::P256 => Algorithm::ES256,
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        // A shared secret in a public document is nobody's secret.
        _ => return None,
    };
    let named = common.key_algorithm.as_ref().map(ToString::to_string);
    if !for_tokens || named.is_some_and(|name| name != name_of(algorithm)) {
        return None;
    }
    let key = DecodingKey::from_jwk(jwk).ok()?;
    Some(IssuerKey { algorithm, key })
}

/// The length of a number, without its leading zeros.
fn bits(text: &str) -> Option<usize> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok()?;
    let start = bytes.iter().position(|b| *b != 0)?;
    let top = bytes.get(start).map_or(0, |b| b.leading_zeros() as usize);
    Some((bytes.len() - start) * 8 - top)
}

/// As `alg` says it.
pub(super) fn name_of(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::HS256 => "HS256",
        Algorithm::RS256 => "RS256",
        Algorithm::ES256 => "ES256",
        Algorithm::EdDSA => "EdDSA",
        // No key is ever read as one of the others.
        _ => "",
    }
}
