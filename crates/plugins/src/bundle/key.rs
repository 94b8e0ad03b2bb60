//! The public keys of curators. A key says its algorithm when it is
//! registered; a signature never does.

use aws_lc_rs::rsa;
use aws_lc_rs::signature::{ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_protocol::limits::RSA_BITS_MIN;
use toolyard_protocol::{CuratorId, Hash};

use super::point;

/// What comes before the 32 bytes of an Ed25519 key (RFC 8410).
const ED25519_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    #[default]
    Ed25519,
    /// RSASSA-PKCS1-v1_5 with SHA-256, at least 2048 bits.
    RsaPkcs1Sha256,
}

impl Algorithm {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::RsaPkcs1Sha256 => "rsa-pkcs1-sha256",
        }
    }
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ed25519, Self::RsaPkcs1Sha256].into_iter().find(|one| one.as_str() == text)
    }
}

/// Why bytes are not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("the key is not base64")]
    NotBase64,
    #[error("the key is not an Ed25519 public key in SubjectPublicKeyInfo form")]
    NotEd25519,
    #[error("the key is a point of small order or is not written the one right way")]
    Unsound,
    #[error("the key is not an RSA public key in SubjectPublicKeyInfo form with an odd exponent above 2")]
    NotRsa,
    #[error("the RSA key has {bits} bits, the limit is {RSA_BITS_MIN} to 8192")]
    RsaSize { bits: usize },
    #[error("the file is not a key file: {0}")]
    NotAFile(String),
    #[error("the key cannot be used: {0}")]
    Unusable(String),
}

/// A key that signatures are checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    /// SubjectPublicKeyInfo.
    spki: Vec<u8>,
}

/// `curator.key.pub`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PublicKeyFile {
    pub curator_id: CuratorId,
    pub algorithm: Algorithm,
    /// SubjectPublicKeyInfo as base64.
    pub public_key: String,
    /// For people: SHA-256 of the key. Nobody trusts it.
    pub key_id: Hash,
}

impl PublicKeyFile {
    pub fn read(text: &str) -> Result<(CuratorId, PublicKey), BadKey> {
        if text.contains("\"privateKey\"") {
            let why = "it holds a private key; the public one is in the file that ends in .pub";
            return Err(BadKey::NotAFile(why.to_owned()));
        }
        let file: Self = serde_json::from_str(text).map_err(|e| BadKey::NotAFile(e.to_string()))?;
        let key = PublicKey::parse(file.algorithm, &file.public_key)?;
        Ok((file.curator_id, key))
    }
    pub fn of(curator: CuratorId, key: &PublicKey) -> Self {
        Self { curator_id: curator, algorithm: key.algorithm, public_key: key.to_base64(), key_id: key.id() }
    }
}

impl PublicKey {
    /// Reads SubjectPublicKeyInfo as base64, for this algorithm alone.
    pub fn parse(algorithm: Algorithm, text: &str) -> Result<Self, BadKey> {
        let spki = BASE64_STANDARD.decode(text.trim()).map_err(|_| BadKey::NotBase64)?;
        Self::from_spki(algorithm, spki)
    }

    pub(super) fn from_spki(algorithm: Algorithm, spki: Vec<u8>) -> Result<Self, BadKey> {
        match algorithm {
            Algorithm::Ed25519 => {
                let key = spki.strip_prefix(&ED25519_HEAD).and_then(|key| <&[u8; 32]>::try_from(key).ok());
                let key = key.ok_or(BadKey::NotEd25519)?;
                if !point::is_sound(key) {
                    return Err(BadKey::Unsound);
                }
            }
            Algorithm::RsaPkcs1Sha256 => check_rsa(&spki)?,
        }
        Ok(Self { algorithm, spki })
    }

    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
    pub fn to_base64(&self) -> String {
        BASE64_STANDARD.encode(&self.spki)
    }
    /// SHA-256 of the key. A name for people, never a proof.
    pub fn id(&self) -> Hash {
        Hash::of(&self.spki)
    }

    /// Whether the holder of the key signed these bytes.
    pub(super) fn has_signed(&self, bytes: &[u8], signature: &str) -> bool {
        // One signature is one text: padding and trailing bits count.
        let Ok(raw) = BASE64_STANDARD.decode(signature) else { return false };
        match self.algorithm {
            Algorithm::Ed25519 => self
                .spki
                .strip_prefix(&ED25519_HEAD)
                .is_some_and(|key| UnparsedPublicKey::new(&ED25519, key).verify(bytes, &raw).is_ok()),
            Algorithm::RsaPkcs1Sha256 => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.spki).verify(bytes, &raw).is_ok()
            }
        }
    }
}

fn check_rsa(spki: &[u8]) -> Result<(), BadKey> {
    let key = rsa::PublicKey::from_der(spki).map_err(|_| BadKey::NotRsa)?;
    // A second form of the same key would be a second key.
    let again = aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::PublicKeyX509Der>::as_der(&key);
    if !again.is_ok_and(|again| again.as_ref() == spki) {
        return Err(BadKey::NotRsa);
    }
    let bits = modulus_bits(key.as_ref()).ok_or(BadKey::NotRsa)?;
    if !(RSA_BITS_MIN..=8192).contains(&bits) {
        return Err(BadKey::RsaSize { bits });
    }
    Ok(())
}

/// The size of an `RSAPublicKey`: a sequence whose first integer is the modulus.
fn modulus_bits(der: &[u8]) -> Option<usize> {
    let inside = after_head(der, 0x30)?.1;
    let (length, rest) = after_head(inside, 0x02)?;
    let modulus = rest.get(..length)?;
    let start = modulus.iter().position(|byte| *byte != 0)?;
    let first = modulus.get(start)?;
    Some((modulus.len() - start) * 8 - first.leading_zeros() as usize)
}

/// Length and content of a DER value with this tag.
fn after_head(der: &[u8], tag: u8) -> Option<(usize, &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    if *found != tag {
        return None;
    }
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let count = usize::from(*first & 0x7f);
    let length = rest.get(..count).filter(|_| count <= 4)?;
    Some((length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest.get(count..)?))
}
