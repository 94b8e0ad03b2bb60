//! The client that the official MCP conformance suite drives: our host, and a
//! user who agrees to everything. `scripts/mcp-conformance` runs it.
//!
//! The suite starts a server for each scenario and gives its address as the
//! argument. This program does what a run would do: list the tools, log in if
//! the server asks for it, call every tool, answer every question.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a program for tests")]

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use toolyard_egress::{Door, Letter, Patience, Target, Verb};
use toolyard_mcp::{
    Ask, Call, Catalogue, Doors, Era, Host, Launch, Logins, MemoryTokens, OauthClient, Origin, Outcome,
    Owner, Question, Remote, Reply, ServerName, ServerSettings, Sharing,
};
use toolyard_protocol::{EntityId, TenantId};
use toolyard_schema::Schemas;

/// Logins that one call may ask for: the first, and one step up.
const LOGINS: usize = 3;
const TIME: Duration = Duration::from_secs(20);

struct Client {
    host: Host,
    owner: Owner,
    settings: ServerSettings,
    logins: usize,
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("the address of the server");
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let context: Value =
        context.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap_or(Value::Null));
    let mut client = Client::new(&url, &context);
    let worked = client.run(&context).await;
    client.host.stop().await;
    if !worked {
        eprintln!("status: {:?}", client.host.status());
        std::process::exit(1);
    }
}

impl Client {
    fn new(url: &str, context: &Value) -> Self {
        let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
        let client = text("client_id").map(|id| OauthClient {
            id,
            secret: text("client_secret").map(SecretString::from),
            scopes: Vec::new(),
        });
        let target = Target::parse(url).unwrap();
        let remote = Remote { target, headers: Default::default(), client, asked_for_sse: false };
        let name = ServerName::parse("suite").unwrap();
        let mut settings = ServerSettings::new(name, Origin::Operator, Launch::Http(remote));
        settings.sharing = Sharing::User;
        settings.start = TIME;
        settings.era = match std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
            Ok("2026-07-28") => Some(Era::Modern),
            Ok(_) => Some(Era::Legacy),
            Err(_) => None,
        };
        let door = Door::operator().unwrap();
        let logins = Logins {
            store: Arc::new(MemoryTokens::default()),
            redirect_uri: "http://localhost:3000/callback".to_owned(),
            client_metadata_url: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        };
        let host = Host::new(Doors { operator: door.clone(), guarded: door }, Schemas::new(), Some(logins));
        let owner = Owner {
            tenant: TenantId::parse("suite").unwrap(),
            entity: Some(EntityId::parse("user").unwrap()),
        };
        Self { host, owner, settings, logins: 0 }
    }

    async fn run(&mut self, context: &Value) -> bool {
        let Some(catalogue) = self.catalogue().await else { return false };
        let scripted = context.get("toolCalls").and_then(Value::as_array).cloned();
        let calls: Vec<(String, Map<String, Value>)> = match scripted {
            Some(calls) => calls
                .iter()
                .map(|call| {
                    (
                        call["name"].as_str().unwrap().to_owned(),
                        call["arguments"].as_object().unwrap().clone(),
                    )
                })
                .collect(),
            None => catalogue
                .tools
                .iter()
                .map(|tool| {
                    let mut arguments = sample(&tool.tool.input_schema);
                    if tool.tool.raw == "json_schema_echo" {
                        // The suite wants to see what a client kept of a schema.
                        arguments.insert("schema".to_owned(), catalogue.tools[0].tool.input_schema.clone());
                    }
                    (tool.tool.raw.clone(), arguments)
                })
                .collect(),
        };
        let mut worked = true;
        for (tool, arguments) in calls {
            let outcome = self.call(&tool, arguments).await;
            eprintln!("{tool}: {outcome:?}");
            worked &= matches!(outcome, Outcome::Done(_) | Outcome::Failed(_));
        }
        worked
    }

    async fn catalogue(&mut self) -> Option<Catalogue> {
        loop {
            let servers = std::slice::from_ref(&self.settings);
            let seen = self.host.catalogue(&self.owner, servers, TIME).await;
            match seen.missing.first() {
                None => return Some(seen),
                Some(missing) => {
                    eprintln!("missing: {missing:?}");
                    if !missing.needs_login || !self.log_in().await {
                        return None;
                    }
                }
            }
        }
    }

    async fn call(&mut self, tool: &str, arguments: Map<String, Value>) -> Outcome {
        let mut call = Call::new(tool, arguments);
        call.ask = Some(Arc::new(Agreeable));
        let mut outcome = self.host.call(&self.owner, &self.settings, call.clone()).await;
        loop {
            outcome = match outcome {
                Outcome::Paused(paused) => {
                    let answers =
                        paused.questions().map(|(key, q)| (key.to_owned(), agree(&q).to_value())).collect();
                    self.host.resume(&self.owner, &self.settings, call.clone(), paused, answers).await
                }
                Outcome::Task(ticket) => {
                    self.host.follow(&self.owner, &self.settings, ticket, call.clone()).await
                }
                Outcome::NotSent { needs_login: true, why } => {
                    if !self.log_in().await {
                        return Outcome::NotSent { needs_login: true, why };
                    }
                    self.host.call(&self.owner, &self.settings, call.clone()).await
                }
                ended => return ended,
            };
        }
    }

    /// Logs in as a user would, with a browser that follows the address.
    async fn log_in(&mut self) -> bool {
        self.logins += 1;
        if self.logins > LOGINS {
            eprintln!("the server asks for logins without end");
            return false;
        }
        let done = async {
            let login = self.host.login(&self.owner, &self.settings).await?;
            let target = Target::parse(&login.url).map_err(|e| e.to_string())?;
            let patience = Patience { head: TIME, idle: TIME, bytes: 1 << 20 };
            let letter = Letter {
                verb: Verb::Get,
                target: &target,
                headers: &[],
                accept: "*/*",
                body: None,
                patience,
            };
            let answer = Door::operator().unwrap().send(letter).await.map_err(|e| e.to_string())?;
            let back = answer.header("location").ok_or("the user was not sent back")?;
            self.host.finish_login(&self.owner, &self.settings, back).await
        };
        let done: Result<(), String> = done.await;
        if let Err(why) = &done {
            eprintln!("login: {why}");
        }
        done.is_ok()
    }
}

struct Agreeable;

impl Ask for Agreeable {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        async move { agree(&question) }.boxed()
    }
}

/// Fills in a form with its defaults, and with something where there is none.
fn agree(question: &Question) -> Reply {
    match question {
        Question::Form { schema, .. } => Reply::Accept(Value::Object(sample(schema))),
        Question::Url { .. } => Reply::Accept(Value::Null),
        Question::Unsupported { .. } => Reply::Decline,
    }
}

/// An object that fits a simple schema.
fn sample(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let value = |field: &Value| {
        if let Some(default) = field.get("default") {
            return default.clone();
        }
        if let Some(first) = field.get("enum").and_then(|all| all.get(0)) {
            return first.clone();
        }
        match field.get("type").and_then(Value::as_str) {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("test"),
        }
    };
    properties.into_iter().flatten().map(|(name, field)| (name.clone(), value(field))).collect()
}
