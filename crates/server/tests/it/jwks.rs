//! X9 with the keys of a foreign issuer.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, JWT_SECRET, PUBLIC, ask, b64, message, now, signed};
use crate::issuer::{Issuer, Pair};
use crate::tokens::{INVALID, claims, with, without};

async fn gateway(issuer: &Issuer) -> Gateway {
    let env = [
        ("TOOLYARD_JWT_JWKS_URL", issuer.url.as_str()),
        ("TOOLYARD_JWT_ISSUER", "issuer"),
        ("TOOLYARD_JWT_AUDIENCE", "toolyard"),
    ];
    Gateway::start_with(Folder::new(), &env).await
}

async fn status(gateway: &Gateway, token: &str) -> (u16, String) {
    let request = gateway.bare(Method::GET, "/api/smart-spaces").header("x-public-key", PUBLIC);
    let (status, body) = ask(request.bearer_auth(token)).await;
    (status.as_u16(), message(&body).to_owned())
}

fn wrong_tokens(rsa: &Pair, ec: &Pair, ed: &Pair) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let mut add = |what: &str, token: String| wrong.push((what.to_owned(), token));
    let foreign = [Pair::rsa(), Pair::ec(), Pair::ed()];
    for ((pair, kid), stranger) in [(rsa, "r"), (ec, "e"), (ed, "d")].into_iter().zip(&foreign) {
        let alg = pair.alg();
        let good = pair.token(kid, &claims());
        let parts: Vec<&str> = good.split('.').collect();
        let (h, c, s) = (parts[0], parts[1], parts[2]);
        let head = |extra: Value| {
            let mut head = json!({"alg": alg, "kid": kid});
            head.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            head
        };
        let by = |extra: Value| pair.sign(&head(extra), &claims());
        add(&format!("{alg}: somebody else's key"), stranger.token(kid, &claims()));
        add(&format!("{alg}: no signature"), format!("{h}.{c}."));
        add(&format!("{alg}: zero signature"), format!("{h}.{c}.{}", b64(&[0; 64])));
        add(
            &format!("{alg}: changed claims"),
            format!("{h}.{}.{s}", b64(with("sub", json!("root")).to_string().as_bytes())),
        );
        let hmac = json!({"alg": "HS256", "kid": kid});
        add(&format!("{alg}: public key as a secret"), signed(&hmac, &claims(), &pair.public_bytes()));
        let shown = pair.jwk(kid).to_string();
        add(&format!("{alg}: key document as a secret"), signed(&hmac, &claims(), shown.as_bytes()));
        add(&format!("{alg}: unknown kid"), by(json!({"kid": "other"})));
        add(&format!("{alg}: no kid among several"), pair.sign(&json!({"alg": alg}), &claims()));
        add(&format!("{alg}: kid a number"), by(json!({"kid": 1})));
        add(&format!("{alg}: kid null"), by(json!({"kid": null})));
        add(&format!("{alg}: kid that walks"), by(json!({"kid": "../../../dev/null"})));
        add(&format!("{alg}: kid with SQL"), by(json!({"kid": "x' OR '1'='1"})));
        add(&format!("{alg}: kid too long"), by(json!({"kid": "x".repeat(5000)})));
        add(
            &format!("{alg}: embedded jwk"),
            stranger.sign(&head(json!({"jwk": stranger.jwk(kid)})), &claims()),
        );
        add(&format!("{alg}: jku"), by(json!({"jku": "https://evil.example/jwks"})));
        add(&format!("{alg}: x5u"), by(json!({"x5u": "https://evil.example/cert"})));
        add(&format!("{alg}: x5c"), by(json!({"x5c": ["AAAA"]})));
        add(&format!("{alg}: crit"), by(json!({"crit": ["exp"]})));
        for other in ["none", "None", "HS256", "RS256", "ES256", "EdDSA", "PS256", "RS512", "ES384", "rs256"]
        {
            if other != alg {
                add(&format!("{alg}: says {other}"), by(json!({"alg": other})));
            }
        }
        add(&format!("{alg}: expired"), pair.token(kid, &with("exp", json!(now() - 60))));
        add(&format!("{alg}: no exp"), pair.token(kid, &without("exp")));
        add(&format!("{alg}: exp text"), pair.token(kid, &with("exp", json!((now() + 600).to_string()))));
        add(&format!("{alg}: exp fraction"), pair.token(kid, &with("exp", json!(now() as f64 + 600.5))));
        add(&format!("{alg}: not yet"), pair.token(kid, &with("nbf", json!(now() + 600))));
        add(&format!("{alg}: other issuer"), pair.token(kid, &with("iss", json!("somebody"))));
        add(&format!("{alg}: no issuer"), pair.token(kid, &without("iss")));
        add(&format!("{alg}: other audience"), pair.token(kid, &with("aud", json!("other"))));
        add(&format!("{alg}: no audience"), pair.token(kid, &without("aud")));
        add(&format!("{alg}: other tenant"), pair.token(kid, &with("tenant", json!("acme"))));
    }
    let own = signed(&json!({"alg": "HS256"}), &claims(), JWT_SECRET.as_bytes());
    add("the gateway's own secret", own);
    add("a key of encryption", rsa.token("enc", &claims()));
    add("a key of another algorithm", rsa.token("rs512", &claims()));
    add("a key that only signs", rsa.token("ops", &claims()));
    add(
        "a shared key in the set",
        signed(&json!({"alg": "HS256", "kid": "oct"}), &claims(), b"shared-shared"),
    );
    wrong
}

#[tokio::test]
async fn x9_tokens_of_an_issuer_pass_by_their_own_key_only() {
    let (rsa, ec, ed) = (Pair::rsa(), Pair::ec(), Pair::ed());
    let mut odd = vec![json!({"kty": "oct", "kid": "oct", "k": b64(b"shared-shared")}), json!(7), json!({})];
    for (kid, name, value) in
        [("enc", "use", json!("enc")), ("rs512", "alg", json!("RS512")), ("ops", "key_ops", json!(["sign"]))]
    {
        let mut jwk = rsa.jwk(kid);
        jwk[name] = value;
        odd.push(jwk);
    }
    let keys = [vec![rsa.jwk("r"), ec.jwk("e"), ed.jwk("d")], odd].concat();
    let issuer = Issuer::start(&keys).await;
    let gateway = gateway(&issuer).await;
    assert_eq!(issuer.asked(), 0, "nobody asked for keys yet");
    for (pair, kid) in [(&rsa, "r"), (&ec, "e"), (&ed, "d")] {
        assert_eq!(status(&gateway, &pair.token(kid, &claims())).await.0, 200, "{kid}");
    }
    assert_eq!(issuer.asked(), 1, "the keys are kept");
    let wrong = wrong_tokens(&rsa, &ec, &ed);
    assert!(wrong.len() >= 40, "{}", wrong.len());
    for (what, token) in wrong {
        assert_eq!(status(&gateway, &token).await, (401, INVALID.to_owned()), "{what}");
    }
    // Twelve tokens named keys that are not there.
    assert!(issuer.asked() <= 3, "{} fetches", issuer.asked());
}

#[tokio::test]
async fn x9_a_new_key_is_found_and_an_old_one_forgotten() {
    let (old, new) = (Pair::ec(), Pair::ed());
    let issuer = Issuer::start(&[old.jwk("old")]).await;
    let gateway = gateway(&issuer).await;
    assert_eq!(status(&gateway, &old.token("old", &claims())).await.0, 200);
    // The only key need not be named.
    assert_eq!(status(&gateway, &old.sign(&json!({"alg": "ES256"}), &claims())).await.0, 200);
    issuer.show(&[new.jwk("new")]);
    assert_eq!(status(&gateway, &new.token("new", &claims())).await.0, 200);
    assert_eq!(issuer.asked(), 2);
    assert_eq!(status(&gateway, &old.token("old", &claims())).await.0, 401);
    // An issuer that is away takes nothing from those it has vouched for.
    issuer.fail();
    assert_eq!(status(&gateway, &old.token("older", &claims())).await.0, 401);
    assert_eq!(status(&gateway, &new.token("new", &claims())).await.0, 200);
}

#[tokio::test]
async fn x9_an_issuer_that_was_never_reached_is_not_the_users_fault() {
    let pair = Pair::ed();
    let issuer = Issuer::start(&[pair.jwk("a")]).await;
    issuer.fail();
    let gateway = gateway(&issuer).await;
    let (code, said) = status(&gateway, &pair.token("a", &claims())).await;
    assert_eq!((code, said.contains("cannot be reached")), (503, true), "{said}");
    issuer.show(&[pair.jwk("a")]);
    assert_eq!(status(&gateway, &pair.token("a", &claims())).await.0, 200);
}
