//! Addresses that carry their own permission: one file, for some time.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use toolyard_protocol::{FileId, TenantId, Timestamp};

/// Signs file addresses with a key derived from the JWT secret.
pub(crate) struct UrlSigner(hmac::Key);

impl std::fmt::Debug for UrlSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UrlSigner(…)")
    }
}

impl UrlSigner {
    pub(crate) fn new(secret: &str) -> Self {
        // A key of its own, so that a signature is never also a token's.
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let derived = hmac::sign(&root, b"toolyard-file-url-v1");
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// Path and query of a file until a moment.
    pub(crate) fn url(&self, tenant: &TenantId, file: &FileId, until: Timestamp) -> String {
        let until = until.millis();
        let tag = hmac::sign(&self.0, text(tenant, file.as_str(), until).as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(tag.as_ref());
        format!("/api/files/{file}?tenant={tenant}&expires={until}&signature={signature}")
    }

    /// Is this the signature of that file, and still good?
    pub(crate) fn is_good(
        &self,
        tenant: &TenantId,
        file: &str,
        until: i64,
        signature: &str,
        now: Timestamp,
    ) -> bool {
        let Ok(tag) = URL_SAFE_NO_PAD.decode(signature) else { return false };
        now.millis() < until && hmac::verify(&self.0, text(tenant, file, until).as_bytes(), &tag).is_ok()
    }
}

fn text(tenant: &TenantId, file: &str, until: i64) -> String {
    format!("{tenant}\n{file}\n{until}")
}
