//! X11: a page on the internet does not reach a local gateway.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use reqwest::Method;

use crate::gateway::{Folder, Gateway, PATIENCE, SECRET};

/// The status of a request with these header lines.
fn status(gateway: &Gateway, lines: &[&str]) -> u16 {
    let mut socket = TcpStream::connect(gateway.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = lines.join("\r\n");
    let request =
        format!("GET /api/agents HTTP/1.1\r\n{head}\r\nx-secret-key: {SECRET}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn x11_foreign_hosts_and_origins_are_refused_on_loopback() {
    let gateway = Gateway::start().await;
    let port = gateway.address().split(':').nth(1).unwrap().to_owned();
    let own = format!("host: 127.0.0.1:{port}");
    let own_origin = format!("origin: http://127.0.0.1:{port}");
    let allowed: [&[&str]; 8] = [
        &[&own],
        &["host: localhost"],
        &["host: LOCALHOST:1234"],
        &["host: [::1]:8787"],
        &[&own, &own_origin],
        &[&own, "origin: http://localhost:3000"],
        &["host: localhost:9999", "origin: http://localhost:9999"],
        &[&own, "origin: http://127.0.0.1:5173"],
    ];
    for lines in allowed {
        assert_eq!(status(&gateway, lines), 200, "{lines:?}");
    }
    let refused: [&[&str]; 14] = [
        &["host: evil.example"],
        &["host: evil.example:8787"],
        &["host: localhost.evil.example"],
        &["host: 127.0.0.1.evil.example"],
        &["host: 127.0.0.1@evil.example"],
        &["host: 169.254.169.254"],
        &["host: localhost:port"],
        &["host: localhost", "host: evil.example"],
        &[&own, "origin: null"],
        &[&own, "origin: http://evil.example"],
        &[&own, "origin: https://localhost.evil.example"],
        &[&own, "origin: http://localhost:3000", "origin: http://evil.example"],
        &[&own, "origin: file://"],
        &["host: evil.example", "origin: http://evil.example"],
    ];
    for lines in refused {
        let got = status(&gateway, lines);
        assert!(got == 403 || got == 400, "{lines:?} got {got}");
    }
    assert_eq!(status(&gateway, &[]), 403, "no host at all");
}

#[tokio::test]
async fn browsers_are_told_which_origins_may_call() {
    let gateway = Gateway::start().await;
    let ask = |origin: &'static str| {
        gateway
            .bare(reqwest::Method::OPTIONS, "/api/smart-spaces")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,x-public-key,content-type")
            .send()
    };
    let good = ask("http://localhost:5173").await.unwrap();
    assert_eq!(good.headers()["access-control-allow-origin"], "http://localhost:5173");
    let bad = ask("http://evil.example").await.unwrap();
    assert_eq!(bad.status(), 403);
    assert!(bad.headers().get("access-control-allow-origin").is_none());
}

/// What a page of an origin is told about: a request ahead, a list, a stream.
async fn told(gateway: &Gateway, space: &str, origin: &str) -> Vec<Option<String>> {
    let stream = format!("/api/smart-spaces/{space}/stream");
    let ahead = gateway.bare(Method::OPTIONS, "/api/runs").header("access-control-request-method", "POST");
    let mut told = Vec::new();
    for request in [ahead, gateway.secret(Method::GET, "/api/runs"), gateway.secret(Method::GET, &stream)] {
        let answer = request.header("origin", origin).send().await.unwrap();
        let allowed = answer.headers().get("access-control-allow-origin");
        told.push(allowed.map(|origin| origin.to_str().unwrap().to_owned()));
    }
    told
}

#[tokio::test]
async fn only_the_origins_of_the_configuration_are_told_that_they_may() {
    let own = "https://app.example";
    let folder = Folder::new();
    std::fs::write(folder.path().join("toolyard.toml"), format!("allowed_origins = [{own:?}]")).unwrap();
    let gateway = Gateway::start_with(folder, &[]).await;
    let space = crate::yard::new_space(&gateway).await;
    assert_eq!(told(&gateway, &space, own).await, vec![Some(own.to_owned()); 3]);
    for other in ["https://evil.example", "http://localhost:5173", "https://app.example.evil.example"] {
        assert_eq!(told(&gateway, &space, other).await, vec![None; 3], "{other}");
    }
    // In production nobody is, unless somebody is named.
    let gateway = Gateway::start_with(Folder::new(), &[("TOOLYARD_MODE", "production")]).await;
    let space = crate::yard::new_space(&gateway).await;
    for origin in [own, "http://localhost:5173", "http://127.0.0.1:3000"] {
        assert_eq!(told(&gateway, &space, origin).await, vec![None; 3], "{origin}");
    }
}
