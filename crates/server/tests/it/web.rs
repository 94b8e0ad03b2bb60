//! The web app: what a browser gets, and who gets a key for it.

use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::gateway::{Folder, Gateway, PATIENCE, SECRET};

const PAGE: &str = "text/html,application/xhtml+xml";

async fn page(gateway: &Gateway, path: &str) -> (StatusCode, HeaderMap, String) {
    let answer = gateway.bare(Method::GET, path).header(ACCEPT, PAGE).send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.text().await.unwrap())
}

/// Asks for a key as a page does that comes from an origin.
async fn knock(gateway: &Gateway, origin: Option<&str>, body: Value) -> (StatusCode, Value) {
    let mut request = gateway.bare(Method::POST, "/api/session").json(&body);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status();
    (status, answer.json().await.unwrap_or_default())
}

async fn works(gateway: &Gateway, key: &str) -> bool {
    let asked = gateway.bare(Method::GET, "/api/agents").header("x-secret-key", key).send().await.unwrap();
    asked.status() == StatusCode::OK
}

/// The code of the address that the gateway prints when it listens.
fn printed_code(gateway: &Gateway) -> String {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some((_, rest)) = gateway.out().split_once("#code=")
            && let Some((code, _)) = rest.split_once(' ')
        {
            return code.to_owned();
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("no address was printed: {}", gateway.out());
}

/// With or without a built page: the address of every view answers with HTML
/// under a policy that lets in no foreign code.
#[tokio::test]
async fn every_view_has_an_address_and_a_strict_policy() {
    let gateway = Gateway::start().await;
    for path in ["/", "/runs", "/c/spc_none", "/agents/assistant"] {
        let (status, headers, text) = page(&gateway, path).await;
        assert_eq!(status, 200, "{path}");
        assert!(text.to_lowercase().contains("<!doctype html>"), "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers["referrer-policy"], "no-referrer");
    }
}

/// C10: a page may call MCP servers that the operator names, and no others.
#[tokio::test]
async fn c10_the_policy_names_the_mcp_servers_that_a_page_may_call() {
    let connect = |headers: &HeaderMap| {
        let policy = headers["content-security-policy"].to_str().unwrap().to_owned();
        let part = policy.split("; ").find(|part| part.starts_with("connect-src")).map(ToOwned::to_owned);
        part.unwrap()
    };
    let gateway = Gateway::start().await;
    let (_, headers, _) = page(&gateway, "/").await;
    assert_eq!(connect(&headers), "connect-src 'self' http://localhost:* http://127.0.0.1:*");
    let named = [("TOOLYARD_WEB_APP_MCP_ORIGINS", "https://mcp.example,http://127.0.0.1:9000")];
    let gateway = Gateway::start_with(Folder::new(), &named).await;
    let (_, headers, _) = page(&gateway, "/").await;
    assert_eq!(connect(&headers), "connect-src 'self' https://mcp.example http://127.0.0.1:9000");
}

#[tokio::test]
async fn what_belongs_to_programs_answers_programs() {
    let gateway = Gateway::start().await;
    for path in ["/api/nothing", "/v1/nothing", "/.well-known/nothing"] {
        let (status, headers, _) = page(&gateway, path).await;
        assert_ne!(status, 200, "{path}");
        assert!(!headers["content-type"].to_str().unwrap().contains("html"), "{path}");
    }
    // A program that asks for no page gets none, and a missing file is missing.
    let answer = gateway.bare(Method::GET, "/runs").send().await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_eq!(page(&gateway, "/assets/old-0000.js").await.0, 404);
    let answer = gateway.bare(Method::POST, "/runs").header(ACCEPT, PAGE).send().await.unwrap();
    assert_eq!(answer.status(), 404);
}

#[tokio::test]
async fn x11_only_the_gateways_own_page_gets_a_key_without_a_code() {
    let gateway = Gateway::start().await;
    let own = gateway.url.clone();
    let (status, body) = knock(&gateway, Some(&own), json!({})).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(body["defaultAgent"], "assistant");
    let key = body["key"].as_str().unwrap();
    assert_ne!(key, SECRET);
    assert!(works(&gateway, key).await);
    // Other local programs may call with a key, and get none.
    for origin in [None, Some("http://localhost:3000"), Some("http://127.0.0.1:1")] {
        let (status, body) = knock(&gateway, origin, json!({})).await;
        assert_eq!(status, 401, "{origin:?}: {body}");
    }
    let (status, _) = knock(&gateway, Some("http://evil.example"), json!({})).await;
    assert_eq!(status, 403);
    // A page that is embedded elsewhere says so by itself.
    let request = gateway.bare(Method::POST, "/api/session").header("origin", &own);
    let answer = request.header("sec-fetch-site", "cross-site").send().await.unwrap();
    assert_eq!(answer.status(), 401);
}

#[tokio::test]
async fn keys_of_pages_do_not_pile_up() {
    let gateway = Gateway::start().await;
    let own = gateway.url.clone();
    let mut keys = Vec::new();
    for _ in 0..34 {
        let (status, body) = knock(&gateway, Some(&own), json!({})).await;
        assert_eq!(status, 201, "{body}");
        keys.push(body["key"].as_str().unwrap().to_owned());
    }
    let listed = gateway.get("/api/keys").await;
    let pages = listed["keys"].as_array().unwrap().iter().filter(|key| key["label"] == "web app").count();
    assert_eq!(pages, 32);
    assert!(!works(&gateway, &keys[1]).await && works(&gateway, &keys[2]).await);
    assert!(works(&gateway, &keys[33]).await);
    // Nobody's own key goes with them.
    let mine = gateway.secret(Method::POST, "/api/keys").json(&json!({"kind": "secret", "label": "web app"}));
    assert_eq!(mine.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn in_production_the_code_of_the_start_opens_the_page_once() {
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_MODE", "production")]).await;
    let own = gateway.url.clone();
    assert_eq!(knock(&gateway, Some(&own), json!({})).await.0, 401);
    assert_eq!(knock(&gateway, Some(&own), json!({"code": "guess"})).await.0, 401);
    let code = printed_code(&gateway);
    let (status, body) = knock(&gateway, Some(&own), json!({"code": code})).await;
    assert_eq!(status, 201, "{body}");
    assert!(works(&gateway, body["key"].as_str().unwrap()).await);
    assert_eq!(knock(&gateway, Some(&own), json!({"code": code})).await.0, 401, "a code is good once");
}

/// A server that has one document for everybody.
async fn host_of(document: String) -> (String, tokio::task::JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut task = tokio::task::JoinSet::new();
    task.spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            if socket.read(&mut head).await.unwrap_or(0) == 0 {
                continue;
            }
            let length = document.len();
            let text = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{document}"
            );
            let _ = socket.write_all(text.as_bytes()).await;
        }
    });
    (address, task)
}

#[tokio::test]
async fn x10_a_plugin_is_read_from_an_address_through_the_guard_and_nothing_else_is() {
    let plugin = crate::plugins::changed(|_| {});
    let (host, _serving) = host_of(plugin.to_string()).await;
    let (other, _other) = host_of(json!({"secret": "of the inside"}).to_string()).await;
    let open = format!("{host},{other}");
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_ALLOW_PRIVATE_NETWORK", &open)]).await;
    let fetch = async |gateway: &Gateway, address: &str| {
        let body = json!({"url": format!("http://{address}/p.json")});
        let answer = gateway.secret(Method::POST, "/api/plugins/fetch").json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, body) = fetch(&gateway, &host).await;
    assert_eq!((status, &body["plugin"]["id"]), (200, &plugin["id"]), "{body}");
    let (status, body) = fetch(&gateway, &other).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_plugin")), "{body}");
    assert!(!body.to_string().contains("of the inside"));
    let strict = Gateway::start().await;
    let (status, body) = fetch(&strict, &host).await;
    assert_eq!(status, 400, "{body}");
}
