//! Who may call, and what the others hear (rows G31, X6).

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Folder, Gateway, PUBLIC, SECRET, ask, fine, message, token, toolyard};
use crate::yard::{Yard, eventually};

#[tokio::test]
async fn g31_every_refusal_has_its_documented_text() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let space = format!("/api/smart-spaces/{}", yard.space);
    let get = |path: &str| gateway.bare(Method::GET, path);
    let cases = [
        (get("/api/agents"), 401, "Missing x-secret-key header"),
        (get("/api/agents").header("x-secret-key", "wrong"), 401, "Invalid secret key"),
        (get("/api/agents").bearer_auth("wrong"), 401, "Invalid secret key"),
        (get("/api/agents").header("x-public-key", PUBLIC), 401, "Missing x-secret-key header"),
        (
            get(&space),
            401,
            "Authentication required. Provide x-secret-key, or x-public-key + Authorization header.",
        ),
        (get(&space).bearer_auth(token("ann")), 401, "Missing x-public-key header"),
        (get(&space).header("x-public-key", "wrong").bearer_auth(token("ann")), 401, "Invalid public key"),
        (get(&space).header("x-public-key", PUBLIC), 401, "Missing or invalid Authorization header"),
        (
            get(&space).header("x-public-key", PUBLIC).header("authorization", "Basic x"),
            401,
            "Missing or invalid Authorization header",
        ),
        (get(&space).header("x-public-key", PUBLIC).bearer_auth("a.b.c"), 401, "Invalid or expired JWT"),
        (gateway.user("eve", Method::GET, &space), 403, "Entity is not a member of this SmartSpace"),
        // A public key is no secret key, and the other way round.
        (get("/api/agents").header("x-secret-key", PUBLIC), 401, "Invalid secret key"),
        (get(&space).header("x-public-key", SECRET).bearer_auth(token("ann")), 401, "Invalid public key"),
    ];
    for (request, status, text) in cases {
        let (got, body) = ask(request).await;
        assert_eq!((got.as_u16(), message(&body)), (status, text));
    }
    for request in [
        get("/api/agents").header("x-secret-key", SECRET),
        get("/api/agents").bearer_auth(SECRET),
        gateway.user("ann", Method::GET, &space),
    ] {
        fine(request).await;
    }
}

#[tokio::test]
async fn an_unknown_user_is_refused_unless_entities_are_made_by_themselves() {
    let strict = Gateway::start_with(Folder::new(), &[("TOOLYARD_JWT_AUTO_ENTITIES", "false")]).await;
    let (status, body) = ask(strict.user("nobody", Method::GET, "/api/smart-spaces")).await;
    assert_eq!((status.as_u16(), message(&body)), (403, "No entity found for this user"));

    let open = Gateway::start().await;
    let asked = (0..8).map(|_| fine(open.user("somebody", Method::GET, "/api/smart-spaces")));
    futures::future::join_all(asked).await;
    let entities = open.get("/api/entities?type=human").await;
    assert_eq!(entities["entities"].as_array().unwrap().len(), 1, "{entities}");
    assert_eq!(entities["entities"][0]["externalId"], "somebody");
}

#[tokio::test]
async fn a_stored_key_works_for_its_tenant_and_ends_within_a_second_of_its_revocation() {
    let gateway = Gateway::start().await;
    let made = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let (key, id) = (made["key"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned());
    let asked = || gateway.bare(Method::GET, "/api/agents").header("x-secret-key", &key);
    fine(asked()).await;
    // Only the hash is kept.
    let stored = std::fs::read(gateway.folder.path().join("data/toolyard.db-wal")).unwrap();
    assert!(!stored.windows(key.len()).any(|w| w == key.as_bytes()));

    let revoke = gateway.secret(Method::DELETE, &format!("/api/keys/{id}?tenant=acme"));
    assert_eq!(revoke.send().await.unwrap().status(), 204);
    let started = Instant::now();
    eventually("the revocation", || async { ask(asked()).await.0 == 401 }).await;
    assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
}

#[tokio::test]
async fn making_a_key_takes_no_idempotency_key_because_its_answer_is_not_stored() {
    let gateway = Gateway::start().await;
    let request = gateway.secret(Method::POST, "/api/keys").json(&json!({"kind": "secret"}));
    let (status, body) = ask(request.header("idempotency-key", "k")).await;
    assert_eq!((status.as_u16(), &body["error"]["code"]), (400, &json!("bad_request")));
    assert!(message(&body).starts_with("Idempotency-Key: "), "{body}");
    assert_eq!(gateway.get("/api/keys").await["keys"], json!([]));
}

#[tokio::test]
async fn only_the_operators_key_speaks_for_other_tenants() {
    let gateway = Gateway::start().await;
    let made = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let acme = made["key"].as_str().unwrap();
    let create = |tenant: &str| {
        let body = json!({"tenant": tenant, "kind": "public"});
        gateway.bare(Method::POST, "/api/keys").header("x-secret-key", acme).json(&body)
    };
    assert_eq!(ask(create("default")).await.0, 404);
    assert_eq!(ask(create("acme")).await.0, 201);
    let listed = fine(gateway.bare(Method::GET, "/api/keys").header("x-secret-key", acme)).await;
    let tenants: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|k| &k["tenant"]).collect();
    assert_eq!(tenants, ["acme", "acme"]);
    let made = made["id"].as_str().unwrap();
    let revoke = gateway.bare(Method::DELETE, &format!("/api/keys/{made}?tenant=default"));
    assert_eq!(ask(revoke.header("x-secret-key", acme)).await.0, 404);
}

#[tokio::test]
async fn the_first_start_makes_keys_shows_the_secret_once_and_keeps_them_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let unset = [("TOOLYARD_SECRET_KEY", ""), ("TOOLYARD_PUBLIC_KEY", ""), ("TOOLYARD_JWT_SECRET", "")];
    let gateway = Gateway::start_with(Folder::new(), &unset).await;
    let file = gateway.folder.path().join("data/keys.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let secret = kept["secretKey"].as_str().unwrap().to_owned();
    eventually("the banner", || async { gateway.out().contains(&secret) }).await;
    assert_eq!(gateway.out().matches(&secret).count(), 1);
    // The lines after `next` work as they are.
    assert!(gateway.out().contains(&format!("export TOOLYARD_SECRET_KEY={secret}\n")), "{}", gateway.out());
    fine(gateway.bare(Method::GET, "/api/agents").header("x-secret-key", &secret)).await;

    let again = Gateway::start_with(gateway.kill(), &unset).await;
    fine(again.bare(Method::GET, "/api/agents").header("x-secret-key", &secret)).await;
    assert!(!again.out().contains(&secret));
}

#[tokio::test]
async fn auth_off_works_on_loopback_and_is_refused_elsewhere() {
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_AUTH", "off")]).await;
    fine(gateway.bare(Method::GET, "/api/agents")).await;
    // A wrong key is still wrong.
    let (status, _) = ask(gateway.bare(Method::GET, "/api/agents").header("x-secret-key", "wrong")).await;
    assert_eq!(status, 401);

    let folder = Folder::new();
    let refused = toolyard(folder.path())
        .args(["serve", "--listen", "0.0.0.0:0"])
        .env("TOOLYARD_AUTH", "off")
        .output()
        .unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
}
