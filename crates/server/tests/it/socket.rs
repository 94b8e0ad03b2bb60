//! A program on `/api/clients/connect`: a real WebSocket client.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::gateway::{Gateway, PATIENCE, PUBLIC, SECRET, token};

pub(crate) struct Program {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Program {
    /// Opens a socket with these headers. The error is the HTTP status of a refusal.
    pub(crate) async fn open(gateway: &Gateway, headers: &[(&'static str, String)]) -> Result<Self, u16> {
        let url = format!("ws://{}/api/clients/connect", gateway.address());
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(e) => panic!("{e}"),
        }
    }

    /// A backend's program that holds these tools.
    pub(crate) async fn backend(gateway: &Gateway, client: &str, tools: &[&str]) -> Self {
        let mut program = Self::open(gateway, &[("x-secret-key", SECRET.to_owned())]).await.unwrap();
        let hello = program.register(json!({"clientId": client, "tools": tools})).await;
        assert_eq!((&hello["type"], &hello["clientId"]), (&json!("client.registered"), &json!(client)));
        program
    }

    /// A page of a user: it cannot set headers, its first message has the keys.
    pub(crate) async fn page(gateway: &Gateway, user: &str, client: &str, tools: &[&str]) -> Self {
        let mut program = Self::open(gateway, &[]).await.unwrap();
        let auth = json!({"publicKey": PUBLIC, "token": token(user)});
        let hello = program
            .register(json!({"clientId": client, "clientType": "browser", "tools": tools, "auth": auth}));
        let hello = hello.await;
        assert_eq!(hello["type"], "client.registered", "{hello}");
        program
    }

    pub(crate) async fn register(&mut self, mut body: Value) -> Value {
        body["type"] = json!("client.register");
        self.ask(body).await
    }

    pub(crate) async fn say(&mut self, body: Value) {
        self.socket.send(Message::text(body.to_string())).await.unwrap();
    }

    pub(crate) async fn say_raw(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    /// Says something and hears the next message.
    pub(crate) async fn ask(&mut self, body: Value) -> Value {
        self.say(body).await;
        self.hear().await.expect("an answer")
    }

    /// The next message; none when the gateway has closed the socket.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        // Pings do not count: they come for ever.
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let heard = tokio::time::timeout_at(until, self.socket.next()).await.expect("a silent socket");
            match heard {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_))) | None | Some(Err(_)) => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next call.
    pub(crate) async fn call(&mut self) -> Value {
        let heard = self.hear().await.expect("a call");
        assert_eq!(heard["type"], "tool.call", "{heard}");
        heard
    }

    /// Hears nothing but what it asked for: nothing else was under way.
    pub(crate) async fn hears_nothing(&mut self) {
        let heard = self.ask(json!({"type": "ping", "id": 7})).await;
        assert_eq!(heard, json!({"type": "pong", "id": 7}));
    }

    /// Answers a call.
    pub(crate) async fn answer(&mut self, call: &Value, result: Value) -> Value {
        self.ask(json!({"type": "tool.result", "runId": call["runId"],
            "toolCallId": call["toolCallId"], "result": result}))
            .await
    }

    /// Goes without a word, as a killed program does.
    pub(crate) fn vanish(self) {
        drop(self);
    }
}
