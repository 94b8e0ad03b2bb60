//! `fetch` in a plugin: a question to the gateway, which sends the request by
//! the guarded door and to the hosts of the manifest alone, on every hop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_egress::{Door, EgressError, Header, Letter, Only, Patience, Verb};
use toolyard_plugins::sandbox::Host;
use toolyard_plugins::scripted::Means;
use toolyard_protocol::limits::{PLUGIN_FETCH_BYTES, PLUGIN_FETCHES, TOOL_TIMEOUT_MS};
use toolyard_protocol::manifest::FetchHost;

/// The function that code sees.
pub(super) const PRELUDE: &str = include_str!("fetch.js");
/// Headers of an answer that hand out credentials.
const KEPT_BACK: [&str; 3] = ["set-cookie", "set-cookie2", "www-authenticate"];

/// The requests of one call.
pub(super) struct Fetch {
    door: Door,
    total: Duration,
    sent: AtomicUsize,
    written: AtomicBool,
}

/// `fetch` for the hooks of a plugin: each call of a hook has requests of its own.
pub(super) struct Fetches {
    pub(super) door: Door,
    pub(super) hosts: Vec<FetchHost>,
}

impl Means for Fetches {
    fn prelude(&self) -> &'static str {
        PRELUDE
    }

    fn host(&self) -> Arc<dyn Host> {
        match Fetch::new(&self.door, &self.hosts, self.time_ms()) {
            Ok(fetch) => Arc::new(fetch),
            Err(why) => Arc::new(Nothing(why)),
        }
    }

    fn time_ms(&self) -> u64 {
        TOOL_TIMEOUT_MS
    }
}

/// Answers every question with the same refusal.
struct Nothing(String);

impl Host for Nothing {
    fn ask<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}

#[derive(Deserialize)]
struct Asked {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

impl Fetch {
    pub(super) fn new(door: &Door, hosts: &[FetchHost], total_ms: u64) -> Result<Self, String> {
        let names: Vec<&str> = hosts.iter().map(FetchHost::as_str).collect();
        let door = door.only(Only::parse(&names)?);
        let total = Duration::from_millis(total_ms);
        Ok(Self { door, total, sent: AtomicUsize::new(0), written: AtomicBool::new(false) })
    }

    /// Whether a request left that may have changed something.
    pub(super) fn has_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    async fn send(&self, asked: Asked) -> Result<Value, String> {
        if self.sent.fetch_add(1, Ordering::Relaxed) >= PLUGIN_FETCHES {
            return Err(format!("fetch: at most {PLUGIN_FETCHES} requests in one call"));
        }
        let said = |e: EgressError| format!("fetch: {e}");
        let verb = verb(&asked.method)?;
        let headers: Result<Vec<Header>, EgressError> = asked
            .headers
            .iter()
            .map(|(name, value)| Header::chosen(name, SecretString::from(value.as_str())))
            .collect();
        let (target, headers) = (self.door.target(&asked.url).map_err(said)?, headers.map_err(said)?);
        if verb != Verb::Get {
            self.written.store(true, Ordering::Relaxed);
        }
        let letter = Letter {
            verb,
            target: &target,
            headers: &headers,
            accept: "*/*",
            body: asked.body.map(Bytes::from),
            patience: Patience { head: self.total, idle: self.total, bytes: PLUGIN_FETCH_BYTES },
        };
        let whole = self.door.ask(letter, self.total).await.map_err(said)?;
        let headers: Vec<_> =
            whole.headers.iter().filter(|(name, _)| !KEPT_BACK.contains(&name.as_str())).collect();
        let body = String::from_utf8_lossy(&whole.body);
        Ok(json!({ "status": whole.status, "headers": headers, "body": body }))
    }
}

impl Host for Fetch {
    fn ask<'a>(&'a self, name: &'a str, value: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            if name != "fetch" {
                return Err(format!("the gateway answers no question of the name {name:?}"));
            }
            let asked = serde_json::from_value(value).map_err(|e| format!("fetch: {e}"))?;
            self.send(asked).await
        })
    }
}

fn verb(method: &str) -> Result<Verb, String> {
    Ok(match method {
        "GET" => Verb::Get,
        "POST" => Verb::Post,
        "PUT" => Verb::Put,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => return Err("fetch: the method is GET, POST, PUT, PATCH or DELETE".to_owned()),
    })
}
