//! One open socket: it registers, then takes calls and gives results until it
//! goes, falls silent, or its key is taken back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{Message, WebSocket, close_code};
use axum::http::HeaderMap;
use toolyard_dialects::native::socket::{
    CallClaimed, CallEnded, CallProgress, CallResults, ClaimCall, ClientMessage, GatewayMessage, HeldTool,
    Pong, ProgressAccepted, RegisterClient, Registered, ResultAccepted, SocketCall, SocketError,
};
use toolyard_protocol::principal::Actor;
use toolyard_protocol::{
    ApiError, CallId, ClientId, ErrorCode, Principal, RunId, Timestamp, ToolName, Viewer, limits,
};
use toolyard_runtime::{Caller, Connected, LiveNews, OfferedCall, ProgressIn, Worked};
use toolyard_store::clients::Client;
use toolyard_store::{StoreError, runs};

use super::{Opened, close};
use crate::app::App;
use crate::auth::Wanted;
use crate::http::{Refusal, body, meter};
use crate::routes::{answer, results, run_viewer};

/// A program that has said who it is.
struct Session {
    app: Arc<App>,
    principal: Principal,
    /// Its keys.
    headers: HeaderMap,
    client: ClientId,
    seat: Connected,
}

/// What to answer, and about what.
type Answered = Result<GatewayMessage, SocketError>;

pub(super) async fn serve(app: Arc<App>, mut socket: WebSocket, headers: HeaderMap, opened: Opened) {
    let _counted = meter::Socket::enter();
    let wait = Duration::from_secs(limits::SOCKET_REGISTER_SECONDS);
    let registered = match tokio::time::timeout(wait, first(&app, &mut socket)).await {
        Ok(Some(Ok(new))) => register(&app, new, headers, opened).await,
        Ok(Some(Err(refused))) => Err(refused),
        // It went without a word.
        Ok(None) => return,
        Err(_) => {
            let most = limits::SOCKET_REGISTER_SECONDS;
            let text = format!("The first message must be client.register, within {most} seconds");
            Err(ApiError::limit(ErrorCode::BadRequest, most, text))
        }
    };
    match registered {
        Ok((mut session, hello)) => {
            if say(&app, &mut socket, &hello).await {
                session.run(&mut socket).await;
            }
        }
        Err(refused) => {
            let error = GatewayMessage::Error(SocketError::new(refused, None, None));
            say(&app, &mut socket, &error).await;
            close(&app, &mut socket, close_code::POLICY, "not registered").await;
        }
    }
}

/// The first message. None if the socket ends before.
async fn first(app: &App, socket: &mut WebSocket) -> Option<Result<RegisterClient, ApiError>> {
    loop {
        let text = match socket.recv().await?.ok()? {
            Message::Text(text) => text,
            Message::Binary(_) => return Some(Err(not_text())),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return None,
        };
        // Nobody has a bucket yet: a stranger's message is small.
        if text.len() > app.config.limits.body_bytes {
            let most = app.config.limits.body_bytes as u64;
            let text = format!("The first message has more than {most} bytes");
            return Some(Err(ApiError::limit(ErrorCode::BodyTooLarge, most, text)));
        }
        return Some(match body::parse::<ClientMessage>(text.as_bytes()) {
            Ok(ClientMessage::Register(new)) => Ok(new),
            Ok(_) => Err(ApiError::new(ErrorCode::BadRequest, "The first message must be client.register")),
            Err(e) => Err(e),
        });
    }
}

async fn register(
    app: &Arc<App>,
    new: RegisterClient,
    headers: HeaderMap,
    opened: Opened,
) -> Result<(Session, GatewayMessage), ApiError> {
    let (principal, headers) = match (opened, &new.auth) {
        (Some(principal), _) => (principal, headers),
        (None, auth) => {
            let headers = auth.as_ref().and_then(super::said).unwrap_or_default();
            let asked = app.auth.principal(&app.store, &headers, Wanted::Either).await;
            (asked.map_err(|refused| refused.error)?, headers)
        }
    };
    app.rates.take(&principal).map_err(|refused| refused.error)?;
    let refused = |refused: Refusal| refused.error;
    let kind = answer::label("clientType", new.client_type).map_err(refused)?;
    let name = answer::label("name", new.name).map_err(refused)?;
    answer::within("capabilities", new.capabilities.as_ref(), limits::METADATA_BYTES).map_err(refused)?;
    let mut tools: Vec<ToolName> = new.tools.into_iter().map(HeldTool::into_name).collect();
    tools.sort();
    tools.dedup();
    let held = u32::try_from(tools.len()).unwrap_or(u32::MAX);
    let client = Client {
        id: new.client_id.unwrap_or_else(ClientId::mint),
        entity: principal.entity.clone(),
        kind: kind.unwrap_or_else(|| "unknown".to_owned()),
        name,
        capabilities: new.capabilities,
        last_seen: Timestamp::default(),
    };
    let id = client.id.clone();
    let seat = app.runtime.connect(&principal, client, tools).await?;
    let hello = GatewayMessage::Registered(Registered {
        client_id: id.clone(),
        connection_id: seat.connection().clone(),
        tools: held,
        ping_seconds: seconds(super::ping(app)),
        silence_seconds: seconds(super::silence(app)),
    });
    Ok((Session { app: app.clone(), principal, headers, client: id, seat }, hello))
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

impl Session {
    async fn run(&mut self, socket: &mut WebSocket) {
        let mut ping = tokio::time::interval(super::ping(&self.app));
        ping.reset();
        let mut heard = Instant::now();
        let app = self.app.clone();
        loop {
            let goes_on = tokio::select! {
                () = app.shutdown.cancelled() => {
                    return close(&app, socket, close_code::AWAY, "the gateway is stopping").await;
                }
                message = socket.recv() => {
                    heard = Instant::now();
                    match message {
                        Some(Ok(Message::Text(text))) => {
                            let answer = self.hear(text.as_bytes()).await;
                            say(&app, socket, &answer.unwrap_or_else(GatewayMessage::Error)).await
                        }
                        Some(Ok(Message::Binary(_))) => {
                            let error = SocketError::new(not_text(), None, None);
                            say(&app, socket, &GatewayMessage::Error(error)).await
                        }
                        // The other side's pings are answered by the library.
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    }
                }
                news = self.seat.news() => match news {
                    Some(LiveNews::Replaced) | None => {
                        let text = "The same client has connected again";
                        let error = SocketError::new(ApiError::new(ErrorCode::Conflict, text), None, None);
                        say(&app, socket, &GatewayMessage::Error(error)).await;
                        return close(&app, socket, close_code::POLICY, "replaced").await;
                    }
                    Some(LiveNews::Call(call)) => say(&app, socket, &called(&call)).await,
                    Some(LiveNews::Ended { run, call, tool, outcome }) => {
                        let ended = CallEnded { run_id: run, tool_call_id: call, tool_name: tool, outcome };
                        say(&app, socket, &GatewayMessage::Ended(ended)).await
                    }
                },
                _ = ping.tick() => {
                    if heard.elapsed() > super::silence(&app) {
                        return close(&app, socket, close_code::AWAY, "silent").await;
                    }
                    if let Err(refused) = self.check_key().await {
                        let error = SocketError::new(refused, None, None);
                        say(&app, socket, &GatewayMessage::Error(error)).await;
                        return close(&app, socket, close_code::POLICY, "the key is not valid any more").await;
                    }
                    super::send(&app, socket, Message::Ping(axum::body::Bytes::new())).await
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Ends the socket of a revoked key or an expired token.
    async fn check_key(&self) -> Result<(), ApiError> {
        match self.app.auth.principal(&self.app.store, &self.headers, Wanted::Either).await {
            Ok(principal) if principal == self.principal => Ok(()),
            Ok(_) => Err(ApiError::new(ErrorCode::Unauthorized, "This key belongs to somebody else now")),
            Err(refused) => match refused.error.code {
                ErrorCode::Unauthorized | ErrorCode::Forbidden => Err(refused.error),
                // A database or an issuer that is away takes no right away.
                _ => Ok(()),
            },
        }
    }

    async fn hear(&mut self, text: &[u8]) -> Answered {
        let plain = |error: ApiError| SocketError::new(error, None, None);
        self.app.rates.take(&self.principal).map_err(|refused| plain(refused.error))?;
        match body::parse::<ClientMessage>(text).map_err(plain)? {
            ClientMessage::Register(_) => {
                let text = "This connection is registered: open another one for other tools";
                Err(plain(ApiError::new(ErrorCode::Conflict, text)))
            }
            ClientMessage::Ping(ping) => Ok(GatewayMessage::Pong(Pong { id: ping.id })),
            ClientMessage::Result(results) => self.results(results).await,
            ClientMessage::Progress(progress) => self.progress(progress).await,
            ClientMessage::Claim(claim) => self.claim(claim).await,
        }
    }

    async fn results(&self, given: CallResults) -> Answered {
        let run = given.run_id;
        let call = given.one.tool_call_id.clone();
        let about = |error: ApiError| SocketError::new(error, Some(run.clone()), call.clone());
        let list = given.results.unwrap_or_else(|| vec![given.one]);
        let viewer = self.viewer(&run).await.map_err(about)?;
        let calls: Vec<CallId> = list.iter().filter_map(|one| one.tool_call_id.clone()).collect();
        let answering = self.seat.answering(&run, &calls);
        let (by, client) = (&self.principal, Some(self.client.clone()));
        let taken = results::take(&self.app, by, viewer, run.clone(), list, client, "toolCallId").await;
        let taken = match taken {
            Ok(taken) => taken,
            Err(refused) => {
                self.seat.keeps(answering);
                return Err(about(refused.error));
            }
        };
        Ok(GatewayMessage::ResultAccepted(ResultAccepted { run_id: run, results: taken }))
    }

    async fn progress(&self, given: CallProgress) -> Answered {
        let CallProgress { run_id, tool_call_id: call, fraction, message, preliminary, client_id: _ } = given;
        let about = |error: ApiError| SocketError::new(error, run_id.clone(), Some(call.clone()));
        let run = run_id.clone().ok_or_else(|| about(ApiError::missing("runId")))?;
        let caller = self.caller(&run).await.map_err(about)?;
        let progress = ProgressIn { fraction, message, preliminary };
        let taken =
            self.app.runtime.progress(caller, run.clone(), call.clone(), progress, Some(self.worked())).await;
        let taken = taken.map_err(about)?;
        Ok(GatewayMessage::ProgressAccepted(ProgressAccepted {
            run_id: run,
            tool_call_id: call,
            left: taken.left,
            claimed_until: taken.claimed_until,
        }))
    }

    async fn claim(&self, given: ClaimCall) -> Answered {
        let ClaimCall { run_id: run, tool_call_id: call } = given;
        let about = |error: ApiError| SocketError::new(error, Some(run.clone()), Some(call.clone()));
        let caller = self.caller(&run).await.map_err(about)?;
        let until = self.app.runtime.still_working(caller, run.clone(), call.clone(), self.worked()).await;
        let claimed_until = until.map_err(about)?;
        Ok(GatewayMessage::Claimed(CallClaimed { run_id: run, tool_call_id: call, claimed_until }))
    }

    fn worked(&self) -> Worked {
        Worked { client: self.client.clone(), connection: Some(self.seat.connection().clone()) }
    }

    async fn caller(&self, run: &RunId) -> Result<Caller, ApiError> {
        let viewer = self.viewer(run).await?;
        let actor = Actor::caller(&self.principal, Some(self.client.clone()));
        Ok(Caller { tenant: self.principal.tenant.clone(), viewer, actor })
    }

    /// How the program looks at a run, as a route with `{run}` finds it.
    async fn viewer(&self, run: &RunId) -> Result<Viewer, ApiError> {
        let (tenant, asked) = (self.principal.tenant.clone(), run.clone());
        let found = self
            .app
            .store
            .read::<_, StoreError, _>(move |tx| Box::pin(async move { runs::get(tx, &tenant, &asked).await }))
            .await;
        let found = found.map_err(|e| Refusal::from(e).error)?;
        let row = found.ok_or_else(|| ApiError::not_found("Run"))?;
        let viewer = run_viewer(&self.app, &self.principal, &row).await.map_err(|refused| refused.error)?;
        let text = "Not a member of this run's SmartSpace";
        viewer.ok_or_else(|| ApiError::new(ErrorCode::Forbidden, text))
    }
}

fn called(call: &OfferedCall) -> GatewayMessage {
    let (wait, space, args) = (&call.row.wait, call.row.space.as_ref(), call.args.as_ref());
    let call = SocketCall::new(wait, space, args, &call.viewer, call.claimed_until);
    GatewayMessage::Call(Box::new(call))
}

fn not_text() -> ApiError {
    ApiError::new(ErrorCode::BadRequest, "Messages are JSON text, not bytes")
}

async fn say(app: &App, socket: &mut WebSocket, message: &GatewayMessage) -> bool {
    let text = serde_json::to_string(message).unwrap_or_default();
    super::send(app, socket, Message::Text(text.into())).await
}
