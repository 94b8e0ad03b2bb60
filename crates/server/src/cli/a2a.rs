//! `toolyard a2a check`: does an agent keep the protocol? It reads the card and
//! asks for things that are not there; it starts no task unless told what to say.

use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Subcommand;
use serde_json::{Value, json};
use toolyard_dialects::a2a::Version;
use toolyard_dialects::a2a::client::Peer;
use toolyard_egress::{Door, Header, Letter, Patience, Verb, Whole};

use super::{CliError, Common, print};

#[derive(Debug, Subcommand)]
pub(super) enum A2a {
    /// Check an agent by the address of its card, or the address above it.
    Check {
        /// Where its card is, or what stands before /.well-known/agent-card.json.
        #[arg(value_name = "URL")]
        address: String,
        /// A header for each request, as `x-secret-key: …`.
        #[arg(long, value_name = "NAME: VALUE")]
        header: Vec<String>,
        /// Also send this message and look at the answer.
        #[arg(long, value_name = "TEXT")]
        say: Option<String>,
    },
}

/// How long one answer may take.
const TIME: Duration = Duration::from_secs(60);
const ANSWER_BYTES: u64 = 8 << 20;

/// One look: its name, whether it is fine, and a sentence.
struct Finding {
    what: &'static str,
    fine: bool,
    says: String,
}

struct Checker {
    door: Door,
    headers: Vec<Header>,
    findings: Vec<Finding>,
}

pub(super) async fn obey(command: A2a, common: &Common) -> Result<ExitCode, CliError> {
    let A2a::Check { address, header, say } = command;
    let mut headers = Vec::with_capacity(header.len());
    for given in &header {
        let (name, value) =
            given.split_once(':').ok_or_else(|| CliError::said(format!("{given:?} is not NAME: VALUE")))?;
        let made = Header::chosen(name.trim(), value.trim().to_owned().into());
        headers.push(made.map_err(|e| CliError::said(e.to_string()))?);
    }
    let door = Door::operator().map_err(|e| CliError::said(e.causes()))?;
    let mut checker = Checker { door, headers, findings: Vec::new() };
    checker.run(&address, say.as_deref()).await;
    let fine = checker.findings.iter().all(|finding| finding.fine);
    let list: Vec<Value> =
        checker.findings.iter().map(|f| json!({"check": f.what, "ok": f.fine, "says": f.says})).collect();
    print::rows(common.json, &json!({"ok": fine, "checks": list}), "checks", &["check", "ok", "says"]);
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Checker {
    fn note(&mut self, what: &'static str, fine: bool, says: impl Into<String>) {
        self.findings.push(Finding { what, fine, says: says.into() });
    }

    async fn ask(&self, url: &str, body: Option<String>, version: &'static str) -> Result<Whole, String> {
        let target = self.door.target(url).map_err(|e| e.to_string())?;
        let mut headers = self.headers.clone();
        if !version.is_empty() {
            headers.push(Header::plain("a2a-version", version));
        }
        let letter = Letter {
            verb: if body.is_some() { Verb::Post } else { Verb::Get },
            target: &target,
            headers: &headers,
            accept: "application/json",
            body: body.map(Bytes::from),
            patience: Patience { head: TIME, idle: TIME, bytes: ANSWER_BYTES },
        };
        self.door.ask(letter, TIME).await.map_err(|e| e.causes())
    }

    async fn run(&mut self, address: &str, say: Option<&str>) {
        let Some(card) = self.card(address).await else { return };
        let peer = match Peer::of_card(&card) {
            Ok(peer) => peer,
            Err(why) => return self.note("interface", false, why),
        };
        let version = peer.version.as_str();
        self.note("interface", true, format!("{} by A2A {version}", peer.url));
        let (get, unknown) = match peer.version {
            Version::V10 => ("GetTask", "NoSuchMethod"),
            Version::V03 => ("tasks/get", "no/such"),
        };
        let request = |method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": "check", "method": method, "params": params }).to_string()
        };
        // Without a key nothing else can be seen.
        if let Ok(whole) = self.ask(&peer.url, Some(request(unknown, json!({}))), version).await
            && matches!(whole.status, 401 | 403)
        {
            let text = format!("the agent answers {}: give its key by --header 'name: value'", whole.status);
            return self.note("key", false, text);
        }
        self.refuses("malformed JSON", &peer, "{".to_owned(), version, -32700).await;
        self.refuses("unknown method", &peer, request(unknown, json!({})), version, -32601).await;
        self.refuses("missing parameters", &peer, request(get, json!({})), version, -32602).await;
        let nobody = json!({ "id": "00000000-0000-0000-0000-000000000000" });
        self.refuses("unknown task", &peer, request(get, nobody.clone()), version, -32001).await;
        if peer.version == Version::V10 {
            self.refuses("unknown version", &peer, request(get, nobody), "99.0", -32009).await;
        }
        if let Some(text) = say {
            self.talk(&peer, text).await;
        }
    }

    async fn card(&mut self, address: &str) -> Option<Value> {
        let base = address.trim_end_matches('/');
        let url = if base.ends_with(".json") {
            base.to_owned()
        } else {
            format!("{base}/.well-known/agent-card.json")
        };
        let whole = match self.ask(&url, None, "").await {
            Ok(whole) if (200..300).contains(&whole.status) => whole,
            Ok(whole) => {
                self.note("card", false, format!("{url} answers {}", whole.status));
                return None;
            }
            Err(why) => {
                self.note("card", false, why);
                return None;
            }
        };
        let Ok(card) = serde_json::from_slice::<Value>(&whole.body) else {
            self.note("card", false, "it is not JSON");
            return None;
        };
        let missing: Vec<&str> = [
            "name",
            "description",
            "version",
            "capabilities",
            "defaultInputModes",
            "defaultOutputModes",
            "skills",
        ]
        .into_iter()
        .filter(|name| card[*name].is_null())
        .collect();
        match missing.as_slice() {
            [] => self.note("card", true, format!("of {}", card["name"].as_str().unwrap_or("an agent"))),
            missing => self.note("card", false, format!("{} missing", missing.join(", "))),
        }
        let has = |name: &str| whole.headers.iter().any(|(header, _)| header == name);
        let cached = has("cache-control") && has("etag");
        self.note(
            "card headers",
            cached,
            if cached { "cache-control and etag" } else { "no cache-control or no etag" },
        );
        Some(card)
    }

    /// A request that must be refused with a certain code.
    async fn refuses(
        &mut self,
        what: &'static str,
        peer: &Peer,
        body: String,
        version: &'static str,
        code: i64,
    ) {
        let found = match self.ask(&peer.url, Some(body), version).await {
            Err(why) => return self.note(what, false, why),
            Ok(whole) => serde_json::from_slice::<Value>(&whole.body).unwrap_or_default(),
        };
        match found["error"]["code"].as_i64() {
            Some(found) if found == code => self.note(what, true, format!("refused with {code}")),
            Some(found) => self.note(what, false, format!("refused with {found}, not {code}")),
            None => self.note(what, false, format!("not refused with {code}")),
        }
    }

    async fn talk(&mut self, peer: &Peer, text: &str) {
        let id = uuid::Uuid::now_v7().to_string();
        let ask = peer.say(&id, &Value::from(text), None, None);
        let body = ask.body.map(|body| body.to_string());
        let told = match self.ask(&ask.url, body, peer.version.as_str()).await {
            Err(why) => Err(why),
            Ok(whole) => {
                let value = serde_json::from_slice::<Value>(&whole.body);
                value.map_err(|_| "the answer is not JSON".to_owned()).and_then(|value| peer.read(&value))
            }
        };
        match told {
            Ok(told) => self.note("message", true, format!("{:?}: {}", told.state, told.text)),
            Err(why) => self.note("message", false, why),
        }
    }
}
