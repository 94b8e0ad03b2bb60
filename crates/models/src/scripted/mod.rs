//! A local HTTP server that plays a vendor, for tests and benches.
//!
//! It speaks chat completions on 127.0.0.1, follows a script of [`Reply`]s,
//! misbehaves as told and records every request. It is not a model and knows
//! nothing of the rest of this crate, so that both cannot be wrong together.

mod http;
mod reply;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use reply::Reply;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Null` if it was no JSON.
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The text of the last message of this role.
    pub fn last_text(&self, role: &str) -> Option<&str> {
        let messages = self.body["messages"].as_array()?;
        messages.iter().rev().find(|m| m["role"] == role)?["content"].as_str()
    }
}

/// The running server. Dropping it ends every connection.
pub struct Upstream {
    address: SocketAddr,
    desk: Arc<Desk>,
    _tasks: JoinSet<()>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Gives these replies in order; a request too many is refused with 400.
    pub async fn serve(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let script = Mutex::new(replies.into_iter().collect::<VecDeque<_>>());
        Self::answer(move |_| {
            let next = script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            next.unwrap_or_else(|| Reply::refusal(400, "the script has no more replies"))
        })
        .await
    }

    /// Lets the request choose the reply.
    pub async fn answer<F>(choose: F) -> io::Result<Self>
    where
        F: Fn(&Seen) -> Reply + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (tally, _) = watch::channel(Tally::default());
        let desk = Arc::new(Desk { choose: Box::new(choose), seen: Mutex::default(), tally });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&desk)));
        Ok(Self { address, desk, _tasks: tasks })
    }

    /// What `base_url` of a provider must be.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// All requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Seen> {
        self.desk.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many requests have arrived.
    pub async fn requests_reach(&self, count: usize) {
        let mut tally = self.desk.tally.subscribe();
        // The sender lives as long as `self`.
        let _ = tally.wait_for(|tally| tally.requests >= count).await;
    }

    /// Waits until so many clients went away from a reply that hangs.
    pub async fn hangups_reach(&self, count: usize) {
        let mut tally = self.desk.tally.subscribe();
        let _ = tally.wait_for(|tally| tally.hangups >= count).await;
    }
}

#[derive(Debug, Default)]
struct Tally {
    requests: usize,
    hangups: usize,
}

/// What all connections share.
struct Desk {
    choose: Box<dyn Fn(&Seen) -> Reply + Send + Sync>,
    seen: Mutex<Vec<Seen>>,
    tally: watch::Sender<Tally>,
}

impl Desk {
    fn take(&self, request: Seen) -> Reply {
        let reply = (self.choose)(&request);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        self.tally.send_modify(|tally| tally.requests += 1);
        reply
    }

    fn hung_up(&self) {
        self.tally.send_modify(|tally| tally.hangups += 1);
    }
}

async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((socket, _)) = accepted {
                    let desk = Arc::clone(&desk);
                    // A broken connection is the client's business.
                    connections.spawn(async move { drop(http::converse(socket, &desk).await) });
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
