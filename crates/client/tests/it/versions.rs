//! Versions of both sides.

use std::sync::{Arc, Mutex};

use toolyard_client::{Client, ClientEvent};

use crate::gateway::{Gateway, SECRET};
use crate::upstream::serve;

#[tokio::test]
async fn h68_every_answer_names_the_gateway_s_version_and_a_newer_library_is_warned() {
    let gateway = Gateway::start();
    let client = gateway.client();
    client.request("/api/agents").await.unwrap();
    assert_eq!(client.gateway_version().as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(client.gateway_warnings(), Vec::<String>::new());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for (path, status) in
        [("/health", 200), ("/api/agents", 200), ("/api/nothing", 404), ("/api/runs/x/stream", 404)]
    {
        for (sdk, warned) in [("client-rs/9.0.0", true), ("client-ts/0.0.1", false)] {
            let asked = http.get(format!("{}{path}", gateway.url)).header("x-secret-key", SECRET);
            let answer = asked.header("x-toolyard-sdk", sdk).send().await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
            assert_eq!(answer.headers()["x-toolyard-version"], env!("CARGO_PKG_VERSION"), "{path}");
            assert_eq!(answer.headers().contains_key("x-toolyard-warning"), warned, "{path} {sdk}");
        }
    }
}

#[tokio::test]
async fn h68_the_client_says_what_it_is_and_tells_each_warning_once() {
    let (url, heard) = serve(|_, _| {
        b"HTTP/1.1 200 OK\r\nx-toolyard-version: 7.0.0\r\nx-toolyard-warning: no holograms\r\nnew-header: x\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{\"new\": [1, 2]}".to_vec()
    })
    .await;
    let client = Client::builder().base_url(url).build().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    client.on_event(move |event| {
        if let ClientEvent::GatewayWarning(text) = event {
            kept.lock().unwrap().push(text.clone());
        }
    });
    for _ in 0..2 {
        client.request("/api/models").await.unwrap();
    }
    assert_eq!(*told.lock().unwrap(), ["no holograms"]);
    assert_eq!((client.gateway_version().as_deref(), client.gateway_warnings().len()), (Some("7.0.0"), 1));
    let sdk = heard.lock().unwrap()[0].header("x-toolyard-sdk");
    assert_eq!(sdk, Some(format!("client-rs/{}", env!("CARGO_PKG_VERSION"))));
}
