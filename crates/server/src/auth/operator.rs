//! The operator's own keys: of the environment, the file or the first start.
//! They belong to the tenant `default`.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use toolyard_protocol::{Hash, KeyId, KeyKind, Principal, TenantId};

const SECRET_ID: &str = "key_operator_secret";
const PUBLIC_ID: &str = "key_operator_public";

/// Hashes only: the keys themselves are not kept.
#[derive(Debug)]
pub(crate) struct OperatorKeys {
    secret: Hash,
    public: Hash,
}

impl OperatorKeys {
    pub(crate) fn new(secret: &str, public: &str) -> Self {
        Self { secret: Hash::of(secret.as_bytes()), public: Hash::of(public.as_bytes()) }
    }
    pub(super) fn is_secret(&self, given: &Hash) -> bool {
        same(&self.secret, given)
    }
    pub(super) fn is_public(&self, given: &Hash) -> bool {
        same(&self.public, given)
    }
}

fn same(a: &Hash, b: &Hash) -> bool {
    verify_slices_are_equal(a.as_str().as_bytes(), b.as_str().as_bytes()).is_ok()
}

pub(super) fn principal(kind: KeyKind) -> Principal {
    Principal { tenant: TenantId::default_tenant(), key: id(kind), kind, entity: None }
}

fn id(kind: KeyKind) -> KeyId {
    let text = match kind {
        KeyKind::Secret => SECRET_ID,
        KeyKind::Public => PUBLIC_ID,
    };
    KeyId::parse(text).unwrap_or_else(|_| KeyId::mint())
}

pub(super) fn is_operator(key: &KeyId) -> bool {
    key.as_str() == SECRET_ID
}

/// A key that nobody guesses: 32 random bytes.
pub(crate) fn new_key(kind: KeyKind) -> Result<String, String> {
    let prefix = match kind {
        KeyKind::Secret => "sk",
        KeyKind::Public => "pk",
    };
    random().map(|text| format!("{prefix}_{text}"))
}

/// Signs what a webhook gets.
pub(crate) fn new_signing_key() -> Result<String, String> {
    random().map(|text| format!("whsec_{text}"))
}

pub(super) fn random() -> Result<String, String> {
    let mut bytes = [0_u8; 32];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| "this machine gives no random numbers".to_owned())?;
    use base64::Engine as _;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}
