//! `/api/chat/connect` by hand: what its real client never says.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::gateway::{Gateway, PATIENCE, PUBLIC, SECRET, token};

struct Page(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Page {
    async fn open(gateway: &Gateway, query: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let url = format!("ws://{}/api/chat/connect{query}", gateway.address());
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(e) => panic!("{e}"),
        }
    }

    async fn say(&mut self, body: &Value) {
        self.0.send(Message::text(body.to_string())).await.unwrap();
    }

    async fn hear(&mut self) -> Option<Value> {
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("a silent socket");
            match heard {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_))) | None | Some(Err(_)) => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// All frames of a request, up to its last.
    async fn answer(&mut self, request: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.hear().await.expect("an open socket");
            assert_eq!(frame["requestId"], request, "{frame}");
            let last = matches!(frame["type"].as_str(), Some("end" | "error" | "no-active"));
            frames.push(frame);
            if last {
                return frames;
            }
        }
    }
}

fn send(request: &str, headers: Value, text: &str) -> Value {
    let said =
        json!([{"id": format!("m-{request}"), "role": "user", "parts": [{"type": "text", "text": text}]}]);
    json!({"type": "send", "requestId": request, "id": "chat", "trigger": "submit-message",
        "messages": said, "headers": headers, "body": {}, "metadata": null})
}

#[tokio::test]
async fn c2_frames_have_their_requests_name_and_no_gaps() {
    let gateway = Gateway::start().await;
    // Keys of the opening count for frames that bring none.
    let mut page = Page::open(&gateway, "?metadata=on", &[("x-secret-key", SECRET)]).await.unwrap();
    page.say(&send("r1", json!({}), "say hello there")).await;
    let frames = page.answer("r1").await;
    assert_eq!(frames[0], json!({"type": "start", "requestId": "r1"}));
    assert_eq!(frames.last().unwrap(), &json!({"type": "end", "requestId": "r1"}));
    let chunks = &frames[1..frames.len() - 1];
    for (sequence, frame) in chunks.iter().enumerate() {
        assert_eq!((&frame["type"], &frame["sequence"]), (&json!("chunk"), &json!(sequence)));
    }
    assert!(chunks[0]["chunk"]["messageMetadata"]["runId"].is_string(), "{}", chunks[0]);
    let said: String = chunks.iter().filter_map(|frame| frame["chunk"]["delta"].as_str()).collect();
    assert_eq!(said, "hello there");
    // A user's frame on the same socket is the user's.
    let keys = json!({"X-Public-Key": PUBLIC, "Authorization": format!("Bearer {}", token("ann"))});
    page.say(&json!({"type": "resume", "requestId": "r2", "id": "chat", "headers": keys, "body": {}})).await;
    assert_eq!(page.answer("r2").await, [json!({"type": "no-active", "requestId": "r2"})]);
}

#[tokio::test]
async fn x6_x11_a_chat_socket_needs_a_key_with_its_frames_and_a_page_that_may_call() {
    let gateway = Gateway::start().await;
    assert_eq!(Page::open(&gateway, "", &[("x-secret-key", "sk_wrong")]).await.err(), Some(401));
    assert_eq!(Page::open(&gateway, "", &[("origin", "https://evil.example")]).await.err(), Some(403));
    assert_eq!(Page::open(&gateway, "?ui=4", &[]).await.err(), Some(400));
    let mut page = Page::open(&gateway, "", &[("origin", "http://localhost:3000")]).await.unwrap();
    let error = |request: &str, text: &str| json!({"type": "error", "requestId": request, "errorText": text});
    page.say(&send("r1", json!({"x-secret-key": "sk_wrong"}), "hi")).await;
    assert_eq!(page.hear().await.unwrap(), error("r1", "Invalid secret key"));
    page.say(&send("r2", json!({"x-secret-key": "a\nb"}), "hi")).await;
    assert_eq!(page.hear().await.unwrap(), error("r2", "x-secret-key is no key"));
    page.say(&send("r3", json!({}), "hi")).await;
    assert_eq!(page.hear().await.unwrap()["requestId"], "r3");
    for bad in [json!({"type": "dance"}), json!([]), json!({"type": "send", "requestId": 7})] {
        page.say(&bad).await;
        let answer = page.hear().await.unwrap();
        assert_eq!((&answer["type"], &answer["requestId"]), (&json!("error"), &json!("")), "{bad}");
    }
    // An unknown name to abort is nothing, and the socket stays.
    page.say(&json!({"type": "abort", "requestId": "r9"})).await;
    page.say(&send("r4", json!({"x-secret-key": SECRET}), "say fine")).await;
    assert_eq!(page.answer("r4").await.last().unwrap()["type"], "end");
}

#[tokio::test]
async fn x10_a_socket_that_never_shows_a_key_is_closed() {
    let gateway = Gateway::start().await;
    let mut stranger = Page::open(&gateway, "", &[]).await.unwrap();
    assert_eq!(stranger.hear().await, None);
}
