//! The master key: closes what the database must not be able to read, and
//! opens it again. A sealed value is bound to its place, so that a row copied
//! to another tenant or name does not open there.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use toolyard_dialects::a2a::signing::Signer;
use toolyard_protocol::{Hash, TenantId};
use toolyard_store::secrets::Sealed;

/// Bytes of a master key.
pub const MASTER_KEY_BYTES: usize = 32;
/// The form of sealed bytes: this, the nonce, the text with its tag.
const FORM: u8 = 1;

/// What a sealed value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `${secret.NAME}`
    Secret,
    /// The signing key of a webhook.
    Webhook,
    /// What goes along with a push notification.
    Push,
    /// A token that a foreign server gave for a user.
    Token,
    /// The private key of a curator.
    Curator,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Webhook => "webhook",
            Self::Push => "push",
            Self::Token => "token",
            Self::Curator => "curator",
        }
    }
}

/// Why a sealed value stays closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    #[error("it was stored with another master key")]
    OtherKey,
    #[error("it was changed, or stored for something else")]
    Changed,
}

pub struct Sealer {
    key: RandomizedNonceKey,
    key_id: String,
    signer: Signer,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({})", self.key_id)
    }
}

impl Sealer {
    /// Takes a master key: 32 bytes as base64 or hexadecimal text.
    pub fn parse(text: &SecretString) -> Result<Self, &'static str> {
        let bytes = decode(text.expose_secret().trim())
            .ok_or("must be 32 random bytes as base64 or hexadecimal text")?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| "cannot be used")?;
        let id = Hash::of(&[b"toolyard-master-key\0".as_slice(), &bytes].concat());
        // A key of its own for signatures, the same on every node of a gateway.
        let root = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        let seed = hmac::sign(&root, b"toolyard-signing-key-v1");
        let seed = seed.as_ref().try_into().map_err(|_| "cannot be used")?;
        let signer = Signer::from_seed(seed).ok_or("cannot be used")?;
        Ok(Self { key, key_id: id.as_str().chars().rev().take(12).collect(), signer })
    }

    /// Names the master key without telling it.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Signs agent cards and notifications.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Closes a value for one place.
    pub fn seal(
        &self,
        purpose: Purpose,
        tenant: &TenantId,
        name: &str,
        value: &SecretString,
    ) -> Result<Sealed, Closed> {
        let mut text = value.expose_secret().as_bytes().to_vec();
        let place = place(purpose, tenant, name);
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(place.as_bytes()), &mut text)
            .map_err(|_| Closed::Changed)?;
        let bytes = [&[FORM], nonce.as_ref().as_slice(), &text].concat();
        Ok(Sealed { bytes, key_id: self.key_id.clone() })
    }

    /// Opens what was closed for this place.
    pub fn open(
        &self,
        purpose: Purpose,
        tenant: &TenantId,
        name: &str,
        sealed: &Sealed,
    ) -> Result<SecretString, Closed> {
        if sealed.key_id != self.key_id {
            return Err(Closed::OtherKey);
        }
        let place = place(purpose, tenant, name);
        let opened = || {
            let (form, rest) = sealed.bytes.split_first()?;
            let (nonce, text) = rest.split_at_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut text = text.to_vec();
            let plain = self.key.open_in_place(nonce, Aad::from(place.as_bytes()), &mut text).ok()?;
            let plain = std::str::from_utf8(plain).ok()?;
            (*form == FORM).then(|| SecretString::from(plain))
        };
        opened().ok_or(Closed::Changed)
    }
}

/// Neither a tenant nor a name holds a zero byte.
fn place(purpose: Purpose, tenant: &TenantId, name: &str) -> String {
    format!("toolyard\0{}\0{tenant}\0{name}", purpose.as_str())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let hex = || {
        let byte = |i: usize| u8::from_str_radix(text.get(i..i + 2)?, 16).ok();
        (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()
    };
    let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    let found = if text.len() == 2 * MASTER_KEY_BYTES {
        hex()
    } else {
        engines.iter().find_map(|engine| engine.decode(text).ok())
    };
    found.filter(|bytes| bytes.len() == MASTER_KEY_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sealer(byte: u8) -> Sealer {
        Sealer::parse(&SecretString::from(STANDARD.encode([byte; 32]))).unwrap()
    }

    #[test]
    fn x8_a_sealed_value_opens_only_in_its_own_place() {
        let (acme, other) = (TenantId::parse("acme").unwrap(), TenantId::parse("other").unwrap());
        let own = sealer(7);
        let value = SecretString::from("canary");
        let sealed = own.seal(Purpose::Secret, &acme, "A", &value).unwrap();
        assert!(!sealed.bytes.windows(6).any(|w| w == b"canary"));
        let again = own.seal(Purpose::Secret, &acme, "A", &value).unwrap();
        assert_ne!(sealed.bytes, again.bytes, "no two closings are alike");
        let open = |tenant, name, sealed: &Sealed| {
            own.open(Purpose::Secret, tenant, name, sealed).map(|s| s.expose_secret().to_owned())
        };
        assert_eq!(open(&acme, "A", &sealed).unwrap(), "canary");
        assert_eq!(open(&acme, "B", &sealed), Err(Closed::Changed));
        assert_eq!(open(&other, "A", &sealed), Err(Closed::Changed));
        assert!(own.open(Purpose::Webhook, &acme, "A", &sealed).is_err());
        assert_eq!(sealer(8).open(Purpose::Secret, &acme, "A", &sealed).err(), Some(Closed::OtherKey));
        for i in 0..sealed.bytes.len() {
            let mut bent = sealed.clone();
            bent.bytes[i] ^= 1;
            assert_eq!(open(&acme, "A", &bent), Err(Closed::Changed), "byte {i}");
        }
        let short = Sealed { bytes: vec![FORM, 1, 2], ..sealed };
        assert_eq!(open(&acme, "A", &short), Err(Closed::Changed));
    }

    #[test]
    fn a_master_key_is_32_bytes_in_a_usual_spelling() {
        let hex = "07".repeat(32);
        for fine in [
            STANDARD.encode([7; 32]),
            URL_SAFE_NO_PAD.encode([7; 32]),
            hex,
            format!(" {} ", STANDARD.encode([7; 32])),
        ] {
            assert_eq!(Sealer::parse(&fine.into()).unwrap().key_id(), sealer(7).key_id());
        }
        for bad in ["", "short", &STANDARD.encode([7; 31]), &"zz".repeat(32), &"07".repeat(33)] {
            assert!(Sealer::parse(&SecretString::from(bad)).is_err(), "{bad}");
        }
    }
}
