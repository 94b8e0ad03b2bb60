//! Uploaded files and their signed addresses.

use reqwest::Method;
use serde_json::json;

use crate::gateway::{Gateway, ask, fine};
use crate::yard::Yard;

#[tokio::test]
async fn a_file_is_read_by_its_uploader_a_backend_or_a_signed_address() {
    let gateway = Gateway::start().await;
    let upload = gateway
        .user("ann", Method::POST, "/api/files")
        .header("content-type", "text/html")
        .header("x-filename", "page.html")
        .body("<script>alert(1)</script>");
    let file = fine(upload).await["file"].clone();
    assert_eq!(file["bytes"], 25);
    let path = format!("/api/files/{}", file["id"].as_str().unwrap());
    let signed = file["url"].as_str().unwrap();
    for request in [
        gateway.user("ann", Method::GET, &path),
        gateway.secret(Method::GET, &path),
        gateway.bare(Method::GET, signed),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        // A page of a stranger is never a page of the gateway.
        assert_eq!(response.headers()["content-type"], "application/octet-stream");
        assert_eq!(response.headers()["content-disposition"], "attachment");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.text().await.unwrap(), "<script>alert(1)</script>");
    }
    assert_eq!(ask(gateway.user("bob", Method::GET, &path)).await.0, 403);
    assert_eq!(ask(gateway.bare(Method::GET, &path)).await.0, 401);
}

#[tokio::test]
async fn a_changed_signed_address_is_refused() {
    let gateway = Gateway::start().await;
    let upload = |text: &'static str| {
        fine(gateway.secret(Method::POST, "/api/files").header("content-type", "text/plain").body(text))
    };
    let (one, two) = (upload("one").await["file"].clone(), upload("two").await["file"].clone());
    let (url, other) = (one["url"].as_str().unwrap(), two["id"].as_str().unwrap());
    assert_eq!(ask(gateway.bare(Method::GET, url)).await.0, 200);
    let expires = url.split("expires=").nth(1).unwrap().split('&').next().unwrap();
    let later = (expires.parse::<i64>().unwrap() + 1).to_string();
    for changed in [
        url.replace(one["id"].as_str().unwrap(), other),
        url.replace(expires, &later),
        url.replace("tenant=default", "tenant=acme"),
        url.split("signature=").next().unwrap().to_owned() + "signature=AAAA",
        url.split("signature=").next().unwrap().to_owned() + "signature=",
        url.replace(expires, "0"),
    ] {
        assert_eq!(ask(gateway.bare(Method::GET, &changed)).await.0, 401, "{changed}");
    }
}

/// The gateway reads attachments for the model with its own means, so a user
/// can attach only what is theirs or open to everybody.
#[tokio::test]
async fn x6_a_user_attaches_only_what_they_may_read() {
    let yard = Yard::new().await;
    let gateway = &yard.gateway;
    let upload =
        gateway.user("ann", Method::POST, "/api/files").header("content-type", "text/plain").body("mine");
    let file = fine(upload).await["file"]["id"].clone();
    let path = format!("/api/smart-spaces/{}/messages", yard.space);
    let post = |user: &str, part: serde_json::Value| {
        let body = json!({"parts": [{"type": "text", "text": "say read it"}, part]});
        ask(gateway.user(user, Method::POST, &path).json(&body))
    };
    let stored = json!({"type": "file", "mediaType": "text/plain", "fileId": file});
    assert_eq!(post("ann", stored.clone()).await.0, 201);
    assert_eq!(post("bob", stored).await.0, 403);
    let missing = json!({"type": "file", "mediaType": "text/plain", "fileId": "file_0"});
    assert_eq!(post("ann", missing).await.0, 404);
    for (url, status) in [
        ("s3://company/secret.pdf", 400),
        ("http://169.254.169.254/latest", 400),
        ("https://example.com/cat.png", 201),
    ] {
        let part = json!({"type": "file", "mediaType": "image/png", "url": url});
        assert_eq!(post("ann", part).await.0, status, "{url}");
    }
}
