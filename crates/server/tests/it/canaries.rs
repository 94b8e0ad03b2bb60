//! X8: a canary in every slot that holds a secret, all logs on, and far sides
//! that repeat what they are given. Each canary is seen at its own far side and
//! nowhere else: no log, no answer, no event, no metric, no file.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::far_side::FarSide;
use crate::gateway::{Folder, Gateway, JWT_SECRET, PUBLIC, SECRET, ask, fine, token, toolyard};
use crate::yard::{eventually, join, new_space, new_user, read_all};

const PROVIDER: &str = "canary-provider-key-0123456789";
const MCP: &str = "canary-mcp-token-0123456789";
const SMTP: &str = "canary-smtp-password-0123456789";
/// Thirty-two bytes, as a master key must be.
const MASTER: &str = "ca9a21ca9a21ca9a21ca9a21ca9a21ca9a21ca9a21ca9a21ca9a21ca9a21ca9a";
const STORED: &str = "canary-stored-secret-0123456789";
const VARIABLE: &str = "canary-variable-0123456789";
const MCP_ENV: &str = "canary-mcp-env-0123456789";
const MCP_INHERITED: &str = "canary-mcp-inherited-0123456789";
const MCP_HEADER: &str = "canary-mcp-header-0123456789";
const OAUTH: &str = "canary-oauth-client-0123456789";
const TELEMETRY: &str = "canary-telemetry-0123456789";
const REMOTE: &str = "canary-remote-agent-0123456789";
const AWS_SECRET: &str = "canary-aws-secret-0123456789";
const AWS_SESSION: &str = "canary-aws-session-0123456789";
const DATABASE: &str = "canary-database-password-0123456789";
const REDIS: &str = "canary-redis-password-0123456789";

/// Every place of the configuration that holds a secret or names the variable
/// of one, and what is planted there.
const SLOTS: [(&str, &str); 15] = [
    ("database_url", DATABASE),
    ("env.allow", VARIABLE),
    ("jwt.secret", JWT_SECRET),
    ("keys.master", MASTER),
    // Pages have it. It is hidden from logs all the same.
    ("keys.public", PUBLIC),
    ("keys.secret", SECRET),
    ("mcp_servers.*.bearer_token_env_var", MCP),
    ("mcp_servers.*.env.*", MCP_ENV),
    ("mcp_servers.*.env_vars", MCP_INHERITED),
    ("mcp_servers.*.headers.*", MCP_HEADER),
    ("mcp_servers.*.oauth.client_secret_env_var", OAUTH),
    ("providers.*.api_key_env", PROVIDER),
    ("redis_url", REDIS),
    ("smtp.password", SMTP),
    ("telemetry.authorization", TELEMETRY),
];

/// A mail server that refuses the password and repeats what was said to it.
struct PostOffice {
    port: u16,
    heard: Arc<Mutex<String>>,
    _task: tokio::task::JoinSet<()>,
}

impl PostOffice {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<String>> = Arc::default();
        let mut task = tokio::task::JoinSet::new();
        let kept = heard.clone();
        task.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let _ = serve(socket, &kept).await;
            }
        });
        Self { port, heard, _task: task }
    }
}

async fn serve(mut socket: tokio::net::TcpStream, heard: &Mutex<String>) -> std::io::Result<()> {
    let (read, mut write) = socket.split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 here\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        heard.lock().unwrap().push_str(&line);
        let answer = match line.split(' ').next().unwrap_or_default() {
            "EHLO" => "250-here\r\n250 AUTH PLAIN LOGIN\r\n".to_owned(),
            "QUIT" => "221 bye\r\n".to_owned(),
            _ => format!("535 I do not like {line}\r\n"),
        };
        write.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

/// All forms of a canary that somebody could read it from.
fn forms(canary: &str) -> Vec<String> {
    let engine = base64::engine::general_purpose::STANDARD;
    let plain = format!("\0ann\0{canary}");
    vec![canary.to_owned(), engine.encode(canary), engine.encode(plain)]
}

fn settings(far: &FarSide, post: &PostOffice, folder: &Path) -> String {
    format!(
        r#"
allow_private_network = ["{address}"]
[env]
allow = ["CANARY_VARIABLE"]
[providers.careless]
kind = "openai"
base_url = "http://{address}/v1"
api_key_env = "CARELESS_API_KEY"
[mcp_servers.careless]
url = "http://{address}/mcp"
bearer_token_env_var = "CARELESS_MCP_TOKEN"
startup_timeout_sec = 5
[mcp_servers.headed]
url = "http://{address}/headed"
headers = {{ x-api-key = "{MCP_HEADER}" }}
startup_timeout_sec = 5
[mcp_servers.logged]
url = "http://{address}/logged"
oauth = {{ client_id = "us", client_secret_env_var = "CARELESS_CLIENT_SECRET" }}
startup_timeout_sec = 5
[mcp_servers.talkative]
command = "/bin/sh"
args = ["-c", "env >told-to-program; env >&2; env; exit 3"]
cwd = "{folder}"
env = {{ TOLD = "{MCP_ENV}" }}
env_vars = ["CARELESS_INHERITED"]
startup_timeout_sec = 5
[providers.cloud]
kind = "bedrock"
base_url = "http://{address}"
[telemetry]
otlp_traces = "http://{address}/v1/traces"
authorization = "Bearer {TELEMETRY}"
all_agents = true
[smtp]
host = "127.0.0.1"
port = {port}
tls = "none"
user = "ann"
from = "Toolyard <toolyard@example.org>"
"#,
        address = far.address,
        port = post.port,
        folder = folder.display(),
    )
}

/// Agents that use every slot.
async fn agents(gateway: &Gateway, far: &FarSide) {
    let demo = json!({"provider": "demo", "name": "demo"});
    let authorization = "Bearer ${secret.STORED} ${env.CANARY_VARIABLE}";
    let tools = json!([
        {"name": "send", "description": "d", "executionType": "request",
         "execution": {"url": format!("{}/send", far.url()), "headers": {"Authorization": authorization}}},
        {"name": "remote", "description": "d", "executionType": "remote-agent",
         "execution": {"card": far.url(), "headers": {"authorization": "Bearer ${secret.REMOTE}"}}},
        {"executionType": "prebuilt", "execution": {"action": "sendNotification", "channels": ["email"]}},
    ]);
    let configs = [
        json!({"agent": {"name": "tooled"}, "model": demo, "tools": tools}),
        json!({"agent": {"name": "modelled"}, "model": {"provider": "careless", "name": "any"}}),
        json!({"agent": {"name": "served"}, "model": demo, "mcp": {"servers":
            [{"name": "careless"}, {"name": "headed"}, {"name": "logged"}, {"name": "talkative"}]}}),
        json!({"agent": {"name": "clouded"}, "model": {"provider": "cloud", "name": "any"}}),
    ];
    for config in configs {
        gateway.post("/api/agents", json!({"config": config})).await;
    }
}

struct Scene {
    gateway: Gateway,
    ann: String,
    seen: String,
}

impl Scene {
    /// Says something to an agent in a space of its own; what was told goes to `seen`.
    async fn say(&mut self, agent: &str, text: &str) {
        let made = self.gateway.post("/api/entities/agent", json!({"agentId": agent})).await;
        let space = new_space(&self.gateway).await;
        join(&self.gateway, &space, made["entity"]["id"].as_str().unwrap()).await;
        join(&self.gateway, &space, &self.ann).await;
        let path = format!("/api/smart-spaces/{space}/messages");
        let posted =
            fine(self.gateway.user("ann", Method::POST, &path).json(&json!({"content": text}))).await;
        let run = posted["runs"][0]["runId"].as_str().unwrap();
        let stream = self.gateway.secret(Method::GET, &format!("/api/runs/{run}/stream"));
        for event in read_all(stream.send().await.unwrap()).await {
            self.seen.push_str(&event.data);
        }
        for path in [format!("/api/runs/{run}"), format!("/api/runs/{run}/events"), path] {
            self.seen.push_str(&self.gateway.get(&path).await.to_string());
        }
    }

    /// Every route that can be read without knowing an id.
    async fn read_everything(&mut self) -> usize {
        let document = self.gateway.get("/api/openapi.json").await;
        let mut read = 0;
        for (path, methods) in document["paths"].as_object().unwrap() {
            if methods.get("get").is_none() || path.contains('{') {
                continue;
            }
            let response = self.gateway.secret(Method::GET, path).send().await.unwrap();
            self.seen.push_str(&format!("{:?}", response.headers()));
            self.seen.push_str(&response.text().await.unwrap());
            read += 1;
        }
        read
    }
}

#[tokio::test]
async fn x8_a_canary_in_every_slot_is_seen_by_its_own_far_side_alone() {
    let (far, post) = (FarSide::start().await, PostOffice::open().await);
    let folder = Folder::new();
    std::fs::write(folder.path().join("toolyard.toml"), settings(&far, &post, folder.path())).unwrap();
    let env = [
        ("TOOLYARD_LOG_LEVEL", "trace"),
        ("TOOLYARD_LOG_FORMAT", "json"),
        ("TOOLYARD_MASTER_KEY", MASTER),
        ("TOOLYARD_SMTP_PASSWORD", SMTP),
        ("CARELESS_API_KEY", PROVIDER),
        ("CARELESS_MCP_TOKEN", MCP),
        ("CANARY_VARIABLE", VARIABLE),
        ("CARELESS_CLIENT_SECRET", OAUTH),
        ("CARELESS_INHERITED", MCP_INHERITED),
        ("AWS_REGION", "eu-north-1"),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", AWS_SECRET),
        ("AWS_SESSION_TOKEN", AWS_SESSION),
    ];
    let gateway = Gateway::start_with(folder, &env).await;
    agents(&gateway, &far).await;
    let ann = new_user(&gateway, "ann").await;
    let with_mail = gateway.secret(Method::PATCH, &format!("/api/entities/{ann}"));
    fine(with_mail.json(&json!({"metadata": {"email": "ann@example.org"}}))).await;
    for (name, value) in [("STORED", STORED), ("REMOTE", REMOTE)] {
        fine(gateway.secret(Method::PUT, &format!("/api/secrets/{name}")).json(&json!({"value": value})))
            .await;
    }
    let hook = json!({"url": format!("{}/hook", far.url()), "events": ["run.completed"]});
    let hook = gateway.post("/api/webhooks", hook).await["secret"].as_str().unwrap().to_owned();
    let key = gateway.post("/api/keys", json!({"tenant": "acme", "kind": "secret"})).await;
    let key = key["key"].as_str().unwrap().to_owned();
    ask(gateway.bare(Method::GET, "/api/agents").header("x-secret-key", &key)).await;

    let mut scene = Scene { gateway, ann, seen: String::new() };
    scene.say("tooled", "call send {}").await;
    scene
        .say("tooled", "call sendNotification {\"title\":\"t\",\"message\":\"m\",\"channels\":[\"email\"]}")
        .await;
    scene.say("tooled", "call remote {\"prompt\":\"hi\"}").await;
    scene.say("served", "hello").await;
    scene.say("clouded", "hello").await;
    // A vendor that refuses the key and repeats it.
    far.will_answer(&[401; 8]);
    scene.say("modelled", "hello").await;
    far.will_answer(&[]);
    let used =
        |what: &str| far.asked().iter().any(|asked| asked.head.contains(what) || asked.line.contains(what));
    eventually("each far side sees its own", || async {
        let letter = forms(SMTP).iter().any(|form| post.heard.lock().unwrap().contains(form));
        let sent =
            [STORED, VARIABLE, PROVIDER, MCP, MCP_HEADER, TELEMETRY, REMOTE, AWS_SESSION, "POST /hook"];
        letter && sent.into_iter().all(used)
    })
    .await;
    let program = scene.gateway.folder.path().join("told-to-program");
    let told = std::fs::read_to_string(program).unwrap();
    assert!(told.contains(MCP_ENV) && told.contains(MCP_INHERITED), "{told}");
    let read = scene.read_everything().await;
    assert!(read >= 25, "only {read} routes were read");

    let Scene { gateway, mut seen, .. } = scene;
    for args in [["config", "print"], ["doctor", "--json"]] {
        let mut command = toolyard(gateway.folder.path());
        let said = command.args(args).envs(env).output().unwrap();
        seen.push_str(&String::from_utf8_lossy(&said.stdout));
        seen.push_str(&String::from_utf8_lossy(&said.stderr));
    }
    let log = gateway.log();
    assert!(log.contains("\"level\":\"TRACE\""), "nothing was logged");
    seen.push_str(&gateway.out());
    let signature = token("ann").rsplit('.').next().unwrap().to_owned();
    let others = [STORED, REMOTE, AWS_SECRET, AWS_SESSION, &key, &hook, &signature];
    let of_settings = SLOTS.iter().map(|(_, canary)| *canary).filter(|canary| *canary != PUBLIC);
    for form in of_settings.chain(others).flat_map(forms) {
        assert_eq!(log.lines().find(|line| line.contains(&form)), None, "{form} is in the log");
        assert!(!seen.contains(&form), "{form} was told");
        for file in std::fs::read_dir(gateway.folder.path().join("data")).unwrap().flatten() {
            let bytes = std::fs::read(file.path()).unwrap_or_default();
            let found = bytes.windows(form.len()).any(|window| window == form.as_bytes());
            assert!(!found, "{form} is in {:?}", file.path());
        }
    }
}

/// A slot is what the schema says is only written, and what is named like a
/// variable of the environment.
fn slots(schema: &Value, node: &Value, path: &str, found: &mut BTreeSet<String>) {
    if node["writeOnly"] == true
        || ["_env", "_env_var", "env_vars", "env.allow"].iter().any(|end| path.ends_with(end))
    {
        found.insert(path.to_owned());
    }
    if let Some(name) = node["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        slots(schema, &schema["$defs"][name], path, found);
    }
    for choice in ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|kind| node[kind].as_array()).flatten() {
        slots(schema, choice, path, found);
    }
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        slots(schema, property, &below(name), found);
    }
    if node["additionalProperties"].is_object() {
        slots(schema, &node["additionalProperties"], &below("*"), found);
    }
}

/// A new field for a secret has no canary: it fails here until one is planted.
#[test]
fn x8_every_slot_for_a_secret_in_the_configuration_has_its_canary() {
    let folder = Folder::new();
    let said = toolyard(folder.path()).args(["config", "schema"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&said.stdout).unwrap();
    let mut found = BTreeSet::new();
    slots(&schema, &schema, "", &mut found);
    let planted: BTreeSet<String> = SLOTS.iter().map(|(slot, _)| (*slot).to_owned()).collect();
    assert_eq!(found, planted);
}

/// A database or a Redis that cannot be reached is named without its password.
#[test]
fn x8_the_password_of_a_database_is_not_told() {
    let folder = Folder::new();
    let url = |host: &str| format!("postgres://ann:{DATABASE}@{host}/yard");
    let serve = &["serve", "--listen", "127.0.0.1:0"][..];
    let tries = [
        (url("127.0.0.1:1"), serve),
        (url("127.0.0.1:1"), &["doctor"]),
        (url("127.0.0.1:1"), &["config", "print"]),
        (url("no such host"), serve),
        (url("127.0.0.1:port"), serve),
    ];
    for (url, args) in tries {
        let mut command = toolyard(folder.path());
        command.env("TOOLYARD_DATABASE_URL", &url).env("TOOLYARD_LOG_LEVEL", "trace");
        command.env("TOOLYARD_REDIS_URL", format!("redis://ann:{REDIS}@127.0.0.1:1"));
        let said = command.args(args).output().unwrap();
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        assert!(!text.contains(DATABASE) && !text.contains(REDIS), "{args:?}: {text}");
        assert!(text.len() > 20, "{args:?} says nothing");
    }
}
