//! The WebSocket transport of the AI SDK: the turns of `POST /api/chat` and
//! the streams of `GET /api/chat/{chat}/stream`, several at once on one
//! connection. A page cannot set headers on a WebSocket, so each frame brings
//! its keys; until the first good one the socket is a stranger's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{Message, WebSocket, close_code};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;
use toolyard_dialects::ai_sdk::{ChatAnswer, ChatFrame};
use toolyard_protocol::sse::SseSplitter;
use toolyard_protocol::{ApiError, ErrorCode, Principal, limits};

use crate::app::App;
use crate::auth::Wanted;
use crate::http::{Refusal, body, meter};
use crate::routes::call::{Call, Sight};
use crate::routes::dispatch::read_query;
use crate::socket;

/// Frames that wait for a slow reader; then the stream behind them waits.
const BACKLOG: usize = 64;

/// Room for messages of those who have not shown a key.
static STRANGERS: Semaphore = Semaphore::const_new(limits::CHAT_SOCKET_STRANGERS);

/// Answers the request that opens a socket.
pub(crate) async fn connect(app: Arc<App>, mut parts: Parts) -> Result<Response, Refusal> {
    socket::check_opening(&app, &parts)?;
    let query = read_query(&parts.uri)?;
    if query.get("ui").is_some_and(|version| version == "4") {
        return Err(Refusal::bad_request("ui: version 4 has no WebSocket transport"));
    }
    let most = app.config.limits.conversation_body_bytes;
    let upgrade = socket::upgrade(&mut parts, most).await?;
    let keys = socket::credentials(&parts.headers);
    let stranger = match keys.is_empty() {
        // Keys of the opening are looked at with every frame, and now.
        false => {
            app.auth.principal(&app.store, &keys, Wanted::Either).await?;
            None
        }
        true => Some(STRANGERS.try_acquire().map_err(|_| {
            let most = limits::CHAT_SOCKET_STRANGERS as u64;
            let text = format!("More than {most} sockets without a key: come back later");
            ApiError::limit(ErrorCode::RateLimited, most, text)
        })?),
    };
    Ok(upgrade.on_upgrade(move |socket| async move {
        let tasks = app.tasks.clone();
        let (out, told) = mpsc::channel(BACKLOG);
        let stop = CancellationToken::new();
        let session = Session { app, query, keys, stranger, out, open: HashMap::new(), stop };
        tasks.spawn("chat socket", session.run(socket, told));
    }))
}

/// A frame on its way out; the last one of its request forgets it.
struct Told {
    frame: ChatAnswer,
    ends: Option<String>,
}

/// A request whose answer is being told.
struct Open {
    chat: String,
    by: Principal,
    stop: CancellationToken,
}

struct Session {
    app: Arc<App>,
    query: HashMap<String, String>,
    /// Of the opening request.
    keys: HeaderMap,
    stranger: Option<SemaphorePermit<'static>>,
    out: mpsc::Sender<Told>,
    open: HashMap<String, Open>,
    stop: CancellationToken,
}

type Answered = BoxFuture<'static, Result<Response, Refusal>>;

impl Session {
    async fn run(mut self, mut socket: WebSocket, mut told: mpsc::Receiver<Told>) {
        let _counted = meter::Socket::enter();
        let _stops = self.stop.clone().drop_guard();
        let app = self.app.clone();
        let mut ping = tokio::time::interval(socket::ping(&app));
        ping.reset();
        let known = tokio::time::sleep(Duration::from_secs(limits::SOCKET_REGISTER_SECONDS));
        tokio::pin!(known);
        let mut heard = Instant::now();
        loop {
            let goes_on = tokio::select! {
                () = app.shutdown.cancelled() => {
                    return socket::close(&app, &mut socket, close_code::AWAY, "the gateway is stopping").await;
                }
                () = &mut known, if self.stranger.is_some() => {
                    return socket::close(&app, &mut socket, close_code::POLICY, "no request with a key").await;
                }
                message = socket.recv() => {
                    heard = Instant::now();
                    let answer = match message {
                        Some(Ok(Message::Text(text))) => self.hear(text.as_bytes()).await,
                        Some(Ok(Message::Binary(bytes))) => self.hear(&bytes).await,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    };
                    match answer {
                        Some(answer) => say(&app, &mut socket, &answer).await,
                        None => true,
                    }
                }
                Some(Told { frame, ends }) = told.recv() => {
                    if let Some(request) = ends {
                        self.open.remove(&request);
                    }
                    say(&app, &mut socket, &frame).await
                }
                _ = ping.tick() => {
                    if heard.elapsed() > socket::silence(&app) {
                        return socket::close(&app, &mut socket, close_code::AWAY, "silent").await;
                    }
                    socket::send(&app, &mut socket, Message::Ping(Bytes::new())).await
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Takes a frame; what is wrong with it is said at once.
    async fn hear(&mut self, text: &[u8]) -> Option<ChatAnswer> {
        let frame = match body::parse::<ChatFrame>(text) {
            Ok(frame) => frame,
            // Nobody knows whose answer it is: clients pass over an unknown name.
            Err(e) => return Some(failed(String::new(), e.message)),
        };
        let (request, done) = match frame {
            ChatFrame::Abort(frame) => {
                self.abort(&frame.request_id);
                return None;
            }
            ChatFrame::Send(mut frame) => {
                let (request, chat) = (frame.request_id.clone(), frame.id.clone());
                let headers = std::mem::take(&mut frame.headers);
                let said = serde_json::to_vec(&frame.into_body()).unwrap_or_default();
                let asked = |call| -> Answered { Box::pin(super::ask::ask(call)) };
                (request.clone(), self.begin(request, chat, &headers, said.into(), asked).await)
            }
            ChatFrame::Resume(frame) => {
                let asked = |call| -> Answered { Box::pin(super::stream(call)) };
                let (request, chat) = (frame.request_id, frame.id);
                (request.clone(), self.begin(request, chat, &frame.headers, Bytes::new(), asked).await)
            }
        };
        done.err().map(|refused| failed(request, refused.error.message))
    }

    async fn begin(
        &mut self,
        request: String,
        chat: String,
        given: &HashMap<String, String>,
        said: Bytes,
        asked: impl FnOnce(Call) -> Answered,
    ) -> Result<(), Refusal> {
        let most = limits::CHAT_SOCKET_REQUESTS;
        if self.open.len() >= most {
            let text = format!("{most} requests are open on this socket: the limit is {most}");
            return Err(ApiError::limit(ErrorCode::RateLimited, most as u64, text).into());
        }
        if self.open.contains_key(&request) {
            return Err(Refusal::bad_request("requestId: another request has this name"));
        }
        // Keys of a frame take the place of all that the opening brought.
        let own = socket::named(given)?;
        let mut headers = if own.is_empty() { self.keys.clone() } else { own };
        let by = self.app.auth.principal(&self.app.store, &headers, Wanted::Either).await?;
        self.app.rates.take(&by)?;
        self.stranger = None;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let call = Call {
            app: self.app.clone(),
            principal: by.clone(),
            sight: Sight::Nothing,
            params: HashMap::from([("chat".to_owned(), chat.clone())]),
            query: self.query.clone(),
            headers,
            body: said,
            route: "GET /api/chat/connect",
            signed: false,
            cut: None,
        };
        let stop = self.stop.child_token();
        self.open.insert(request.clone(), Open { chat, by, stop: stop.clone() });
        let (answered, out) = (asked(call), self.out.clone());
        self.app.tasks.spawn("chat on a socket", async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tell(answered, request, out) => {}
            }
        });
        Ok(())
    }

    /// Closing a socket stops nothing; this word does.
    fn abort(&mut self, request: &str) {
        let Some(open) = self.open.remove(request) else { return };
        open.stop.cancel();
        let app = self.app.clone();
        self.app.tasks.spawn("stop of a chat", async move {
            let reason = Some("Stopped by the user".to_owned());
            if let Err(e) = app.runtime.stop_thread(open.by, open.chat, reason).await {
                tracing::debug!(error = %e.message, "a chat was not stopped");
            }
        });
    }
}

/// Tells an answer to its end.
async fn tell(answered: Answered, request: String, out: mpsc::Sender<Told>) {
    let frame = match answered.await {
        Err(refused) => failed(request.clone(), refused.error.message),
        Ok(response) if response.status() == StatusCode::NO_CONTENT => {
            ChatAnswer::NoActive { request_id: request.clone() }
        }
        Ok(response) => {
            let told = chunks(response, &request, &out).await;
            match told {
                Some(true) => ChatAnswer::End { request_id: request.clone() },
                Some(false) => failed(request.clone(), "The stream was cut: resume it".to_owned()),
                None => return,
            }
        }
    };
    let _ = out.send(Told { frame, ends: Some(request) }).await;
}

/// The chunks of a body. Whether it came to its end; none if nobody listens.
async fn chunks(response: Response, request: &str, out: &mpsc::Sender<Told>) -> Option<bool> {
    let say = async |frame| out.send(Told { frame, ends: None }).await.ok();
    say(ChatAnswer::Start { request_id: request.to_owned() }).await?;
    let mut body = response.into_body().into_data_stream();
    let (mut splitter, mut events, mut sequence) = (SseSplitter::new(usize::MAX), Vec::new(), 0);
    while let Some(Ok(piece)) = body.next().await {
        let split = splitter.push(&piece, &mut events);
        // It counts as unread until it is let go, and the socket may take its time.
        drop(piece);
        if split.is_err() {
            return Some(false);
        }
        for event in events.drain(..) {
            if event.data == "[DONE]" {
                return Some(true);
            }
            let Ok(chunk) = RawValue::from_string(event.data) else { return Some(false) };
            say(ChatAnswer::Chunk { request_id: request.to_owned(), sequence, chunk }).await?;
            sequence += 1;
        }
    }
    Some(false)
}

fn failed(request_id: String, error_text: String) -> ChatAnswer {
    ChatAnswer::Error { request_id, error_text }
}

async fn say(app: &App, socket: &mut WebSocket, frame: &ChatAnswer) -> bool {
    let text = serde_json::to_string(frame).unwrap_or_default();
    socket::send(app, socket, Message::Text(text.into())).await
}
