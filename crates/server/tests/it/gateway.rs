//! Starts a gateway, talks to it, and ends it with the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

pub(crate) const SECRET: &str = "sk_test_secret_0123456789";
pub(crate) const PUBLIC: &str = "pk_test_public_0123456789";
pub(crate) const JWT_SECRET: &str = "jwt-secret-of-the-tests-0123456789ab";
/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A folder that goes away with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("toolyard-test-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The command with the tests' keys, without what the machine's environment says.
pub(crate) fn toolyard(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
    let told = |n: &str| n.starts_with("TOOLYARD_") || n.starts_with("AWS_") || n.ends_with("_API_KEY");
    for (name, _) in std::env::vars().filter(|(name, _)| told(name)) {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .env("TOOLYARD_DATA", folder.join("data"))
        .env("TOOLYARD_SECRET_KEY", SECRET)
        .env("TOOLYARD_PUBLIC_KEY", PUBLIC)
        .env("TOOLYARD_JWT_SECRET", JWT_SECRET);
    command
}

pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    pub(crate) folder: Folder,
    client: reqwest::Client,
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        Self::start_with(Folder::new(), &[]).await
    }

    pub(crate) async fn start_with(folder: Folder, env: &[(&str, &str)]) -> Self {
        Self::start_on("127.0.0.1:0", folder, env).await
    }

    pub(crate) async fn start_on(listen: &str, folder: Folder, env: &[(&str, &str)]) -> Self {
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let out = std::fs::File::create(folder.path().join("out")).unwrap();
        let mut command = toolyard(folder.path());
        command.args(["serve", "--listen", listen]).envs(env.iter().copied());
        let mut child = command.stdout(out).stderr(log).stdin(Stdio::null()).spawn().unwrap();
        let url = wait_for_url(&mut child, folder.path());
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { child, url, folder, client }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
    pub(crate) fn out(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }
    pub(crate) fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    /// A request without keys.
    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }
    pub(crate) fn secret(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).header("x-secret-key", SECRET)
    }
    /// A user's request.
    pub(crate) fn user(&self, user: &str, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).header("x-public-key", PUBLIC).bearer_auth(token(user))
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        fine(self.secret(Method::POST, path).json(&body)).await
    }
    pub(crate) async fn get(&self, path: &str) -> Value {
        fine(self.secret(Method::GET, path)).await
    }

    /// Ends it gently; answers how it ended and how long it took.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Duration, Folder) {
        let started = Instant::now();
        signal(self.child.id(), "TERM");
        let status = self.child.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, Folder(PathBuf::from("/nonexistent/toolyard")));
        (status, started.elapsed(), folder)
    }

    /// Ends it without a word; answers its folder.
    pub(crate) fn kill(mut self) -> Folder {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder(PathBuf::from("/nonexistent/toolyard")))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the gateway's log\n{}", self.log());
        }
    }
}

fn wait_for_url(child: &mut Child, folder: &Path) -> String {
    let pid = child.id();
    let file = folder.join("data/gateway.json");
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Ok(text) = std::fs::read_to_string(&file)
            && let Ok(value) = serde_json::from_str::<Value>(&text)
            && value["pid"] == pid
        {
            return value["url"].as_str().unwrap().to_owned();
        }
        if let Some(status) = child.try_wait().unwrap() {
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            panic!("the gateway ended with {status}: {log}");
        }
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("the gateway did not start");
}

pub(crate) fn signal(pid: u32, name: &str) {
    let done = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(done.success());
}

/// Sends and answers status and JSON.
pub(crate) async fn ask(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Sends and answers the JSON of a success.
pub(crate) async fn fine(request: RequestBuilder) -> Value {
    let (status, body) = ask(request).await;
    assert!(status.is_success(), "{status}: {body}");
    body
}

pub(crate) fn message(body: &Value) -> &str {
    body["error"]["message"].as_str().unwrap_or_default()
}

/// A user's token, good for an hour.
pub(crate) fn token(user: &str) -> String {
    token_of(&json!({"sub": user, "exp": now() + 3600}))
}

pub(crate) fn token_of(claims: &Value) -> String {
    signed(&json!({"alg": "HS256", "typ": "JWT"}), claims, JWT_SECRET.as_bytes())
}

pub(crate) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// A token made by hand, so that it may be as wrong as a test wants.
pub(crate) fn signed(head: &Value, claims: &Value, secret: &[u8]) -> String {
    signed_text(&head.to_string(), &claims.to_string(), secret)
}

pub(crate) fn signed_text(head: &str, claims: &str, secret: &[u8]) -> String {
    let input = format!("{}.{}", b64(head.as_bytes()), b64(claims.as_bytes()));
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
    let tag = aws_lc_rs::hmac::sign(&key, input.as_bytes());
    format!("{input}.{}", b64(tag.as_ref()))
}

pub(crate) fn b64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
