//! A gateway that may die at any moment, and a client that does not care.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::database::Database;
use crate::listener::Listener;

const SECRET: &str = "sk_kill_0123456789abcdef";
const PUBLIC: &str = "pk_kill_0123456789abcdef";
pub(crate) const JWT_SECRET: &str = "a-secret-of-the-kill-tests-0123456789";
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Gateway<'d> {
    database: &'d Database,
    child: Child,
    env: Vec<(String, String)>,
    url: Option<String>,
    client: reqwest::Client,
    pub(crate) deaths: u32,
    /// When the process was started that replaced a dead one.
    pub(crate) reborn: Option<Instant>,
}

impl<'d> Gateway<'d> {
    pub(crate) fn start(database: &'d Database, failpoint: Option<&str>) -> Self {
        let armed = failpoint.map(|place| ("TOOLYARD_FAILPOINT".to_owned(), place.to_owned()));
        Self::start_with(database, armed.into_iter().collect())
    }

    /// With variables of its own. One that replaces it after a death has them
    /// too, except failpoints.
    pub(crate) fn start_with(database: &'d Database, env: Vec<(String, String)>) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
        Self { database, child: spawn(database, &env), env, url: None, client, deaths: 0, reborn: None }
    }

    /// Stops it kindly.
    pub(crate) fn stop(mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        self.child.wait().unwrap();
    }

    /// Stops it kindly and starts another one. One that dies on its way counts.
    pub(crate) fn restart(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let ended = self.child.wait().unwrap();
        if !ended.success() {
            self.deaths += 1;
        }
        self.replace();
    }

    fn replace(&mut self) {
        self.url = None;
        self.reborn = Some(Instant::now());
        self.env.retain(|(name, _)| !name.starts_with("TOOLYARD_FAILPOINT"));
        self.child = spawn(self.database, &self.env);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has written something to its error output.
    pub(crate) async fn said(&mut self, words: &str) {
        let started = Instant::now();
        while !self.log().contains(words) {
            assert!(started.elapsed() < PATIENCE, "it never says {words}\n{}", self.log());
            self.find_url();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends a request until it is answered, through any number of deaths.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> (u16, Value) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "{method} {path} was never answered\n{}", self.log());
            match self.once(method, path, body, key).await {
                // 503 says "try again", as a client would.
                Some((503, _)) | None => pause(),
                Some(answer) => return answer,
            }
        }
    }

    /// As `call`, with another's secret key.
    pub(crate) async fn call_as(
        &mut self,
        secret: Option<&str>,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "{method} {path} was never answered\n{}", self.log());
            match self.once_as(secret.unwrap_or(SECRET), method, path, body, None).await {
                Some((503, _)) | None => pause(),
                Some(answer) => return answer,
            }
        }
    }

    /// Sends a request once, if the gateway is there.
    pub(crate) async fn once(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<(u16, Value)> {
        self.once_as(SECRET, method, path, body, key).await
    }

    async fn once_as(
        &mut self,
        secret: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<(u16, Value)> {
        let url = self.find_url()?;
        let request = self.client.request(method.parse().unwrap(), format!("{url}{path}"));
        let mut request = request.header("x-secret-key", secret);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    /// What a user with a token is answered.
    pub(crate) async fn status_as_user(&mut self, path: &str, token: &str) -> u16 {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "{path} was never answered\n{}", self.log());
            let Some(url) = self.find_url() else { continue };
            let request = self.client.get(format!("{url}{path}")).header("x-public-key", PUBLIC);
            match request.bearer_auth(token).send().await {
                Ok(response) => return response.status().as_u16(),
                Err(_) => pause(),
            }
        }
    }

    pub(crate) async fn post(&mut self, path: &str, body: Value) -> Value {
        let key = uuid::Uuid::now_v7().simple().to_string();
        let (status, answer) = self.call("POST", path, Some(&body), Some(&key)).await;
        assert!(status < 300, "POST {path}: {status} {answer}\n{}", self.log());
        answer
    }

    pub(crate) async fn get(&mut self, path: &str) -> Value {
        let (status, answer) = self.call("GET", path, None, None).await;
        assert!(status < 300, "GET {path}: {status} {answer}\n{}", self.log());
        answer
    }

    /// Follows a stream from here on.
    pub(crate) async fn listen(&mut self, path: &str) -> Listener {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "{path} cannot be followed\n{}", self.log());
            let Some(url) = self.find_url() else { continue };
            let request = self.client.get(format!("{url}{path}")).header("x-secret-key", SECRET);
            match request.send().await {
                Ok(response) if response.status() == 200 => return Listener::on(response),
                Ok(_) | Err(_) => pause(),
            }
        }
    }

    /// Waits until it ends by itself: its exit code, and what it said.
    pub(crate) fn outlived(mut self) -> (Option<i32>, String) {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "it does not end\n{}", self.log());
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), self.log());
            }
            pause();
        }
    }

    /// Where it listens. A dead one is replaced by one without a failpoint.
    fn find_url(&mut self) -> Option<String> {
        if let Some(status) = self.child.try_wait().unwrap() {
            assert!(!status.success(), "it ended by itself: {}", self.log());
            self.deaths += 1;
            self.replace();
        }
        if self.url.is_none() {
            let file = self.database.folder.path().join("gateway.json");
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let here = serde_json::from_str::<Value>(&text).ok().filter(|v| v["pid"] == self.child.id());
            match here {
                Some(here) => self.url = here["url"].as_str().map(str::to_owned),
                None => pause(),
            }
        }
        self.url.clone()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.database.folder.path().join("log.txt")).unwrap_or_default()
    }
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pause() {
    std::thread::park_timeout(Duration::from_millis(5));
}

/// Removes this process's link to the binary.
pub(crate) fn forget_binary() {
    let _ = std::fs::remove_file(binary());
}

/// The binary as it is when the test starts: a build that goes on meanwhile
/// must not swap it.
fn binary() -> &'static std::path::Path {
    static OWN: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    OWN.get_or_init(|| {
        let built = std::path::Path::new(env!("CARGO_BIN_EXE_toolyard"));
        let own = built.with_file_name(format!("toolyard-kill-{}", std::process::id()));
        std::fs::hard_link(built, &own).unwrap();
        own
    })
}

fn spawn(database: &Database, env: &[(String, String)]) -> Child {
    let data = database.folder.path();
    let log = std::fs::OpenOptions::new().create(true).append(true).open(data.join("log.txt")).unwrap();
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars().filter(|(n, _)| n.starts_with("TOOLYARD_") || n == "OPENAI_API_KEY") {
        command.env_remove(name);
    }
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(data)
        .env("TOOLYARD_DATA", data)
        .env("TOOLYARD_SECRET_KEY", SECRET)
        .env("TOOLYARD_PUBLIC_KEY", PUBLIC)
        .env("TOOLYARD_JWT_SECRET", JWT_SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    if let Some(url) = &database.url {
        command.env("TOOLYARD_DATABASE_URL", url);
    }
    command.envs(env.iter().map(|(name, value)| (name, value))).spawn().unwrap()
}
