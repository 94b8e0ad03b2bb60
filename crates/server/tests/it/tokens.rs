//! X9: forty wrong tokens, one answer.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{
    Folder, Gateway, JWT_SECRET, PUBLIC, ask, b64, fine, message, now, signed, signed_text, token_of,
};

pub(crate) const INVALID: &str = "Invalid or expired JWT";

fn head() -> Value {
    json!({"alg": "HS256", "typ": "JWT"})
}

pub(crate) fn claims() -> Value {
    json!({"sub": "ann", "exp": now() + 600, "iss": "issuer", "aud": "toolyard"})
}

pub(crate) fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

pub(crate) fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn head_with(name: &str, value: Value) -> Value {
    let mut head = head();
    head[name] = value;
    head
}

fn by_head(head: Value) -> String {
    signed(&head, &claims(), JWT_SECRET.as_bytes())
}

fn wrong_tokens() -> Vec<(&'static str, String)> {
    let good = token_of(&claims());
    let parts: Vec<&str> = good.split('.').collect();
    let (h, c, s) = (parts[0], parts[1], parts[2]);
    let none = b64(json!({"alg": "none"}).to_string().as_bytes());
    let ed = json!({"kty": "oct", "k": b64(b"attacker-key-attacker-key-attack")});
    let text = |claims: &str| signed_text(&head().to_string(), claims, JWT_SECRET.as_bytes());
    let soon = now() + 600;
    vec![
        ("no signature", format!("{h}.{c}.")),
        ("two parts", format!("{h}.{c}")),
        ("four parts", format!("{good}.{s}")),
        ("alg none", format!("{none}.{c}.")),
        ("alg none with a signature", format!("{none}.{c}.{s}")),
        ("alg nOnE", by_head(head_with("alg", json!("nOnE")))),
        ("alg in lower case", by_head(head_with("alg", json!("hs256")))),
        ("alg RS256 over an HMAC", by_head(head_with("alg", json!("RS256")))),
        ("alg ES256 with a zero signature", {
            let head = b64(json!({"alg": "ES256"}).to_string().as_bytes());
            format!("{head}.{c}.{}", b64(&[0_u8; 64]))
        }),
        ("alg EdDSA", by_head(head_with("alg", json!("EdDSA")))),
        ("alg HS384", by_head(head_with("alg", json!("HS384")))),
        ("alg HS512", by_head(head_with("alg", json!("HS512")))),
        ("alg missing", by_head(json!({"typ": "JWT"}))),
        ("alg a number", by_head(head_with("alg", json!(1)))),
        ("alg a list", by_head(head_with("alg", json!(["HS256"])))),
        ("embedded jwk", signed(&head_with("jwk", ed), &claims(), b"attacker-key-attacker-key-attack")),
        ("jku", by_head(head_with("jku", json!("https://evil.example/jwks")))),
        ("x5u", by_head(head_with("x5u", json!("https://evil.example/cert")))),
        ("crit", by_head(head_with("crit", json!(["exp"])))),
        ("b64 false", by_head(head_with("b64", json!(false)))),
        ("kid that walks", signed(&head_with("kid", json!("../../dev/null")), &claims(), b"")),
        ("kid with SQL", signed(&head_with("kid", json!("x' UNION SELECT 'k")), &claims(), b"k")),
        ("empty secret", signed(&head(), &claims(), b"")),
        ("public key as secret", signed(&head(), &claims(), PUBLIC.as_bytes())),
        ("other secret", signed(&head(), &claims(), b"another-secret-another-secret-an")),
        ("changed claims", format!("{h}.{}.{s}", b64(with("sub", json!("root")).to_string().as_bytes()))),
        ("changed signature", format!("{h}.{c}.{}", b64(&[7_u8; 32]))),
        ("expired", token_of(&with("exp", json!(now() - 60)))),
        ("exp missing", token_of(&without("exp"))),
        ("exp text", token_of(&with("exp", json!(soon.to_string())))),
        ("exp fraction", token_of(&with("exp", json!(soon as f64 + 0.5)))),
        ("exp negative", token_of(&with("exp", json!(-1)))),
        ("exp huge", token_of(&with("exp", json!(u64::MAX)))),
        (
            "exp beyond every number",
            text("{\"sub\":\"ann\",\"iss\":\"issuer\",\"aud\":\"toolyard\",\"exp\":1e400}"),
        ),
        ("exp null", token_of(&with("exp", Value::Null))),
        ("not yet", token_of(&with("nbf", json!(soon)))),
        ("nbf text", token_of(&with("nbf", json!("0")))),
        ("iss wrong", token_of(&with("iss", json!("somebody")))),
        ("iss missing", token_of(&without("iss"))),
        ("iss a number", token_of(&with("iss", json!(1)))),
        ("aud wrong", token_of(&with("aud", json!("other")))),
        ("aud missing", token_of(&without("aud"))),
        ("aud an object", token_of(&with("aud", json!({"toolyard": true})))),
        ("tenant of somebody else", token_of(&with("tenant", json!("acme")))),
        ("tenant a list", token_of(&with("tenant", json!(["default"])))),
        ("sub a number", token_of(&with("sub", json!(7)))),
        ("sub empty", token_of(&with("sub", json!("")))),
        ("sub too long", token_of(&with("sub", json!("x".repeat(300))))),
        (
            "repeated claim",
            text(&format!(
                "{{\"sub\":\"ann\",\"sub\":\"bob\",\"exp\":{soon},\"iss\":\"issuer\",\"aud\":\"toolyard\"}}"
            )),
        ),
        ("claims a list", text("[]")),
        ("claims not JSON", text("sub=ann")),
        ("too large", token_of(&with("pad", json!("x".repeat(9000))))),
        ("padded base64", format!("{h}=.{c}.{s}")),
    ]
}

#[tokio::test]
async fn x9_every_wrong_token_is_refused_with_the_same_text() {
    let env = [("TOOLYARD_JWT_ISSUER", "issuer"), ("TOOLYARD_JWT_AUDIENCE", "toolyard")];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let asked = |token: &str| {
        gateway.bare(Method::GET, "/api/smart-spaces").header("x-public-key", PUBLIC).bearer_auth(token)
    };
    fine(asked(&token_of(&claims()))).await;
    fine(asked(&token_of(&with("aud", json!(["other", "toolyard"]))))).await;
    let wrong = wrong_tokens();
    assert!(wrong.len() >= 40);
    for (what, token) in wrong {
        let (status, body) = ask(asked(&token)).await;
        assert_eq!((status.as_u16(), message(&body)), (401, INVALID), "{what}");
    }
    let (status, body) = ask(asked(&token_of(&without("sub")))).await;
    assert_eq!((status.as_u16(), message(&body)), (401, "JWT missing claim: sub"));
}

#[tokio::test]
async fn x9_a_token_works_only_with_the_public_key_of_its_tenant() {
    let gateway = Gateway::start().await;
    let made = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "public"})).await;
    let acme = made["key"].as_str().unwrap();
    let ask_with = |key: &str, claims: Value| {
        let token = token_of(&claims);
        ask(gateway.bare(Method::GET, "/api/smart-spaces").header("x-public-key", key).bearer_auth(token))
    };
    let plain = json!({"sub": "ann", "exp": now() + 600});
    let for_acme = json!({"sub": "ann", "exp": now() + 600, "tenant": "acme"});
    assert_eq!(ask_with(PUBLIC, plain.clone()).await.0, 200);
    assert_eq!(ask_with(acme, for_acme.clone()).await.0, 200);
    // All tenants share the secret: a token that names none is for `default` only.
    assert_eq!(ask_with(acme, plain).await.0, 401);
    assert_eq!(ask_with(PUBLIC, for_acme).await.0, 401);
}
