//! Whom the door's clients believe: the certificates of the machine, or those
//! inside the binary where the machine has none. Read once, since reading them
//! costs more than all else at the start; every client shares them.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientConfig, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{Error, RootCertStore};
use rustls_platform_verifier::Verifier;

/// The settings of one more client.
pub(crate) fn settings() -> Result<ClientConfig, Error> {
    static SHARED: LazyLock<Result<ClientConfig, Error>> = LazyLock::new(make);
    SHARED.clone()
}

fn make() -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match Verifier::new(provider.clone()) {
        Ok(of_machine) => Arc::new(of_machine),
        Err(_) => inside(provider.clone())?,
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A machine without CA certificates is served by the roots inside the binary.
fn inside(provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(verifier.map_err(|e| Error::General(e.to_string()))?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn clients_share_one_verifier_and_speak_http_2() {
        let (one, other) = (settings().unwrap(), settings().unwrap());
        assert_eq!(one.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(Arc::ptr_eq(one.crypto_provider(), other.crypto_provider()));
    }

    #[test]
    fn a_machine_without_certificates_is_served_by_our_own() {
        assert!(inside(Arc::new(aws_lc_rs::default_provider())).is_ok());
    }
}
