//! What passes the door, and what the door bounds.

use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolyard_egress::{Answer, Door, EgressError, Header, Letter, Patience, Target, Verb};

const PATIENCE: Patience =
    Patience { head: Duration::from_secs(10), idle: Duration::from_secs(10), bytes: 1 << 20 };
const SHORT: Duration = Duration::from_millis(60);

/// Answers one connection with these bytes, then keeps it open. The request it
/// read is the task's value.
async fn server(answer: &'static str) -> (String, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"{}") {
            assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0);
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest).await;
        String::from_utf8(request).unwrap()
    });
    (base, tasks)
}

async fn post(base: &str, patience: Patience) -> Result<Answer, EgressError> {
    let target = Target::parse(base).unwrap();
    let key = SecretString::from("canary");
    let body = Bytes::from_static(b"{}");
    let accept = "text/event-stream";
    let headers = [Header::bearer(&key), Header::plain("x-version", "7")];
    assert!(!format!("{headers:?}").contains("canary"));
    let post =
        Letter { verb: Verb::Post, target: &target, headers: &headers, accept, body: Some(body), patience };
    assert!(!format!("{post:?}").contains("canary"));
    Door::operator().unwrap().send(post).await
}

#[tokio::test]
async fn json_goes_out_and_bytes_come_back() {
    let (base, mut tasks) =
        server("HTTP/1.1 200 OK\r\ncontent-type: Text/Plain; a=b\r\ncontent-length: 5\r\n\r\nhello").await;
    let mut answer = post(&base, PATIENCE).await.unwrap();
    assert!(answer.is_success());
    assert_eq!(answer.media_type().as_deref(), Some("text/plain"));
    assert_eq!(answer.body.read_all().await.unwrap(), b"hello");
    drop(answer);
    let request = tasks.join_next().await.unwrap().unwrap().to_ascii_lowercase();
    assert!(request.starts_with("post / http/1.1\r\n"), "{request}");
    for header in
        ["authorization: bearer canary", "x-version: 7", "accept: text/event-stream", "user-agent: toolyard/"]
    {
        assert!(request.contains(header), "{request}");
    }
    assert!(!request.contains("accept-encoding") && !request.contains("cookie"), "{request}");
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let (base, _tasks) =
        server("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n").await;
    let answer = post(&base, PATIENCE).await.unwrap();
    assert_eq!((answer.status, answer.is_success()), (302, false));
}

#[tokio::test]
async fn a_body_larger_than_the_limit_is_refused_with_its_number() {
    let (base, _tasks) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let mut answer = post(&base, Patience { bytes: 4, ..PATIENCE }).await.unwrap();
    let error = answer.body.read_all().await.unwrap_err();
    assert_eq!(error.to_string(), "the answer is larger than 4 bytes");
}

#[tokio::test]
async fn a_peek_stops_at_its_size() {
    let (base, _tasks) = server("HTTP/1.1 500 No\r\ncontent-length: 5\r\n\r\nhello").await;
    let mut answer = post(&base, PATIENCE).await.unwrap();
    assert_eq!(answer.body.peek(3).await, b"hel");
}

#[tokio::test]
async fn silence_before_the_head_and_inside_the_body_times_out() {
    let (base, _tasks) = server("").await;
    let error = post(&base, Patience { head: SHORT, ..PATIENCE }).await.unwrap_err();
    assert!(matches!(error, EgressError::Timeout { after } if after == SHORT), "{error:?}");

    let (base, _tasks) = server("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await;
    let mut answer = post(&base, Patience { idle: SHORT, ..PATIENCE }).await.unwrap();
    assert_eq!(answer.body.next().await.unwrap().as_deref(), Some(&b"hello"[..]));
    let error = answer.body.next().await.unwrap_err();
    assert!(matches!(error, EgressError::Timeout { after } if after == SHORT), "{error:?}");
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable_and_the_address_stays_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/secret-path?k=secret-query", listener.local_addr().unwrap());
    drop(listener);
    let error = post(&base, PATIENCE).await.unwrap_err();
    assert!(matches!(error, EgressError::Unreachable(_)), "{error:?}");
    let told = format!("{error} {error:?} {}", error.causes());
    assert!(!told.contains("secret") && !told.contains("canary"), "{told}");
}

#[tokio::test]
async fn retry_after_is_read_in_all_its_forms() {
    let cases = [
        ("retry-after: 3\r\n", Some(3000)),
        ("retry-after: 0.5\r\n", Some(500)),
        ("retry-after: 9\r\nretry-after-ms: 120\r\n", Some(120)),
        ("date: Sun, 15 Nov 2026 12:00:00 GMT\r\nretry-after: Sun, 15 Nov 2026 12:00:07 GMT\r\n", Some(7000)),
        ("date: Sun, 15 Nov 2026 12:00:09 GMT\r\nretry-after: Sun, 15 Nov 2026 12:00:07 GMT\r\n", Some(0)),
        ("retry-after: Sun, 15 Nov 2026 12:00:07 GMT\r\n", None),
        ("retry-after: -1\r\n", None),
        ("retry-after: soon\r\n", None),
        ("", None),
    ];
    for (headers, expected) in cases {
        let answer = format!("HTTP/1.1 429 No\r\n{headers}content-length: 0\r\n\r\n");
        let (base, _tasks) = server(answer.leak()).await;
        let asked = post(&base, PATIENCE).await.unwrap().retry_after();
        assert_eq!(asked, expected.map(Duration::from_millis), "{headers:?}");
    }
}
