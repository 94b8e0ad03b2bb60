//! One connection to Redis, for as long as it lasts, then the next. It is used
//! to publish and to subscribe; nothing is stored there.
//!
//! The node sends a beat to itself. Only a beat that comes back proves the whole
//! way, so a Redis that hangs is given up as quickly as one that is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind,
    RedisError, Value,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Feed;
use super::link::{Link, Parcel};
use super::words::Subject;

/// How long an answer may take, and how often the beat is sent: together less
/// than the second within which PostgreSQL must take over.
const ANSWER: Duration = Duration::from_millis(700);
const BEAT: Duration = Duration::from_millis(250);
/// Beats that may be under way before the way counts as lost.
const BEATS: u64 = 3;
const REST: Duration = Duration::from_millis(300);
/// Messages, or channels, in one request.
const BATCH: usize = 256;

/// Where Redis is. It may hold a password, so its `Debug` prints nothing of it.
#[derive(Clone)]
pub struct RedisUrl(ConnectionInfo);

impl std::fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisUrl(…)")
    }
}

impl RedisUrl {
    /// `redis://…`, `rediss://…` for TLS, or `unix://…`. The error says nothing
    /// of the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("redis" | "rediss" | "unix" | "redis+unix")) {
            return Err("must start with redis:// or rediss://");
        }
        let info = text.into_connection_info().map_err(|_| "is not an address of a Redis server")?;
        // Messages and answers over one connection need the third protocol.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let wire = info.tcp_settings().clone().set_nodelay(true);
        Ok(Self(info.set_redis_settings(settings).set_tcp_settings(wire)))
    }

    /// Channels are the same in all numbered databases: the number is part of
    /// their names.
    pub(crate) fn number(&self) -> i64 {
        self.0.redis_settings().db()
    }
}

/// Asks Redis once, for `doctor`. Answers its version.
pub async fn ask_redis(url: &RedisUrl) -> Result<String, String> {
    let asked = async {
        let mut redis = connect(url, AsyncConnectionConfig::new()).await?;
        redis::cmd("INFO").arg("server").query_async::<String>(&mut redis).await
    };
    let info = asked.await.map_err(|e| e.to_string())?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(version.unwrap_or("of an unknown version").trim().to_owned())
}

async fn connect(url: &RedisUrl, config: AsyncConnectionConfig) -> Result<MultiplexedConnection, RedisError> {
    let config = config.set_connection_timeout(Some(ANSWER)).set_response_timeout(Some(ANSWER));
    Client::open(url.0.clone())?.get_multiplexed_async_connection_with_config(&config).await
}

impl Feed {
    /// Goes by Redis from now on. `root` names the database there. The task
    /// ends by its token.
    pub(crate) fn go_by_redis(
        &self,
        url: RedisUrl,
        root: String,
        stop: CancellationToken,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let (link, parcels) = Link::new(root);
        self.link.set(link).ok()?;
        let feed = self.clone();
        Some(async move { stop.run_until_cancelled_owned(keep(feed, url, parcels)).await.unwrap_or(()) })
    }
}

/// One connection after the other.
async fn keep(feed: Feed, url: RedisUrl, mut parcels: mpsc::Receiver<Parcel>) {
    let Some(link) = feed.link.get() else { return };
    let mut told = false;
    loop {
        let Err(why) = Session::hold(&feed, link, &url, &mut parcels).await;
        let fell = feed.link_is(false);
        if fell || !told {
            told = true;
            tracing::warn!(error = %why, "Redis does not answer: PostgreSQL tells the nodes of each other's commits, and steps of other nodes are shown when they are whole");
        }
        // Nobody waits for what was meant for the lost connection.
        while let Ok(parcel) = parcels.try_recv() {
            link.took(&parcel);
        }
        tokio::time::sleep(REST).await;
    }
}

/// What the connection's own task hears.
#[derive(Debug, Default)]
struct Pulse {
    /// The last beat that came back.
    heard: AtomicU64,
    gone: AtomicBool,
    moved: Notify,
}

struct Session<'l> {
    feed: &'l Feed,
    link: &'l Link,
    redis: MultiplexedConnection,
    pulse: Arc<Pulse>,
    subscribed: HashSet<Subject>,
}

#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error("the connection was closed")]
    Closed,
    #[error("messages do not come back")]
    Silent,
}

impl<'l> Session<'l> {
    /// Connects, and works until the connection is lost.
    async fn hold(
        feed: &'l Feed,
        link: &'l Link,
        url: &RedisUrl,
        parcels: &mut mpsc::Receiver<Parcel>,
    ) -> Result<std::convert::Infallible, Lost> {
        let pulse = Arc::new(Pulse::default());
        let (ear, heart, mirror) = (feed.clone(), pulse.clone(), link.mirror());
        // Called by the connection's task itself: there is no queue that could
        // grow, a node that is slow lets Redis wait.
        let push = move |info: PushInfo| {
            hear(&ear, &heart, &mirror, &info);
            Ok::<(), std::convert::Infallible>(())
        };
        let redis = connect(url, AsyncConnectionConfig::new().set_push_sender(push)).await?;
        let mut session = Session { feed, link, redis, pulse, subscribed: HashSet::new() };
        session.redis.subscribe(vec![link.common(), link.mirror()]).await?;
        session.subscribe(feed.read_here()).await?;
        session.work(parcels).await
    }

    async fn work(&mut self, parcels: &mut mpsc::Receiver<Parcel>) -> Result<std::convert::Infallible, Lost> {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = 0u64;
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                biased;
                () = self.pulse.moved.notified() => self.feel()?,
                _ = beats.tick() => {
                    if sent.saturating_sub(self.pulse.heard.load(Ordering::Acquire)) >= BEATS {
                        return Err(Lost::Silent);
                    }
                    sent += 1;
                    let beat = Parcel { channel: self.link.mirror(), text: sent.to_string() };
                    self.publish(std::slice::from_ref(&beat)).await?;
                }
                () = self.link.changed.notified() => {
                    let (read, unread) = self.feed.changed_here();
                    self.subscribe(read).await?;
                    self.unsubscribe(unread).await?;
                }
                _ = parcels.recv_many(&mut batch, BATCH) => {
                    batch.iter().for_each(|parcel| self.link.took(parcel));
                    self.publish(&batch).await?;
                    batch.clear();
                }
            }
        }
    }

    /// A beat came back, or the connection is gone.
    fn feel(&self) -> Result<(), Lost> {
        if self.pulse.gone.load(Ordering::Acquire) {
            return Err(Lost::Closed);
        }
        if self.pulse.heard.load(Ordering::Acquire) > 0 && self.feed.link_is(true) {
            tracing::info!("Redis carries news and streamed pieces between the nodes");
        }
        Ok(())
    }

    async fn publish(&mut self, parcels: &[Parcel]) -> Result<(), Lost> {
        let mut pipe = redis::pipe();
        for Parcel { channel, text } in parcels {
            pipe.cmd("PUBLISH").arg(channel).arg(text).ignore();
        }
        Ok(pipe.query_async::<()>(&mut self.redis).await?)
    }

    /// Listens to what is read here, then asks how far its steps are: in this
    /// order nothing falls between.
    async fn subscribe(&mut self, mut read: Vec<Subject>) -> Result<(), Lost> {
        read.retain(|subject| !self.subscribed.contains(subject));
        for some in read.chunks(BATCH) {
            let channels: Vec<String> = some.iter().map(|subject| self.link.channel(subject)).collect();
            self.redis.subscribe(channels).await?;
            let asks: Vec<Parcel> = some.iter().map(|subject| self.link.question(subject)).collect();
            self.publish(&asks).await?;
            self.subscribed.extend(some.iter().cloned());
        }
        Ok(())
    }

    async fn unsubscribe(&mut self, mut unread: Vec<Subject>) -> Result<(), Lost> {
        unread.retain(|subject| self.subscribed.remove(subject));
        for some in unread.chunks(BATCH) {
            let channels: Vec<String> = some.iter().map(|subject| self.link.channel(subject)).collect();
            self.redis.unsubscribe(channels).await?;
        }
        Ok(())
    }
}

/// What Redis says without being asked.
fn hear(feed: &Feed, pulse: &Pulse, mirror: &str, info: &PushInfo) {
    match (&info.kind, info.data.as_slice()) {
        (PushKind::Disconnection, _) => {
            pulse.gone.store(true, Ordering::Release);
            pulse.moved.notify_one();
        }
        (PushKind::Message, [Value::BulkString(channel), Value::BulkString(text)]) => {
            let (Ok(channel), Ok(text)) = (std::str::from_utf8(channel), std::str::from_utf8(text)) else {
                return;
            };
            if channel == mirror {
                pulse.heard.store(text.parse().unwrap_or(0), Ordering::Release);
                pulse.moved.notify_one();
            } else {
                feed.hear(channel, text);
            }
        }
        _ => {}
    }
}
