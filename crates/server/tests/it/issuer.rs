//! A foreign issuer of tokens: three kinds of keys, and a door where they are
//! fetched.

use std::sync::{Arc, Mutex};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::gateway::b64;

pub(crate) enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Pair {
    pub(crate) fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }
    pub(crate) fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }
    pub(crate) fn ed() -> Self {
        Self::Ed(Ed25519KeyPair::generate().unwrap())
    }

    pub(crate) fn alg(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    /// The public half, as the issuer shows it.
    pub(crate) fn jwk(&self, kid: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                json!({"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": b64(modulus(pair)), "e": "AQAB"})
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "kid": kid, "crv": "P-256", "x": b64(&point[1..33]), "y": b64(&point[33..])})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": b64(pair.public_key().as_ref())})
            }
        }
    }

    /// The bytes that somebody might take for a shared secret.
    pub(crate) fn public_bytes(&self) -> Vec<u8> {
        match self {
            Self::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Self::Ec(pair) => pair.public_key().as_ref().to_vec(),
            Self::Ed(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    pub(crate) fn sign(&self, head: &Value, claims: &Value) -> String {
        let input = format!("{}.{}", b64(head.to_string().as_bytes()), b64(claims.to_string().as_bytes()));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(pair) => {
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, input.as_bytes(), &mut out).unwrap();
                out
            }
            Self::Ec(pair) => pair.sign(&random, input.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(input.as_bytes()).as_ref().to_vec(),
        };
        format!("{input}.{}", b64(&signature))
    }

    pub(crate) fn token(&self, kid: &str, claims: &Value) -> String {
        self.sign(&json!({"alg": self.alg(), "kid": kid}), claims)
    }
}

/// PKCS#1: a sequence of the modulus and the exponent.
fn modulus(pair: &RsaKeyPair) -> &[u8] {
    &pair.public_key().as_ref()[9..265]
}

/// Answers one document to whoever asks, and counts.
pub(crate) struct Issuer {
    pub(crate) url: String,
    shown: Arc<Mutex<(u16, String)>>,
    asked: Arc<Mutex<usize>>,
    _task: tokio::task::JoinSet<()>,
}

impl Issuer {
    pub(crate) async fn start(keys: &[Value]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap());
        let shown = Arc::new(Mutex::new((200, String::new())));
        let asked = Arc::new(Mutex::new(0));
        let mut task = tokio::task::JoinSet::new();
        let (document, count) = (shown.clone(), asked.clone());
        task.spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") && socket.read_buf(&mut request).await.unwrap_or(0) > 0
                {
                }
                *count.lock().unwrap() += 1;
                let (status, body) = document.lock().unwrap().clone();
                let head =
                    format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}", body.len());
                let _ = socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
            }
        });
        let issuer = Self { url, shown, asked, _task: task };
        issuer.show(keys);
        issuer
    }

    pub(crate) fn show(&self, keys: &[Value]) {
        *self.shown.lock().unwrap() = (200, json!({"keys": keys}).to_string());
    }

    pub(crate) fn fail(&self) {
        *self.shown.lock().unwrap() = (500, String::new());
    }

    pub(crate) fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}
