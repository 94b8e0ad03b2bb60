//! A gateway of its own for each test, and a small world inside it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolyard_client::{Auth, Backoff, Client, ClientBuilder, EntityId, RunId, SpaceId};

use crate::binary;

pub(crate) const SECRET: &str = "sk_test_secret_0123456789";
/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The command without what the machine's environment says.
pub(crate) fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    let told = |n: &str| n.starts_with("TOOLYARD_") || n.starts_with("AWS_") || n.ends_with("_API_KEY");
    for (name, _) in std::env::vars().filter(|(name, _)| told(name)) {
        command.env_remove(name);
    }
    command.current_dir(folder).env("TOOLYARD_SECRET_KEY", SECRET).stdin(Stdio::null());
    command
}

pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    listen: String,
    folder: PathBuf,
    _kept: tempfile::TempDir,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// With a configuration file.
    pub(crate) fn with(config: &str) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path().to_path_buf();
        std::fs::write(folder.join("toolyard.toml"), config).unwrap();
        // A port that stays, so that clients find it again after a restart.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap().to_string();
        drop(free);
        let (child, url) = spawn(&folder, &listen);
        Self { child, url, listen, folder, _kept: kept }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again, at the same address and with the same data.
    pub(crate) fn again(&mut self) {
        self.kill();
        let (child, url) = spawn(&self.folder, &self.listen);
        (self.child, self.url) = (child, url);
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let backoff = Backoff { first: Duration::from_millis(20), most: Duration::from_millis(200) };
        Client::builder().base_url(&self.url).auth(Auth::secret_key(SECRET)).backoff(backoff)
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    /// A request that the SDK has no function for.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let sent = http.post(format!("{}{path}", self.url)).header("x-secret-key", SECRET).json(body);
        let answer = sent.send().await.unwrap();
        let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert!(status.is_success(), "{status}: {body}");
        body
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            eprintln!("--- the gateway's log\n{log}");
        }
    }
}

#[expect(clippy::zombie_processes, reason = "the gateway that gets the child ends it")]
fn spawn(folder: &Path, listen: &str) -> (Child, String) {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let _ = std::fs::remove_file(folder.join("data/gateway.json"));
    let mut command = command(&binary::gateway(), folder);
    command.args(["serve", "--listen", listen]).env("TOOLYARD_DATA", folder.join("data"));
    command.env("TOOLYARD_PUBLIC_KEY", "pk_test_public_0123456789");
    command.env("TOOLYARD_JWT_SECRET", "jwt-secret-of-the-tests-0123456789ab");
    let mut child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let started = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(folder.join("data/gateway.json"))
            && let Ok(value) = serde_json::from_str::<Value>(&text)
            && value["pid"] == child.id()
        {
            return (child, value["url"].as_str().unwrap().to_owned());
        }
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the gateway did not start");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An agent, a person and a space with both in it.
pub(crate) struct Yard {
    pub(crate) gateway: Gateway,
    pub(crate) client: Client,
    pub(crate) space: SpaceId,
    pub(crate) person: EntityId,
}

/// A tool that clients execute, in an agent's configuration.
pub(crate) fn client_tool(name: &str) -> Value {
    json!({"name": name, "description": "Runs in a client.",
           "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}})
}

impl Yard {
    /// An agent of the demo model with these tools.
    pub(crate) async fn new(tools: Value) -> Self {
        Self::on(Gateway::start(), json!({"provider": "demo", "name": "demo"}), tools).await
    }

    pub(crate) async fn on(gateway: Gateway, model: Value, tools: Value) -> Self {
        let config =
            json!({"agent": {"name": "helper"}, "model": model, "tools": tools, "loop": {"maxSteps": 20}});
        gateway.post("/api/agents", &json!({ "config": config })).await;
        let client = gateway.client();
        let agent = client.entities().agent("helper", "helper").await.unwrap();
        let person = client.entities().person("ann", "Ann").await.unwrap();
        let space = client.spaces().create("yard").await.unwrap().id;
        for entity in [&agent.id, &person.id] {
            client.spaces().add_member(&space, entity).await.unwrap();
        }
        Self { gateway, client, space, person: person.id }
    }

    /// Ann says something; answers the run that it started.
    pub(crate) async fn say(&self, text: &str) -> RunId {
        let mut message = toolyard_client::NewMessage::text(text);
        message.entity_id = Some(self.person.clone());
        let posted = self.client.spaces().post(&self.space, &message).await.unwrap();
        posted.runs[0].run_id.clone().unwrap()
    }

    /// The events of a run, to its end.
    pub(crate) async fn finish(&self, run: &RunId) -> Vec<toolyard_client::Event> {
        use futures::TryStreamExt;
        let all = self.client.runs().stream(run).try_collect::<Vec<_>>();
        tokio::time::timeout(PATIENCE, all).await.expect("the run ends").unwrap()
    }
}

/// Asks again until there is an answer.
pub(crate) async fn eventually<T, F, R>(what: &str, mut ask: F) -> T
where
    F: FnMut() -> R,
    R: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
