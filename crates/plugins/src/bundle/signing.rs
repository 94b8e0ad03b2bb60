//! The private keys of curators, and the act of signing.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_protocol::CuratorId;

use super::candidate::{BadDocument, Candidate};
use super::key::{Algorithm, BadKey, PublicKey, PublicKeyFile};

/// A curator's private key.
pub struct SigningKey {
    curator: CuratorId,
    pair: Pair,
    /// PKCS#8 as base64.
    private: SecretString,
    public: PublicKey,
}

enum Pair {
    Ed25519(Box<Ed25519KeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {})", self.curator, self.public.algorithm().as_str())
    }
}

/// `curator.key`
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SigningKeyFile {
    curator_id: CuratorId,
    algorithm: Algorithm,
    /// PKCS#8 as base64.
    private_key: String,
}

impl fmt::Debug for SigningKeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKeyFile({})", self.curator_id)
    }
}

impl SigningKey {
    pub fn generate(curator: CuratorId, algorithm: Algorithm) -> Result<Self, BadKey> {
        let failed = |_| BadKey::Unusable("it could not be made".to_owned());
        let pkcs8 = match algorithm {
            Algorithm::Ed25519 => {
                Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).map_err(failed)?.as_ref().to_vec()
            }
            Algorithm::RsaPkcs1Sha256 => {
                let pair = RsaKeyPair::generate(KeySize::Rsa3072).map_err(failed)?;
                AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).map_err(failed)?.as_ref().to_vec()
            }
        };
        Self::from_private(curator, algorithm, SecretString::from(BASE64_STANDARD.encode(pkcs8)))
    }

    /// PKCS#8 as base64.
    pub fn from_private(
        curator: CuratorId,
        algorithm: Algorithm,
        private: SecretString,
    ) -> Result<Self, BadKey> {
        let pkcs8 = BASE64_STANDARD.decode(private.expose_secret().trim()).map_err(|_| BadKey::NotBase64)?;
        let (pair, spki) = match algorithm {
            Algorithm::Ed25519 => {
                let pair =
                    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).map_err(|_| BadKey::NotEd25519)?;
                let spki = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key());
                (Pair::Ed25519(Box::new(pair)), spki)
            }
            Algorithm::RsaPkcs1Sha256 => {
                let pair = RsaKeyPair::from_pkcs8(&pkcs8).map_err(|_| BadKey::NotRsa)?;
                let spki = AsDer::<PublicKeyX509Der<'_>>::as_der(pair.public_key());
                (Pair::Rsa(Box::new(pair)), spki)
            }
        };
        let spki = spki.map_err(|_| BadKey::Unusable("it has no public part".to_owned()))?;
        let public = PublicKey::from_spki(algorithm, spki.as_ref().to_vec())?;
        Ok(Self { curator, pair, private, public })
    }

    /// Reads `curator.key`.
    pub fn from_file(text: &str) -> Result<Self, BadKey> {
        // The parser's own words would repeat a part of the key.
        let file: SigningKeyFile = serde_json::from_str(text)
            .map_err(|_| BadKey::NotAFile("expected curatorId, algorithm and privateKey".to_owned()))?;
        Self::from_private(file.curator_id, file.algorithm, SecretString::from(file.private_key))
    }

    /// The text of `curator.key`.
    pub fn to_file(&self) -> SecretString {
        let file = json!({
            "curatorId": self.curator,
            "algorithm": self.public.algorithm(),
            "privateKey": self.private.expose_secret(),
        });
        SecretString::from(format!("{file:#}\n"))
    }

    /// PKCS#8 as base64.
    pub fn private(&self) -> &SecretString {
        &self.private
    }
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
    pub fn public_file(&self) -> PublicKeyFile {
        PublicKeyFile::of(self.curator.clone(), &self.public)
    }

    /// The document with this curator's signature on it. The first one stands
    /// flat beside `curatorId`, further ones under `signatures`.
    pub fn sign(&self, candidate: &Candidate) -> Result<Candidate, BadDocument> {
        let mut value = candidate.value.clone();
        let first = !candidate.is_signed() || candidate.document.curator_id.as_ref() == Some(&self.curator);
        if first {
            // Part of what is signed; the others' signatures stand as long as it is the same.
            value["curatorId"] = json!(self.curator);
        }
        let unsigned = Candidate::of(value)?;
        let signature = self.signature(&unsigned.signed_bytes)?;
        let mut value = unsigned.value;
        value["contentHash"] = json!(unsigned.content_hash);
        if first {
            value["signature"] = json!(signature);
        } else {
            let mut others: Vec<Value> =
                value.get("signatures").and_then(Value::as_array).cloned().unwrap_or_default();
            others.retain(|one| one["curatorId"] != json!(self.curator));
            others.push(json!({ "curatorId": self.curator, "signature": signature }));
            value["signatures"] = Value::Array(others);
        }
        Candidate::of(value)
    }

    /// A signature over what the candidate says, for whoever puts it in later.
    fn signature(&self, bytes: &[u8]) -> Result<String, BadDocument> {
        let raw = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(bytes).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut raw = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), bytes, &mut raw)
                    .map_err(|_| BadDocument::Malformed("the key does not sign".to_owned()))?;
                raw
            }
        };
        Ok(BASE64_STANDARD.encode(raw))
    }
}
