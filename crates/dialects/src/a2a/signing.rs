//! The gateway's signature: on agent cards, and on notifications.
//!
//! Both are JWS by Ed25519. A card's is detached and covers the card as 1.0
//! knows it, in canonical form. A notification's covers its time, its own name,
//! its task and the hash of its body; [`Notices`] is the receiver's side.

use std::collections::HashMap;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use toolyard_protocol::{Hash, Timestamp};

use super::card::canonical;

/// How long a notification is good, in seconds, and how far clocks may differ.
pub const NOTICE_SECONDS: i64 = 300;

fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The gateway's signing key.
pub struct Signer {
    pair: Ed25519KeyPair,
    id: String,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.id)
    }
}

impl Signer {
    /// The same seed is the same key, on every node.
    pub fn from_seed(seed: &[u8; 32]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        let id = Hash::of(pair.public_key().as_ref()).as_str().chars().take(16).collect();
        Some(Self { pair, id })
    }

    pub fn key_id(&self) -> &str {
        &self.id
    }

    /// The public keys, as `/.well-known/jwks.json` shows them.
    pub fn jwks(&self) -> Value {
        json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig",
            "kid": self.id, "x": b64(self.pair.public_key()),
        }] })
    }

    fn compact(&self, header: &Value, payload: &[u8]) -> (String, String, String) {
        let (header, payload) = (b64(header.to_string()), b64(payload));
        let signature = self.pair.sign(format!("{header}.{payload}").as_bytes());
        (header, payload, b64(signature))
    }

    /// The signature of a card. `seen` is what 1.0 reads of it.
    pub fn sign_card(&self, seen: &Value, keys_at: &str) -> Value {
        let header = json!({ "alg": "EdDSA", "typ": "JOSE", "kid": self.id, "jku": keys_at });
        let (protected, _, signature) = self.compact(&header, canonical(seen).as_bytes());
        json!({ "protected": protected, "signature": signature })
    }

    /// What goes along with a notification.
    pub fn notice(&self, name: &str, task: &str, body: &[u8], now: Timestamp) -> String {
        let seconds = now.millis() / 1000;
        let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": self.id });
        let claims = json!({
            "iat": seconds, "exp": seconds + NOTICE_SECONDS, "jti": name,
            "taskId": task, "sha256": Hash::of(body).as_str(),
        });
        let (header, payload, signature) = self.compact(&header, claims.to_string().as_bytes());
        format!("{header}.{payload}.{signature}")
    }
}

/// Why a notification is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadNotice {
    #[error("the notification has no readable signature")]
    Unreadable,
    #[error("the notification was signed by another key")]
    WrongKey,
    #[error("the notification is older than {NOTICE_SECONDS} s, or from the future")]
    WrongTime,
    #[error("the notification is about another task")]
    OtherTask,
    #[error("the notification's body was changed")]
    Changed,
    #[error("the notification came before")]
    Repeated,
}

/// A receiver of notifications: knows the sender's keys and what came before.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    keys: HashMap<String, Vec<u8>>,
    /// Names, each with the second after which it may be forgotten.
    seen: HashMap<String, i64>,
}

impl Notices {
    /// With the sender's `jwks.json`.
    pub fn of_keys(jwks: &Value) -> Self {
        let list = jwks["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
        let key = |key: &Value| {
            let bytes = URL_SAFE_NO_PAD.decode(key["x"].as_str()?).ok()?;
            Some((key["kid"].as_str()?.to_owned(), bytes))
        };
        Self { keys: list.iter().filter_map(key).collect(), seen: HashMap::new() }
    }

    /// Believes a notification once: of a known key, of now, about this task,
    /// with this body.
    pub fn accept(&mut self, notice: &str, task: &str, body: &[u8], now: Timestamp) -> Result<(), BadNotice> {
        let claims = self.claims(notice)?;
        let now = now.millis() / 1000;
        let (iat, exp) = (claims["iat"].as_i64(), claims["exp"].as_i64());
        let (Some(iat), Some(exp)) = (iat, exp) else { return Err(BadNotice::Unreadable) };
        let last = exp.min(iat.saturating_add(NOTICE_SECONDS));
        if now > last || iat > now.saturating_add(NOTICE_SECONDS) {
            return Err(BadNotice::WrongTime);
        }
        if claims["taskId"] != task {
            return Err(BadNotice::OtherTask);
        }
        if claims["sha256"] != Hash::of(body).as_str() {
            return Err(BadNotice::Changed);
        }
        let name = claims["jti"].as_str().ok_or(BadNotice::Unreadable)?.to_owned();
        self.seen.retain(|_, until| *until >= now);
        match self.seen.insert(name, last) {
            None => Ok(()),
            Some(_) => Err(BadNotice::Repeated),
        }
    }

    fn claims(&self, notice: &str) -> Result<Value, BadNotice> {
        let (signed, signature) = notice.rsplit_once('.').ok_or(BadNotice::Unreadable)?;
        let (header, payload) = signed.split_once('.').ok_or(BadNotice::Unreadable)?;
        let json = |text: &str| -> Result<Value, BadNotice> {
            let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| BadNotice::Unreadable)?;
            serde_json::from_slice(&bytes).map_err(|_| BadNotice::Unreadable)
        };
        let header = json(header)?;
        if header["alg"] != "EdDSA" {
            return Err(BadNotice::Unreadable);
        }
        let key = header["kid"].as_str().and_then(|id| self.keys.get(id)).ok_or(BadNotice::WrongKey)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| BadNotice::Unreadable)?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| BadNotice::WrongKey)?;
        json(payload)
    }
}
