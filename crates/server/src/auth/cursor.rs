//! Positions of lists, closed. The row that a page ended with may be another's:
//! whoever carries the position on learns nothing of it, and cannot make one up.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toolyard_protocol::TenantId;

/// Shorter positions are made as long as this: their length tells nothing either.
const CHARS: usize = 160;

/// Closes positions with a key derived from the JWT secret, so that every node
/// of a gateway opens them.
pub(crate) struct Cursors(RandomizedNonceKey);

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cursors(…)")
    }
}

impl Cursors {
    /// None if the machine has no such cipher.
    pub(crate) fn new(secret: &str) -> Option<Self> {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let derived = hmac::sign(&root, b"toolyard-cursor-v1");
        Some(Self(RandomizedNonceKey::new(&AES_256_GCM, derived.as_ref()).ok()?))
    }

    /// A position of a list of a tenant, for its next page.
    pub(crate) fn close(&self, tenant: &TenantId, list: &str, position: &str) -> Option<String> {
        let mut text = format!("{position:CHARS$}").into_bytes();
        let place = Aad::from(place(tenant, list));
        let nonce = self.0.seal_in_place_append_tag(place, &mut text).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &text].concat()))
    }

    /// What was closed for this list of this tenant.
    pub(crate) fn open(&self, tenant: &TenantId, list: &str, cursor: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (nonce, text) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(place(tenant, list)), &mut text).ok()?;
        Some(std::str::from_utf8(plain).ok()?.trim_end().to_owned())
    }
}

fn place(tenant: &TenantId, list: &str) -> Vec<u8> {
    format!("{tenant}\n{list}").into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_position_opens_in_its_own_list_alone_and_tells_nothing() {
        let cursors = Cursors::new("a secret").unwrap();
        let (acme, other) = (TenantId::parse("acme").unwrap(), TenantId::parse("other").unwrap());
        let closed = cursors.close(&acme, "waits", "17~wait_abc").unwrap();
        assert_eq!(cursors.open(&acme, "waits", &closed).unwrap(), "17~wait_abc");
        assert_eq!(cursors.open(&other, "waits", &closed), None);
        assert_eq!(cursors.open(&acme, "runs", &closed), None);
        assert_eq!(Cursors::new("another").unwrap().open(&acme, "waits", &closed), None);
        let longer = cursors.close(&acme, "waits", "17~wait_of_a_longer_name").unwrap();
        assert_eq!(closed.len(), longer.len());
        let mut bent = closed.clone().into_bytes();
        bent[40] = if bent[40] == b'A' { b'B' } else { b'A' };
        for bad in ["", "17~wait_abc", &closed[1..], std::str::from_utf8(&bent).unwrap()] {
            assert_eq!(cursors.open(&acme, "waits", bad), None, "{bad}");
        }
    }
}
