//! Limits, shapes and paces of requests (rows X5, H19).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Folder, Gateway, PATIENCE, SECRET, ask, fine, message};
use crate::yard::{eventually, join, new_space, new_user};

/// Sends raw bytes and answers all that comes back.
fn raw(gateway: &Gateway, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(gateway.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn x5_bodies_are_refused_by_size_before_they_are_read() {
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_LIMITS_BODY_BYTES", "1000")]).await;
    let large = json!({"name": "x".repeat(2000)}).to_string();
    let request =
        gateway.secret(Method::POST, "/api/smart-spaces").header("content-type", "application/json");
    let (status, body) = ask(request.body(large.clone())).await;
    assert_eq!(status, 413);
    assert_eq!(
        body["error"],
        json!({
            "code": "body_too_large", "message": "The body is larger than 1000 bytes", "limit": 1000
        })
    );
    // A body that does not say its size is counted as it comes.
    let head = format!(
        "POST /api/smart-spaces HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {SECRET}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    let chunks = format!("{head}{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    assert!(raw(&gateway, chunks.as_bytes()).starts_with("HTTP/1.1 413"));
    // One that announces a gigabyte is refused although nothing of it came.
    let announced = format!(
        "POST /api/smart-spaces HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {SECRET}\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\nconnection: close\r\n\r\n"
    );
    let started = Instant::now();
    assert!(raw(&gateway, announced.as_bytes()).starts_with("HTTP/1.1 413"));
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// Each kind of body has a limit of its own, which the refusal names; what the
/// other limits would refuse passes below it.
#[tokio::test]
async fn x5_each_kind_of_body_has_its_own_limit() {
    let env = [
        ("TOOLYARD_LIMITS_BODY_BYTES", "1000"),
        ("TOOLYARD_LIMITS_RESULT_BODY_BYTES", "2000"),
        ("TOOLYARD_LIMITS_CONVERSATION_BODY_BYTES", "3000"),
        ("TOOLYARD_LIMITS_FILE_BYTES", "4000"),
    ];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    gateway.post("/api/agents", json!({"config": small_agent()})).await;
    let entity = gateway.post("/api/entities/agent", json!({"agentId": "small"})).await;
    let space = new_space(&gateway).await;
    join(&gateway, &space, entity["entity"]["id"].as_str().unwrap()).await;
    let ann = new_user(&gateway, "ann").await;
    join(&gateway, &space, &ann).await;
    let said = format!("/api/smart-spaces/{space}/messages");
    let posted = gateway.post(&said, json!({"content": "call here {}", "entityId": ann})).await;
    let run = posted["runs"][0]["runId"].as_str().unwrap().to_owned();
    let waits = format!("/api/waits?runId={run}");
    eventually("the run waits", async || gateway.get(&waits).await["waits"][0].is_object()).await;
    let call = gateway.get(&waits).await["waits"][0]["toolCallId"].clone();
    let results = format!("/api/runs/{run}/tool-results");
    // So many bytes in all.
    let filled = |size: usize, mut body: Value, field: &str| {
        body[field] = json!("");
        let missing = size - body.to_string().len();
        body[field] = json!("x".repeat(missing));
        let body = body.to_string();
        assert_eq!(body.len(), size);
        body
    };
    let result = |size| filled(size, json!({"callId": call}), "result");
    let message = |size| filled(size, json!({"entityId": ann, "triggerAgents": false}), "content");
    let file = |size: usize| "x".repeat(size);
    let name = |size| filled(size, json!({}), "name");
    let json_type = "application/json";
    type OfSize<'a> = &'a dyn Fn(usize) -> String;
    let cases: [(&str, &str, usize, OfSize<'_>); 4] = [
        ("/api/smart-spaces", json_type, 1000, &name),
        (&results, json_type, 2000, &result),
        (&said, json_type, 3000, &message),
        ("/api/files", "text/plain", 4000, &file),
    ];
    for (path, media, limit, body) in cases {
        let post = |size| gateway.secret(Method::POST, path).header("content-type", media).body(body(size));
        let (status, refused) = ask(post(limit + 1)).await;
        assert_eq!((status.as_u16(), &refused["error"]["code"]), (413, &json!("body_too_large")), "{path}");
        assert_eq!(refused["error"]["limit"], limit, "{path}");
        let (status, taken) = ask(post(limit)).await;
        assert!(status.is_success() || path == "/api/smart-spaces", "{path}: {status} {taken}");
        assert_ne!(status, 413, "{path}");
    }
}

#[tokio::test]
async fn x5_a_head_over_32_kilobytes_is_refused() {
    let gateway = Gateway::start().await;
    let head = |size: usize| {
        let first = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        raw(&gateway, format!("{first}x-long: {}\r\n\r\n", "x".repeat(size)).as_bytes())
    };
    assert!(head(31 << 10).starts_with("HTTP/1.1 200"));
    // Whether it comes in one read or in several.
    for size in [32 << 10, 33 << 10, 60 << 10, 300 << 10] {
        let refused = head(size);
        assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431"), "{size}: {refused}");
    }
    fine(gateway.bare(Method::GET, "/health")).await;
}

/// A body that never ends is answered and hung up on, though nobody said how
/// long it would be.
#[tokio::test]
async fn x5_an_endless_body_is_cut_within_64_kilobytes_of_its_limit() {
    const LIMIT: usize = 100_000;
    let limit = LIMIT.to_string();
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_LIMITS_BODY_BYTES", &*limit)]).await;
    let mut socket = TcpStream::connect(gateway.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /api/smart-spaces HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {SECRET}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    for _ in 0..(LIMIT + (64 << 10)) / 0x1000 {
        // It may hang up while more is pushed.
        if socket.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    if socket.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413", "{}", String::from_utf8_lossy(&answer));
    }
    // Nobody takes more of it.
    let began = Instant::now();
    let mut more = 0;
    while socket.write_all(chunk.as_bytes()).is_ok() {
        more += chunk.len();
        assert!(more < 64 << 20 && began.elapsed() < PATIENCE, "{more} bytes more were taken");
    }
    fine(gateway.bare(Method::GET, "/health")).await;
}

/// An agent with a tool that waits for its client.
fn small_agent() -> Value {
    json!({"agent": {"name": "small"}, "model": {"provider": "demo", "name": "demo"}, "tools": [
        {"name": "here", "description": "Runs at a client", "inputSchema": {"type": "object", "properties": {}}},
    ]})
}

#[tokio::test]
async fn x5_odd_bodies_are_refused_with_a_reason() {
    let gateway = Gateway::start().await;
    let post = || gateway.secret(Method::POST, "/api/entities");
    let json_post = |body: String| post().header("content-type", "application/json").body(body);
    let deep = format!("{{\"type\":\"human\",\"metadata\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: [(reqwest::RequestBuilder, u16, &str, &str); 9] = [
        (json_post("{".to_owned()), 400, "invalid_json", "The body is not JSON"),
        (json_post(deep), 400, "invalid_json", "The body nests deeper than 64 levels"),
        (json_post("{}".to_owned()), 400, "missing_field", "Missing required field: type"),
        (json_post("{\"type\":\"robot\"}".to_owned()), 400, "bad_request", "type: unknown variant `robot`"),
        (
            json_post("{\"type\":\"human\",\"type\":\"human\"}".to_owned()),
            400,
            "bad_request",
            "duplicate field",
        ),
        (json_post("[\"human\"]".to_owned()), 400, "bad_request", "The body must be a JSON object"),
        (post().body("{\"type\":\"human\"}"), 415, "unsupported_media_type", "Send the body as"),
        (
            post().header("content-type", "text/plain").body("{\"type\":\"human\"}"),
            415,
            "unsupported_media_type",
            "Send the body as",
        ),
        (
            post()
                .header("content-type", "application/json")
                .header("content-encoding", "gzip")
                .body(vec![31, 139]),
            415,
            "unsupported_media_type",
            "Compressed bodies",
        ),
    ];
    for (request, status, code, text) in cases {
        let (got, body) = ask(request).await;
        assert_eq!(got.as_u16(), status, "{body}");
        assert_eq!(body["error"]["code"], code, "{body}");
        assert!(message(&body).starts_with(text), "{body}");
    }
    // Unknown fields are for newer gateways.
    fine(json_post("{\"type\":\"human\",\"newer\":1}".to_owned())).await;
}

#[tokio::test]
async fn x5_a_slow_head_and_a_slow_body_are_cut() {
    let env = [("TOOLYARD_LIMITS_HEADER_SECONDS", "1"), ("TOOLYARD_LIMITS_BODY_SECONDS", "1")];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let started = Instant::now();
    let silent = raw(&gateway, b"");
    let half_head = raw(&gateway, b"GET /health HTTP/1.1\r\nhost: local");
    let half_body = format!(
        "POST /api/smart-spaces HTTP/1.1\r\nhost: localhost\r\nx-secret-key: {SECRET}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{\"na"
    );
    let half_body = raw(&gateway, half_body.as_bytes());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(silent, "");
    assert!(half_head.is_empty() || half_head.starts_with("HTTP/1.1 408"), "{half_head}");
    assert!(half_body.contains("The body came too slowly"), "{half_body}");
    fine(gateway.bare(Method::GET, "/health")).await;
}

#[tokio::test]
async fn errors_have_one_shape_also_for_unknown_routes_and_methods() {
    let gateway = Gateway::start().await;
    let cases = [
        (gateway.bare(Method::GET, "/nowhere"), 404, "not_found"),
        (gateway.secret(Method::GET, "/api/agents/%ff"), 400, "bad_request"),
        (gateway.bare(Method::PUT, "/api/agents"), 405, "method_not_allowed"),
        (gateway.secret(Method::GET, "/api/agents?limit=0"), 400, "bad_request"),
        (gateway.secret(Method::GET, "/api/runs?status=odd"), 400, "invalid_cursor"),
        (gateway.secret(Method::GET, "/api/runs/run_none"), 404, "not_found"),
        (gateway.secret(Method::GET, "/api/runs/..%2f..%2fetc"), 404, "not_found"),
    ];
    for (request, status, code) in cases {
        let (got, body) = ask(request).await;
        assert_eq!((got.as_u16(), &body["error"]["code"]), (status, &Value::from(code)), "{body}");
        assert!(body["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn a_user_that_asks_too_often_is_told_when_to_come_back() {
    let env = [("TOOLYARD_LIMITS_PUBLIC_RATE", "1"), ("TOOLYARD_LIMITS_BURST", "3")];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    for _ in 0..3 {
        fine(gateway.user("ann", Method::GET, "/api/smart-spaces")).await;
    }
    let refused = gateway.user("ann", Method::GET, "/api/smart-spaces").send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(wait >= 1);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["code"], "rate_limited");
    assert_eq!(body["error"]["limit"], 1);
    // Others are not concerned.
    fine(gateway.user("bob", Method::GET, "/api/smart-spaces")).await;
    for _ in 0..10 {
        fine(gateway.secret(Method::GET, "/api/smart-spaces")).await;
    }
}

#[tokio::test]
async fn health_ready_metrics_and_the_document_need_no_key() {
    let gateway = Gateway::start().await;
    assert_eq!(fine(gateway.bare(Method::GET, "/health")).await["status"], "ok");
    assert_eq!(fine(gateway.bare(Method::GET, "/ready")).await["status"], "ready");
    assert_eq!(fine(gateway.bare(Method::GET, "/api/openapi.json")).await["openapi"], "3.1.0");
    let (_, text) = ask(gateway.bare(Method::GET, "/metrics")).await;
    let text = text.as_str().unwrap();
    assert!(
        text.contains("toolyard_requests_total{method=\"GET\",route=\"/health\",status=\"200\"} 1"),
        "{text}"
    );
}

#[tokio::test]
async fn metrics_need_a_secret_key_of_the_operators_tenant_when_other_machines_reach_the_gateway() {
    let gateway = Gateway::start_on("0.0.0.0:0", Folder::new(), &[]).await;
    fine(gateway.bare(Method::GET, "/health")).await;
    assert_eq!(ask(gateway.bare(Method::GET, "/metrics")).await.0, 401);
    assert_eq!(ask(gateway.user("ann", Method::GET, "/metrics")).await.0, 401);
    assert_eq!(ask(gateway.secret(Method::GET, "/metrics")).await.0, 200);
    for (tenant, wanted) in [("default", 200), ("acme", 403)] {
        let made = gateway.post("/api/keys", json!({"tenant": tenant, "kind": "secret"})).await;
        let asked =
            gateway.bare(Method::GET, "/metrics").header("x-secret-key", made["key"].as_str().unwrap());
        assert_eq!(ask(asked).await.0, wanted, "{tenant}");
    }
}

#[tokio::test]
async fn a_backend_and_a_program_that_registers_are_held_to_their_rates_too() {
    let env = [
        ("TOOLYARD_LIMITS_PUBLIC_RATE", "1"),
        ("TOOLYARD_LIMITS_SECRET_RATE", "1"),
        ("TOOLYARD_LIMITS_BURST", "2"),
    ];
    let gateway = Gateway::start_with(Folder::new(), &env).await;
    let register = || {
        let body = json!({"clientId": "cli_1", "clientType": "robot"});
        gateway.user("ann", Method::POST, "/api/clients/register").json(&body)
    };
    let list = || gateway.secret(Method::GET, "/api/runs");
    for (n, request) in [register(), register(), list(), list()].into_iter().enumerate() {
        let (status, body) = ask(request).await;
        assert_eq!(status, 200, "{n}: {body}");
    }
    for request in [register(), list()] {
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), 429);
        assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
        let body: Value = refused.json().await.unwrap();
        assert_eq!((&body["error"]["code"], &body["error"]["limit"]), (&json!("rate_limited"), &json!(1)));
    }
}

#[tokio::test]
async fn a_filter_that_a_list_does_not_know_is_refused_and_not_ignored() {
    let gateway = Gateway::start().await;
    for path in
        ["/api/waits?runid=x", "/api/pending-calls?run=x", "/api/approvals?space=x", "/api/runs?state=x"]
    {
        let (status, refused) = ask(gateway.secret(Method::GET, path)).await;
        assert_eq!((status.as_u16(), &refused["error"]["code"]), (400, &json!("bad_request")), "{path}");
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(text.contains("is no filter of this list. It knows "), "{path}: {text}");
    }
}
